//! A progress bar on a terminal, at rank 0: under a launcher, standard error is a pipe to one, of known width.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};

const TEMPLATE: &str = "{wide_bar} {pos}/{len} {msg:24} {eta} left";
/// What the launcher sets, if there is a terminal at the end of the pipe.
const WIDTH_VARIABLE: &str = "TRANSOM_TERMINAL_WIDTH";
/// Drawing takes time from a core that measures.
const INTERVAL: Duration = Duration::from_millis(200);

/// A progress bar, or none where nobody would see it. Gone without a trace at the end.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    drawn: Instant,
    done: u64,
}

impl Progress {
    /// So many steps; shown at one rank.
    pub fn new(is_shown: bool, steps: usize) -> Self {
        let target = if is_shown { target() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(steps as u64), target);
        bar.set_style(
            ProgressStyle::with_template(TEMPLATE).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        Self { bar, drawn: Instant::now(), done: 0 }
    }

    /// One more step.
    pub fn step(&mut self, what: &str) {
        self.done += 1;
        if self.drawn.elapsed() >= INTERVAL && !self.bar.is_hidden() {
            self.drawn = Instant::now();
            self.bar.set_message(what.to_owned());
            self.bar.set_position(self.done);
        }
    }

    /// Takes it away.
    pub fn end(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn target() -> ProgressDrawTarget {
    let width = std::env::var(WIDTH_VARIABLE).ok().and_then(|width| width.parse().ok());
    match width {
        _ if io::stderr().is_terminal() => ProgressDrawTarget::stderr(),
        Some(width) if width > 0 => ProgressDrawTarget::term_like(Box::new(Pipe { width })),
        _ => ProgressDrawTarget::hidden(),
    }
}

/// The terminal at the other end of standard error. A bar of one line only ever begins its line again.
#[derive(Debug)]
struct Pipe {
    width: u16,
}

impl Pipe {
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
