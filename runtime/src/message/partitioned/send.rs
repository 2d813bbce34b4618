//! The sending end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::{CUT_ROUND, Cut, End, numbered};
use crate::engine::{Engine, Promise};
use crate::{Class, Communicator, Error, Request, Result};

const NAME: &str = "partitioned send";

/// The sending end of a partitioned message (`MPI_Psend_init`, MPI-4.1 §4.2.1).
#[derive(Debug)]
pub struct PartitionedSend {
    comm: Communicator,
    /// None to the null rank.
    end: Option<Arc<End>>,
    cut: Cut,
    round: Mutex<Round>,
}

#[derive(Debug, Default)]
struct Round {
    number: u32,
    /// The partitions that are not ready yet; none before the first round.
    awaited: Vec<bool>,
    left: Arc<AtomicUsize>,
    promise: Arc<Promise<()>>,
}

/// One thing less to send; the last one ends the round.
fn sent(engine: &Engine, left: &AtomicUsize, promise: &Promise<()>, result: Result<()>) -> bool {
    let last = left.fetch_sub(1, Ordering::AcqRel) == 1;
    match result {
        Ok(()) if last => promise.complete(engine, Ok(())),
        Ok(()) => {}
        Err(error) => promise.complete(engine, Err(error)),
    }
    last
}

impl PartitionedSend {
    /// A message of so many partitions of so many bytes each.
    ///
    /// # Errors
    /// The rank or the tag is wrong; there are more than 2^24 partitions, or more bytes than an address space holds.
    pub fn new(comm: &Communicator, dest: usize, tag: i32, partitions: usize, bytes: usize) -> Result<Self> {
        let cut = Cut { partitions, bytes };
        if !cut.is_possible() {
            let message = format!("{partitions} partitions of {bytes} bytes are too many");
            return Err(comm.channel().error(Class::Count, NAME, message));
        }
        let end = End::new(comm, NAME, (dest, tag), true)?.map(Arc::new);
        Ok(Self { comm: comm.clone(), end, cut, round: Mutex::default() })
    }

    /// Starts a round (`MPI_Start`), which ends when all partitions have been sent. The last one has ended.
    pub fn start(&self) -> Request<()> {
        let mut round = self.round.lock();
        let first = round.number == 0;
        *round = Round {
            number: round.number.wrapping_add(1),
            awaited: vec![true; self.cut.partitions],
            // The cut is one more.
            left: Arc::new(AtomicUsize::new(self.cut.partitions + 1)),
            promise: Promise::new(),
        };
        let (left, promise) = (round.left.clone(), round.promise.clone());
        drop(round);
        let request = Request::of(self.comm.member(), NAME, promise.clone());
        let cut = first.then(|| self.cut.to_bytes().to_vec());
        self.send(CUT_ROUND, cut, left, promise);
        request
    }

    /// A partition is ready: sends its bytes (`MPI_Pready`).
    ///
    /// # Errors
    /// Of class [`Class::Argument`]: there is no such partition, or it is ready already; no round has been started.
    pub fn ready(&self, partition: usize, bytes: Vec<u8>) -> Result<()> {
        let mut round = self.round.lock();
        match round.awaited.get_mut(partition) {
            Some(awaited) if *awaited && bytes.len() == self.cut.bytes => *awaited = false,
            _ => return Err(self.refused(partition)),
        }
        let (number, left, promise) =
            (numbered(round.number, partition), round.left.clone(), round.promise.clone());
        drop(round);
        self.send(number, Some(bytes), left, promise);
        Ok(())
    }

    #[cold]
    fn refused(&self, partition: usize) -> Error {
        let message = format!(
            "partition {partition} of {}: it is ready already, or the send has not been started",
            self.cut.partitions
        );
        self.comm.channel().error(Class::Argument, NAME, message)
    }

    /// Sends something, if there is anything and anybody to send to.
    fn send(&self, number: u64, bytes: Option<Vec<u8>>, left: Arc<AtomicUsize>, promise: Arc<Promise<()>>) {
        let engine = self.comm.channel().engine.clone();
        let (Some(bytes), Some(end)) = (bytes, self.end.clone()) else {
            sent(&engine, &left, &promise, Ok(()));
            return engine.drive_and_wake();
        };
        let own = end.is_own();
        let keeper = engine.clone();
        engine.start(promise.completed_by(), async move {
            let result = end.send(number, &bytes).await;
            sent(&keeper, &left, &promise, result);
        });
        if own {
            engine.drive_and_wake();
        } else {
            engine.wake();
        }
    }
}
