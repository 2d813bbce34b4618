//! Progress bars.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::pipe::Pipe;

/// Between two looks at the progress.
pub(super) const INTERVAL: Duration = Duration::from_millis(100);

/// What the launcher sets to the width of the terminal, if there is one at the end of the pipe.
const WIDTH_VARIABLE: &str = "TRANSOM_TERMINAL_WIDTH";

/// A progress bar, or none where nobody would see it. Gone without a trace when dropped.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Progress in bytes.
    pub fn bytes(total: u64) -> Self {
        Self::new(total, "{wide_bar} {bytes}/{total_bytes}, {binary_bytes_per_sec}, {eta} left")
    }

    /// Progress in steps.
    pub fn steps(total: u64) -> Self {
        Self::new(total, "{wide_bar} step {pos}/{len}, {eta} left")
    }

    /// Progress in steps that have names.
    pub fn named_steps(total: u64) -> Self {
        Self::new(total, "{wide_bar} {pos}/{len} {msg:24} {eta} left")
    }

    fn new(total: u64, template: &str) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total), target());
        // The templates above are right; the default style would do.
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        Self { bar }
    }

    /// Whether nobody would see it.
    pub fn is_hidden(&self) -> bool {
        self.bar.is_hidden()
    }

    /// Shows what is done now, and how far it is.
    pub fn show_named(&mut self, position: u64, name: &str) {
        self.bar.set_message(name.to_owned());
        self.show(position);
    }

    /// Shows how far it is.
    pub fn show(&mut self, position: u64) {
        self.bar.set_position(position);
        self.bar.tick();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn target() -> ProgressDrawTarget {
    let width = std::env::var(WIDTH_VARIABLE).ok().and_then(|width| width.parse().ok());
    match width {
        _ if io::stderr().is_terminal() => ProgressDrawTarget::stderr(),
        Some(width) if width > 0 => ProgressDrawTarget::term_like(Box::new(Pipe::new(width))),
        _ => ProgressDrawTarget::hidden(),
    }
}
