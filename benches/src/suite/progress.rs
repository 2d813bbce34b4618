//! A progress bar on a terminal, at rank 0: under a launcher, standard error is a pipe to one.

use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

const TEMPLATE: &str = "{wide_bar} {pos}/{len} {msg:24} {eta} left";

/// A progress bar, or none where nobody would see it. Gone without a trace at the end.
#[derive(Debug)]
pub struct Progress(ProgressBar);

impl Progress {
    /// So many steps; shown at one rank.
    pub fn new(is_shown: bool, steps: usize) -> Self {
        let seen = is_shown && io::stderr().is_terminal();
        let target = if seen { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(steps as u64), target);
        bar.set_style(
            ProgressStyle::with_template(TEMPLATE).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        Self(bar)
    }

    /// One more step.
    pub fn step(&mut self, what: &str) {
        self.0.set_message(what.to_owned());
        self.0.inc(1);
    }

    /// Takes it away.
    pub fn end(&mut self) {
        self.0.finish_and_clear();
    }
}
