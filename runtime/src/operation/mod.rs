//! Operations: what is asked of a target, and which way it goes. Knows windows' ranges and the engine; whether the
//! target may be accessed at all has been checked by the epoch.

mod atomic;
mod complete;
mod device;
mod kinds;
mod later;
mod lists;
mod notify;
mod requested;
mod shape;
mod shaped;
mod took;
mod transfer;

pub(crate) use atomic::{Accumulate, accumulate, compare_swap, fetch_op, get_accumulate, update_known};
pub(crate) use complete::{abandon, complete, start_complete};
pub use kinds::{
    Band, Bor, Bxor, Element, Land, Lor, Lxor, Max, MaxLoc, Min, MinLoc, NoOp, Operation, Prod, Replace, Sum,
};
pub(crate) use later::{Later, Sink, later};
pub(crate) use notify::notify;
pub(crate) use requested::{fetch_accumulate, rget, rget_accumulate, rput};
pub use shape::Layout;
pub(crate) use shape::{check_accumulate, check_local, check_signatures, dense, gather, rename, scatter};
pub(crate) use shaped::{Shaped, accumulate as accumulate_shaped, get as get_shaped, put as put_shaped};
pub(crate) use transfer::{Place, get, get_now, put, put_copy};
