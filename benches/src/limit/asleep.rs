//! The limit of operations on a target that computes, over TCP: a thread of its that sleeps on a raw socket, on the core that the
//! computation keeps busy, and answers. The origin spins.

use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::bail;
use transom::Communicator;
use transom_transport::latency;

use super::tcp::{Exchange, Tcp};

/// How long rank 1 waits for what rank 0 asks.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A connection to a thread of rank 1.
#[derive(Debug)]
pub struct Asleep {
    connection: Tcp,
    answered: Arc<AtomicU64>,
    /// Of rank 1: its end, and the thread.
    answering: Option<(TcpStream, JoinHandle<()>)>,
}

impl Asleep {
    /// A connection, if rank 0 reaches rank 1. Collective.
    pub fn connect(pair: &Communicator, address: Option<IpAddr>) -> anyhow::Result<Option<Self>> {
        let Some(connection) = Tcp::connect(pair, address)? else { return Ok(None) };
        let answered = Arc::<AtomicU64>::default();
        let mut answering = None;
        if pair.rank() == 1 {
            let (end, stream, answered) = (connection.blocking()?, connection.blocking()?, answered.clone());
            let thread = thread::Builder::new().name("limit".into());
            answering = Some((end, thread.spawn(move || answer(stream, &answered))?));
        }
        Ok(Some(Self { connection, answered, answering }))
    }

    /// Time of `count` operations, at rank 0; rank 1, which it meets first, computes meanwhile.
    pub fn sample(&mut self, meeting: &mut Tcp, origin: bool, count: u64) -> anyhow::Result<Duration> {
        let before = self.answered.load(Ordering::Acquire);
        meeting.sample(origin, Exchange::ROUND_TRIP, 1)?;
        let start = Instant::now();
        if origin {
            (0..count).try_for_each(|_| self.connection.ask())?;
            return Ok(start.elapsed());
        }
        while self.answered.load(Ordering::Acquire) < before + count {
            if start.elapsed() > TIMEOUT {
                bail!("rank 0 asks nothing on the raw TCP connection");
            }
        }
        Ok(Duration::ZERO)
    }
}

impl Drop for Asleep {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.answering.take() {
            let _ = end.shutdown(Shutdown::Both);
            let _ = thread.join();
        }
    }
}

/// Answers until the connection ends.
fn answer(mut stream: TcpStream, answered: &AtomicU64) {
    latency::prefer_latency();
    let mut word = [0; 8];
    while stream.read_exact(&mut word).and_then(|()| stream.write_all(&word)).is_ok() {
        answered.fetch_add(1, Ordering::Release);
    }
}
