//! What the suite shows of its progress while it measures: seldom, for drawing takes time from a core that measures.

use std::time::{Duration, Instant};

use transom_programs::progress::Progress as Bar;

const INTERVAL: Duration = Duration::from_millis(200);

/// A progress bar, or none where nobody would see it. Gone without a trace when dropped.
#[derive(Debug)]
pub struct Progress {
    bar: Option<Bar>,
    drawn: Instant,
    done: u64,
}

impl Progress {
    /// So many steps, of which some are done; shown at one rank.
    pub fn new(is_shown: bool, steps: usize, done: usize) -> Self {
        let bar = is_shown.then(|| Bar::named_steps(steps as u64)).filter(|bar| !bar.is_hidden());
        Self { bar, drawn: Instant::now(), done: done as u64 }
    }

    /// One more step.
    pub fn step(&mut self, name: &str) {
        self.done += 1;
        let Some(bar) = &mut self.bar else { return };
        if self.drawn.elapsed() >= INTERVAL {
            self.drawn = Instant::now();
            bar.show_named(self.done, name);
        }
    }
}
