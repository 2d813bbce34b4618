//! Ctrl-C: measuring ends after the present round, and what was measured is kept.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};

/// How long signals are still the first one.
const ONCE: Duration = Duration::from_secs(1);

static ASKED: AtomicBool = AtomicBool::new(false);

/// From now on such signals are noted; a second one ends the process. To be called before any other thread is started, since they inherit
/// what is blocked.
///
/// # Errors
/// The system refuses.
pub fn listen(signals: &[Signal]) -> std::io::Result<()> {
    let signals: SigSet = signals.iter().copied().collect();
    signals.thread_block()?;
    let wait = move || {
        let _ = signals.wait();
        ASKED.store(true, Ordering::Relaxed);
        let asked = Instant::now();
        // A terminal and a launcher may both pass the first one on.
        while signals.wait().is_err() || asked.elapsed() < ONCE {}
        std::process::exit(130);
    };
    std::thread::Builder::new().name("interrupt".into()).spawn(wait).map(drop)
}

/// Whether this process was asked to end.
pub fn is_asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}
