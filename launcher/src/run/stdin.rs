//! This command's standard input, on its way to the ranks that read it.

use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::sync::mpsc;
use std::time::Duration;

use bytes::Bytes;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use tokio::sync::mpsc::UnboundedSender;

use super::Event;
use crate::frames::INPUT_WINDOW;

const CHUNK: usize = 16 << 10;

/// Starts the thread that reads; it gets credit for bytes that ranks have taken.
///
/// It is never waited for: at the end of the job it may still sit in a read.
pub fn start_reader(events: UnboundedSender<Event>) -> io::Result<mpsc::Sender<u32>> {
    let (sender, credit) = mpsc::channel();
    std::thread::Builder::new().name("input".to_owned()).spawn(move || {
        // A background job that reads the terminal would be stopped; with this blocked it gets an error instead.
        let mut stop = SigSet::empty();
        stop.add(Signal::SIGTTIN);
        let _ = stop.thread_block();
        let _ = read_all(&events, &credit);
        let _ = events.send(Event::StdinEof);
    })?;
    Ok(sender)
}

fn read_all(events: &UnboundedSender<Event>, credit: &mpsc::Receiver<u32>) -> io::Result<()> {
    let stdin = io::stdin();
    let mut left = INPUT_WINDOW as usize;
    let mut buffer = vec![0; CHUNK];
    loop {
        while left == 0 {
            left += credit.recv().map_err(|_| io::ErrorKind::BrokenPipe)? as usize;
        }
        left += credit.try_iter().map(|bytes| bytes as usize).sum::<usize>();
        if stdin.is_terminal() {
            wait_for_foreground(&stdin);
        }
        let want = CHUNK.min(left);
        match nix::unistd::read(stdin.as_fd(), &mut buffer[..want]) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                left -= count;
                let bytes = Bytes::copy_from_slice(&buffer[..count]);
                events.send(Event::Stdin(bytes)).map_err(|_| io::ErrorKind::BrokenPipe)?;
            }
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => {
                let _ = poll(&mut [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)], PollTimeout::NONE);
            }
            // In the background since the last look.
            Err(Errno::EIO) if stdin.is_terminal() && !is_foreground(&stdin) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn wait_for_foreground(stdin: &io::Stdin) {
    while !is_foreground(stdin) {
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn is_foreground(stdin: &io::Stdin) -> bool {
    // Not this process's controlling terminal: no job control, and reading does no harm.
    nix::unistd::tcgetpgrp(stdin).map_or(true, |group| group == nix::unistd::getpgrp())
}
