//! Operations: what is asked of a target (`description.rs`), and the one way that all of them go (`pipeline.rs`). Knows windows'
//! ranges and the engine; which epochs are open is `epoch/sync`'s matter.

mod agent;
mod completion;
mod description;
pub(crate) mod device;
mod elements;
mod gathered;
mod layout;
mod list;
mod mapped;
mod message;
mod ordering;
mod packed;
mod path;
mod pipeline;
mod place;
mod regions;
mod request;
pub(crate) mod single;
mod transfer;

pub(crate) use completion::{
    abandon, arrives_behind_messages, complete, error_of, is_complete_behind, start_complete,
};
pub(crate) use description::{Accumulate, Completion, Description};
pub use elements::{
    Band, Bor, Bxor, Element, Land, Lor, Lxor, Max, MaxLoc, Min, MinLoc, NoOp, Operation, Prod, Replace, Sum,
};
pub use layout::Layout;
use layout::{check_local, check_signatures};
pub(crate) use layout::{check_result, dense, operands, rename, scatter};
pub(crate) use message::send_counted;
pub(crate) use ordering::{Order, is_behind_puts, order};
pub(crate) use pipeline::perform;
pub(crate) use place::Place;
pub(crate) use regions::check_range;
pub(crate) use request::{ReplyBuffer, request};
