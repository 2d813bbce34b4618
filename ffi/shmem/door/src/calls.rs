//! What exported functions call: for `shmem_long_put` it is `put::<i64>`, with its own name for messages first, then the context where
//! the function has a form with one. All have their caller's promise: addresses are valid for what the specification says of the call.

mod atomic;
mod collective;
mod lock;
mod memory;
mod order;
mod reduction;
mod setup;
mod team;
mod transfer;
mod wait;
mod wait_many;

pub use atomic::*;
pub use collective::*;
pub use lock::*;
pub use memory::*;
pub use order::*;
pub use reduction::*;
pub use setup::*;
pub use team::*;
pub use transfer::*;
pub use wait::*;
pub use wait_many::*;
