//! Partitioned messages (MPI-4.1 chapter 4).

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use parking_lot::Mutex;
use transom::NULL_RANK;
use transom::raw::{PartitionedReceive, PartitionedSend};

use super::{Envelope, dest, status as of};
use crate::abi::{ANY_SOURCE, REQUEST_NULL, Request, Status};
use crate::abi::{Datatype, ERR_ARG, ERR_COUNT, ERR_RANK, ERR_REQUEST, ERR_TAG, ERR_TRUNCATE, Info};
use crate::buffer::{Buffer, Triple};
use crate::comm::CommObject;
use crate::failure::{Result, fail};
use crate::group::count;
use crate::handlers::ErrorObject;
use crate::pointer::{Pointer, flag};
use crate::request::{self, Start, filled};
use crate::{info, world};

/// A buffer in partitions.
pub struct Parts {
    all: Buffer,
    partitions: usize,
    /// Instances in each.
    each: i64,
    /// Bytes of data in each.
    bytes: usize,
}

/// One end of a partitioned message.
pub enum Partitioned {
    Send(Parts, PartitionedSend),
    /// With the receiver's partitions that are in the buffer already.
    Receive(Parts, PartitionedReceive, Mutex<Vec<bool>>),
}

impl Parts {
    fn new(address: *const c_void, partitions: c_int, each: i64, ty: Datatype) -> Result<Self> {
        let partitions = count(partitions)?;
        let one = Buffer::new(Triple::new(address, each, ty))?;
        let Some(n) = i64::try_from(partitions).ok().and_then(|partitions| partitions.checked_mul(each))
        else {
            return fail(ERR_COUNT, format!("{partitions} partitions of {each} instances"));
        };
        Ok(Self { all: one.part(0, n)?, partitions, each, bytes: one.capacity()? })
    }

    fn part(&self, partition: usize) -> Result<Buffer> {
        self.all.part(partition as i64 * self.each, self.each)
    }

    /// A partition that the program names.
    fn index(&self, partition: c_int) -> Result<usize> {
        match usize::try_from(partition) {
            Ok(index) if index < self.partitions => Ok(index),
            _ => fail(ERR_ARG, format!("partition {partition} of a message of {}", self.partitions)),
        }
    }

    /// Puts a partition that has come where it belongs, once.
    fn store(&self, index: usize, receive: &PartitionedReceive, stored: &mut [bool]) -> Result<()> {
        if !stored[index] {
            self.part(index)?.unpack(&receive.partition(index, self.bytes))?;
            stored[index] = true;
        }
        Ok(())
    }
}

impl Partitioned {
    /// A partition can go.
    fn ready(&self, partition: c_int) -> Result<()> {
        match self {
            Self::Send(parts, send) => {
                let index = parts.index(partition)?;
                Ok(send.ready(index, parts.part(index)?.pack()?)?)
            }
            Self::Receive(..) => fail(ERR_REQUEST, "this is a receive: its sender says what is ready"),
        }
    }

    /// Whether a partition has come; then it is in the buffer.
    fn has_arrived(&self, partition: c_int, active: bool) -> Result<bool> {
        let Self::Receive(parts, receive, stored) = self else {
            return fail(ERR_REQUEST, "this is a send: its receiver sees what arrives");
        };
        let index = parts.index(partition)?;
        if !active {
            return Ok(true);
        }
        // Threads that ask for different partitions store one after the other.
        let mut stored = stored.lock();
        if !stored[index] && !receive.has_arrived(index, parts.partitions, parts.bytes)? {
            return Ok(false);
        }
        parts.store(index, receive, &mut stored)?;
        Ok(true)
    }
}

/// The end of a receive's round: what is not in the buffer yet goes there.
fn fill(parts: &Parts, receive: &PartitionedReceive, stored: &Mutex<Vec<bool>>) -> Result<usize> {
    let (total, capacity) = (receive.total(), parts.all.capacity()?);
    let mut stored = stored.lock();
    let filled = (0..parts.partitions).try_for_each(|index| parts.store(index, receive, &mut stored));
    receive.clear();
    filled?;
    if total > capacity {
        return fail(ERR_TRUNCATE, format!("{total} bytes came in partitions, there is room for {capacity}"));
    }
    Ok(total)
}

fn begin_send(comm: &CommObject, parts: Parts, to: Envelope) -> Result<(Arc<Partitioned>, Start)> {
    let rank = dest(comm, to.rank)?;
    let send = PartitionedSend::new(comm.messages(), rank, checked(to.tag)?, parts.partitions, parts.bytes)?;
    let end = Arc::new(Partitioned::Send(parts, send));
    let started = end.clone();
    let start = Box::new(move || match &*started {
        Partitioned::Send(_, send) => Ok(filled(send.start(), |()| Ok(Status::EMPTY))),
        Partitioned::Receive(..) => fail(ERR_REQUEST, "not a send"),
    });
    Ok((end, start))
}
fn begin_receive(comm: &Arc<CommObject>, parts: Parts, from: Envelope) -> Result<(Arc<Partitioned>, Start)> {
    if from.rank == ANY_SOURCE {
        return fail(ERR_RANK, "a partitioned message comes from one rank");
    }
    let (object, source) = (comm.clone(), dest(comm, from.rank)?);
    let receive = PartitionedReceive::new(comm.messages(), source, checked(from.tag)?)?;
    let stored = Mutex::new(vec![false; parts.partitions]);
    let end = Arc::new(Partitioned::Receive(parts, receive, stored));
    let started = end.clone();
    Ok((end, Box::new(move || begin(&object, &started, source, from.tag))))
}

macro_rules! inits {
    ($($(#[$doc:meta])* $name:ident: $begin:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name(
            address: *const c_void, partitions: c_int, n: i64, ty: Datatype, envelope: Envelope, info: Info,
            request: Pointer<Request>,
        ) -> Result<()> {
            request.check()?;
            let (object, _) = (world::comm(envelope.comm)?, info::hints(info)?);
            let parts = Parts::new(address, partitions, n, ty)?;
            let (end, start) = $begin(&object, parts, envelope)?;
            request.set(request::partitioned(start, end, ErrorObject::Comm(envelope.comm))?)
        }
    )*};
}

inits! {
    /// `MPI_Psend_init`.
    psend_init: begin_send;
    /// `MPI_Precv_init`.
    precv_init: begin_receive;
}

/// Starts a round of a receive.
fn begin(
    comm: &Arc<CommObject>,
    end: &Arc<Partitioned>,
    source: usize,
    tag: c_int,
) -> Result<request::Pending> {
    let Partitioned::Receive(_, receive, stored) = &**end else { return fail(ERR_REQUEST, "not a receive") };
    stored.lock().fill(false);
    let (comm, ended) = (comm.clone(), end.clone());
    Ok(filled(receive.start(), move |()| match &*ended {
        Partitioned::Receive(..) if source == NULL_RANK => {
            Ok(of(comm.inter.as_deref(), transom::Status { source, tag, bytes: 0 }))
        }
        Partitioned::Receive(parts, receive, stored) => {
            let bytes = fill(parts, receive, stored)?;
            Ok(of(comm.inter.as_deref(), transom::Status { source, tag, bytes }))
        }
        Partitioned::Send(..) => Ok(Status::EMPTY),
    }))
}

/// There is no `MPI_ANY_TAG` here.
fn checked(tag: c_int) -> Result<c_int> {
    if tag < 0 { fail(ERR_TAG, format!("tag {tag} of a partitioned message")) } else { Ok(tag) }
}

/// `MPI_Pready`.
pub fn pready(partition: c_int, request: Request) -> Result<()> {
    request::with_partitions(request, |end, active| ready(end, active, partition))
}

fn ready(end: &Partitioned, active: bool, partition: c_int) -> Result<()> {
    if !active {
        return fail(ERR_REQUEST, "start the send before its partitions are ready");
    }
    end.ready(partition)
}

/// `MPI_Pready_range`: both ends are in it.
pub fn pready_range(low: c_int, high: c_int, request: Request) -> Result<()> {
    if low > high {
        return fail(ERR_ARG, format!("partitions from {low} to {high}"));
    }
    request::with_partitions(request, |end, active| {
        (low..=high).try_for_each(|partition| ready(end, active, partition))
    })
}

/// `MPI_Pready_list`.
pub fn pready_list(n: c_int, partitions: Pointer<c_int>, request: Request) -> Result<()> {
    let partitions = partitions.list(count(n)?)?;
    request::with_partitions(request, |end, active| {
        partitions.into_iter().try_for_each(|partition| ready(end, active, partition))
    })
}

/// `MPI_Parrived`: of nothing under way, all has.
pub fn parrived(request: Request, partition: c_int, arrived: Pointer<c_int>) -> Result<()> {
    arrived.check()?;
    if request == REQUEST_NULL {
        return arrived.set(flag(true));
    }
    let has = request::with_partitions(request, |end, active| end.has_arrived(partition, active))?;
    arrived.set(flag(has))
}
