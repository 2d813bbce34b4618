//! Messages (MPI-4.1 chapter 3).

pub mod buffered;
pub mod matched;
pub mod partitioned;
pub mod persistent;
pub mod receive;
pub mod send;

use std::ffi::c_int;

use transom::{NULL_RANK, Source, Tag};

use crate::abi::{ANY_SOURCE, ANY_TAG, Comm, ERR_RANK, PROC_NULL, Status};
use crate::buffer::{Buffer, Triple};
use crate::comm::CommObject;
use crate::comm::inter::Inter;
use crate::failure::{Result, fail};

/// The envelope of a message (MPI-4.1 §3.2.3) as a call names it: the other rank, tag and communicator.
#[derive(Debug, Clone, Copy)]
pub struct Envelope {
    pub rank: c_int,
    pub tag: c_int,
    pub comm: Comm,
}

impl Envelope {
    /// An envelope of three arguments.
    pub fn new(rank: c_int, tag: c_int, comm: Comm) -> Self {
        Self { rank, tag, comm }
    }
}

/// A rank to send to.
fn dest(comm: &CommObject, rank: c_int) -> Result<usize> {
    match usize::try_from(rank) {
        Ok(rank) => comm.peer(rank),
        Err(_) if rank == PROC_NULL => Ok(NULL_RANK),
        Err(_) => fail(ERR_RANK, format!("rank {rank} as a destination")),
    }
}

/// From whom to receive.
fn source(comm: &CommObject, rank: c_int) -> Result<Source> {
    match usize::try_from(rank) {
        Ok(rank) => comm.from(Source::Rank(rank)),
        Err(_) if rank == ANY_SOURCE => Ok(Source::Any),
        Err(_) if rank == PROC_NULL => Ok(Source::Rank(NULL_RANK)),
        Err(_) => fail(ERR_RANK, format!("rank {rank} as a source")),
    }
}

/// The buffer of a message to or from a rank: the null process needs none, so the arguments are not looked at (§3.10).
fn buffer(peer: c_int, named: Triple) -> Result<Buffer> {
    if peer == PROC_NULL { Buffer::none() } else { Buffer::new(named) }
}

/// Which tags to receive.
pub fn tag(tag: c_int) -> Tag {
    if tag == ANY_TAG { Tag::Any } else { Tag::Is(tag) }
}

/// The program's status of a message, from the other side of an intercommunicator if there is one.
fn status(inter: Option<&Inter>, of: transom::Status) -> Status {
    let mut status = Status::EMPTY;
    if of.source == NULL_RANK {
        status.source = PROC_NULL;
    } else {
        status.source =
            c_int::try_from(inter.map_or(of.source, |inter| inter.named(of.source))).unwrap_or(PROC_NULL);
        status.tag = of.tag;
    }
    status.set_bytes(of.bytes as u64);
    status
}
