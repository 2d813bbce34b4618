//! What ranks print: cut into whole lines, tagged if asked, and written without ever blocking the job.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tokio::sync::mpsc::UnboundedSender;

use super::Event;
use super::files::Files;
use crate::frames::Stream;

/// A line longer than this is passed on in pieces.
const MAX_LINE: usize = 64 << 10;

#[derive(Debug)]
struct Partial {
    bytes: Vec<u8>,
    since: Instant,
}

/// Cuts output into lines, so that those of different ranks do not mix.
#[derive(Debug)]
pub struct Lines {
    /// Width of the number in the tag, if lines are tagged.
    tag: Option<usize>,
    /// How long the beginning of a line waits for its end (a prompt has none).
    time_limit: Duration,
    partial: BTreeMap<(u32, bool), Partial>,
    /// Whose line is unfinished on the output, and on the error output.
    open: [Option<u32>; 2],
}

impl Lines {
    /// For ranks below `size`.
    pub fn new(tag: bool, size: u32, time_limit: Duration) -> Self {
        let width = size.saturating_sub(1).to_string().len();
        Self { tag: tag.then_some(width), time_limit, partial: BTreeMap::new(), open: [None, None] }
    }

    /// Takes what a rank wrote; gives what can be written now.
    pub fn push(&mut self, rank: u32, stream: Stream, bytes: &[u8], now: Instant) -> Vec<u8> {
        let key = (rank, stream == Stream::Err);
        let held = self.partial.remove(&key);
        let end = bytes.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
        let (whole, rest) = bytes.split_at(end);
        let (mut lines, mut tail, since) = match held {
            Some(held) if whole.is_empty() => (Vec::new(), held.bytes, held.since),
            Some(held) => (held.bytes, Vec::new(), now),
            None => (Vec::new(), Vec::new(), now),
        };
        lines.extend_from_slice(whole);
        tail.extend_from_slice(rest);
        let mut out = Vec::new();
        self.emit(key, &lines, &mut out);
        if tail.len() > MAX_LINE {
            self.emit(key, &tail, &mut out);
        } else if !tail.is_empty() {
            self.partial.insert(key, Partial { bytes: tail, since });
        }
        out
    }

    /// When [`Self::flush`] has something to do.
    pub fn deadline(&self) -> Option<Instant> {
        self.partial.values().map(|partial| partial.since + self.time_limit).min()
    }

    /// Gives the unfinished lines that have waited long enough (at the end of a job: `all`).
    pub fn flush(&mut self, now: Instant, all: bool) -> Vec<(Stream, Vec<u8>)> {
        let due = |partial: &Partial| all || partial.since + self.time_limit <= now;
        let keys: Vec<_> =
            self.partial.iter().filter(|(_, partial)| due(partial)).map(|(key, _)| *key).collect();
        let mut flushed = Vec::new();
        for key in keys {
            let mut out = Vec::new();
            if let Some(partial) = self.partial.remove(&key) {
                self.emit(key, &partial.bytes, &mut out);
            }
            flushed.push((if key.1 { Stream::Err } else { Stream::Out }, out));
        }
        flushed
    }

    fn emit(&mut self, (rank, is_err): (u32, bool), bytes: &[u8], out: &mut Vec<u8>) {
        let Some(width) = self.tag else {
            return out.extend_from_slice(bytes);
        };
        let open = &mut self.open[usize::from(is_err)];
        for line in bytes.split_inclusive(|&b| b == b'\n') {
            if *open != Some(rank) {
                if open.is_some() {
                    out.push(b'\n');
                }
                out.extend_from_slice(format!("[{rank:>width$}] ").as_bytes());
            }
            out.extend_from_slice(line);
            *open = (line.last() != Some(&b'\n')).then_some(rank);
        }
    }
}

/// Bytes for this process's own output, or a rank's file; the agent gets `credit` bytes back once they are written.
#[derive(Debug)]
pub struct Chunk {
    /// Where to.
    pub stream: Stream,
    /// Whose they are, if they go to a file of its own.
    pub rank: Option<u32>,
    /// What.
    pub bytes: Vec<u8>,
    /// Whose credit.
    pub agent: usize,
    /// How much of it.
    pub credit: u32,
}

/// Where output goes, if not to this process's own.
#[derive(Debug)]
pub struct Places {
    /// A file for each stream of each rank.
    pub files: Option<Files>,
    /// A file in the place of standard output.
    pub out: Option<File>,
}

/// Starts the thread that writes: a terminal that is stopped, or a slow pipe, blocks only that thread.
pub fn start_writer(events: UnboundedSender<Event>, places: Places) -> io::Result<mpsc::Sender<Chunk>> {
    let (sender, chunks) = mpsc::channel::<Chunk>();
    std::thread::Builder::new().name("output".to_owned()).spawn(move || {
        let Places { files, mut out } = places;
        for chunk in chunks {
            let result = match (chunk.stream, files.as_ref().zip(chunk.rank)) {
                (stream, Some((files, rank))) => files.append(rank, stream, &chunk.bytes),
                (Stream::Err, None) => write_all(&mut io::stderr().lock(), &chunk.bytes).or(Ok(())),
                _ => match &mut out {
                    Some(file) => write_all(file, &chunk.bytes),
                    None => write_all(&mut io::stdout().lock(), &chunk.bytes),
                },
            };
            if let Err(error) = result {
                let _ = events.send(Event::OutputClosed(error));
                return;
            }
            let _ = events.send(Event::Written(chunk.agent, chunk.credit));
        }
        let _ = events.send(Event::WriterDone);
    })?;
    Ok(sender)
}

fn write_all<W: Write + std::os::fd::AsFd>(to: &mut W, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = nix::unistd::write(to.as_fd(), bytes).map_err(io::Error::from);
        match written {
            Ok(count) => bytes = &bytes[count..],
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            // Someone who shares the terminal made it non-blocking.
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                let _ = poll(&mut [PollFd::new(to.as_fd(), PollFlags::POLLOUT)], PollTimeout::NONE);
            }
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: fn() -> Instant = Instant::now;

    fn push(lines: &mut Lines, rank: u32, text: &str) -> String {
        String::from_utf8(lines.push(rank, Stream::Out, text.as_bytes(), NOW())).unwrap()
    }

    #[test]
    fn lines_stay_whole() {
        let mut lines = Lines::new(false, 2, Duration::from_secs(60));
        assert_eq!(push(&mut lines, 0, "a"), "");
        assert_eq!(push(&mut lines, 1, "x\ny"), "x\n");
        assert_eq!(push(&mut lines, 0, "b\nc"), "ab\n");
        assert_eq!(push(&mut lines, 0, "d"), "");
        assert!(lines.flush(NOW(), false).is_empty());
        let rest: Vec<_> = lines.flush(NOW(), true).into_iter().map(|(_, bytes)| bytes).collect();
        assert_eq!(rest, [b"cd".to_vec(), b"y".to_vec()]);
        assert_eq!(push(&mut lines, 0, &"z".repeat(MAX_LINE + 1)).len(), MAX_LINE + 1);
    }

    #[test]
    fn tags_stand_at_line_starts_only() {
        let mut lines = Lines::new(true, 11, Duration::ZERO);
        assert_eq!(push(&mut lines, 3, "a\n\nb\n"), "[ 3] a\n[ 3] \n[ 3] b\n");
        assert_eq!(push(&mut lines, 10, "50%"), "");
        assert_eq!(lines.flush(NOW(), false)[0].1, b"[10] 50%");
        assert_eq!(push(&mut lines, 10, "\rdone\n"), "\rdone\n");
        push(&mut lines, 10, "half");
        lines.flush(NOW(), false);
        assert_eq!(push(&mut lines, 0, "other\n"), "\n[ 0] other\n");
        assert_eq!(push(&mut lines, 10, " line\n"), "[10]  line\n");
    }
}
