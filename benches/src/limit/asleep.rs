//! The limit of operations on a target that computes, over TCP: a thread of its that sleeps on a raw socket, on the core that the
//! computation keeps busy, and answers. The origin spins.

use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use transom::Communicator;
use transom_transport::latency;

use super::address;
use super::tcp::{Exchange, Tcp};

/// How long rank 1 waits for what rank 0 asks.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A connection to a thread of rank 1.
#[derive(Debug)]
pub struct Asleep {
    /// By which both meet.
    meeting: Tcp,
    stream: TcpStream,
    answered: Arc<AtomicU64>,
    answering: Option<JoinHandle<()>>,
}

impl Asleep {
    /// A connection, if rank 0 reaches rank 1. Collective.
    pub fn connect(pair: &Communicator, address: Option<IpAddr>) -> anyhow::Result<Option<Self>> {
        let Some(meeting) = Tcp::connect(pair, address)? else { return Ok(None) };
        let Some(stream) = address::connect(pair, address)? else { return Ok(None) };
        stream.set_nodelay(true)?;
        let answered = Arc::<AtomicU64>::default();
        let answering = match pair.rank() {
            0 => {
                stream.set_nonblocking(true)?;
                None
            }
            _ => {
                let (stream, answered) = (stream.try_clone()?, answered.clone());
                Some(thread::Builder::new().name("limit".into()).spawn(move || answer(stream, &answered))?)
            }
        };
        Ok(Some(Self { meeting, stream, answered, answering }))
    }

    /// Time of `count` operations, at rank 0; rank 1 computes meanwhile.
    pub fn sample(&mut self, origin: bool, count: u64) -> anyhow::Result<Duration> {
        let before = self.answered.load(Ordering::Acquire);
        self.meeting.sample(origin, Exchange::ROUND_TRIP, 1)?;
        let start = Instant::now();
        if origin {
            (0..count)
                .try_for_each(|_| self.ask())
                .context("the raw TCP connection to a thread that sleeps")?;
            return Ok(start.elapsed());
        }
        while self.answered.load(Ordering::Acquire) < before + count {
            if start.elapsed() > TIMEOUT {
                bail!("rank 0 asks nothing on the raw TCP connection");
            }
        }
        Ok(Duration::ZERO)
    }

    fn ask(&mut self) -> std::io::Result<()> {
        let mut word = [1; 8];
        self.stream.write_all(&word)?;
        let mut got = 0;
        while got < word.len() {
            match self.stream.read(&mut word[got..]) {
                Ok(0) => return Err(std::io::ErrorKind::UnexpectedEof.into()),
                Ok(some) => got += some,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Drop for Asleep {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
        self.answering.take().map(JoinHandle::join);
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
