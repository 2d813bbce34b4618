//! A terminal at the other end of a pipe, as indicatif draws on it.

use std::io::{self, Write};

use indicatif::TermLike;

/// Standard error as the pipe to a terminal of known width.
#[derive(Debug)]
pub(super) struct Pipe {
    width: u16,
}

impl Pipe {
    pub fn new(width: u16) -> Self {
        Self { width }
    }

    fn write(text: &str) -> io::Result<()> {
        io::stderr().write_all(text.as_bytes())
    }

    /// A control sequence that moves the cursor (ECMA-48 §8.3).
    fn move_cursor(count: usize, direction: char) -> io::Result<()> {
        if count == 0 { Ok(()) } else { Self::write(&format!("\x1b[{count}{direction}")) }
    }
}

impl TermLike for Pipe {
    fn width(&self) -> u16 {
        self.width
    }

    fn move_cursor_up(&self, count: usize) -> io::Result<()> {
        Self::move_cursor(count, 'A')
    }

    fn move_cursor_down(&self, count: usize) -> io::Result<()> {
        Self::move_cursor(count, 'B')
    }

    fn move_cursor_right(&self, count: usize) -> io::Result<()> {
        Self::move_cursor(count, 'C')
    }

    fn move_cursor_left(&self, count: usize) -> io::Result<()> {
        Self::move_cursor(count, 'D')
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        Self::write(&format!("{text}\n"))
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        Self::write(text)
    }

    fn clear_line(&self) -> io::Result<()> {
        Self::write("\r\x1b[2K")
    }

    fn flush(&self) -> io::Result<()> {
        io::stderr().flush()
    }
}
