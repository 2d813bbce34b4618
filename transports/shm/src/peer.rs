//! A peer as it was reached: its queue, its bell, and its memory files.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicBool;

use transom_transport::memory::Choice;
use transom_transport::{Span, TransportError, TransportResult, limits};

use crate::address::{Address, Key};
use crate::doorbell::{Bell, Doorbell};
use crate::file;
use crate::queue::{NONCE, QUEUE_BYTES, Queue};

/// A peer's side of what is shared.
#[derive(Debug)]
pub struct Peer {
    pub queue: Queue,
    pub bell: Bell,
    pub files: Files,
    /// Its queue was found full, and has not been seen to have room for several messages since.
    pub full: AtomicBool,
    /// By which stores long payloads are written to its queue.
    pub stores: Choice,
    /// The rank is gone while others go on.
    pub gone: AtomicBool,
}

/// Where a peer's memory files are.
#[derive(Debug)]
pub enum Files {
    /// In /proc.
    Proc,
    /// Here: it is this process.
    Own,
    /// Here: the peer has passed them.
    Passed(Vec<OwnedFd>),
}

impl Files {
    /// Gives `body` the file of a key, of `len` bytes at least.
    pub fn with<R>(&self, key: &Key, len: usize, body: impl FnOnce(BorrowedFd<'_>) -> R) -> io::Result<R> {
        let opened = match self {
            Self::Proc => file::open(key.pid, key.file).map_err(|e| in_proc(key.pid, &e))?,
            Self::Own => file::duplicate(key.file)?,
            Self::Passed(files) => {
                let gone = || io::Error::new(io::ErrorKind::NotFound, "the peer has not passed this file");
                let is_it = |file: &&OwnedFd| file::check(file.as_fd(), key.inode, len).is_ok();
                return files.iter().find(is_it).map(|file| body(file.as_fd())).ok_or_else(gone);
            }
        };
        file::check(opened.as_fd(), key.inode, len)?;
        Ok(body(opened.as_fd()))
    }
}

fn in_proc(pid: u32, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("/proc/{pid}/fd: {}", limits::named(error)))
}

impl Peer {
    /// This rank itself.
    pub fn own(memory: &Span, doorbell: &Doorbell) -> io::Result<Self> {
        let [read, write] = doorbell.ends();
        let bell = Bell::of(read.try_clone_to_owned()?, write.try_clone_to_owned()?);
        Ok(Self {
            queue: Queue::new(memory.clone()),
            bell,
            files: Files::Own,
            full: AtomicBool::new(false),
            stores: Choice::default(),
            gone: AtomicBool::new(false),
        })
    }

    /// A peer whose files can be opened.
    pub fn open(peer: usize, address: &Address) -> TransportResult<Self> {
        let refused = |e: io::Error| TransportError::Peer { peer, reason: limits::named(&e) };
        let queue = file::open(address.pid, address.queue).map_err(|e| refused(in_proc(address.pid, &e)))?;
        let bell = Bell::open(address.pid, address.doorbell, address.doorbell_inode)
            .map_err(|e| refused(in_proc(address.pid, &e)))?;
        Ok(Self {
            queue: queue_of(peer, address, &queue)?,
            bell,
            files: Files::Proc,
            full: AtomicBool::new(false),
            stores: Choice::default(),
            gone: AtomicBool::new(false),
        })
    }

    /// A peer that has passed the file of its queue, the ends of its doorbell, and its other files.
    pub fn passed(peer: usize, address: &Address, files: Vec<OwnedFd>) -> TransportResult<Self> {
        let mut files = files.into_iter();
        let (Some(queue), Some(read), Some(write)) = (files.next(), files.next(), files.next()) else {
            return Err(TransportError::Malformed { peer, what: "number of files" });
        };
        let queue = queue_of(peer, address, &queue)?;
        Ok(Self {
            queue,
            bell: Bell::of(read, write),
            files: Files::Passed(files.collect()),
            full: AtomicBool::new(false),
            stores: Choice::default(),
            gone: AtomicBool::new(false),
        })
    }
}

/// The queue in a file, if it is the peer's.
fn queue_of(peer: usize, address: &Address, file: &OwnedFd) -> TransportResult<Queue> {
    let refused = |e: io::Error| TransportError::Peer { peer, reason: limits::named(&e) };
    file::check(file.as_fd(), address.queue_inode, QUEUE_BYTES).map_err(refused)?;
    let memory = file::map_part(file.as_fd(), 0, QUEUE_BYTES)?;
    let mut nonce = [0; 8];
    memory.copy_out(NONCE, &mut nonce)?;
    if u64::from_ne_bytes(nonce) != address.nonce {
        return Err(TransportError::Peer {
            peer,
            reason: "the process with its number is another one".into(),
        });
    }
    Ok(Queue::new(memory))
}
