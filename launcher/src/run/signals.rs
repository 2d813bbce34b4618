//! Signals to this command.

use nix::sys::signal::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::UnboundedSender;

use super::Event;
use crate::process::is_ignored;

const PASSED_ON: [Signal; 8] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGQUIT,
    Signal::SIGHUP,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGCONT,
    Signal::SIGTSTP,
];

/// Whether a signal asks for the end of the job.
pub fn ends_job(number: i32) -> bool {
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGQUIT].iter().any(|signal| *signal as i32 == number)
}

/// Turns signals into events. What was ignored when this process started stays ignored.
pub fn listen(events: &UnboundedSender<Event>) -> std::io::Result<()> {
    for number in PASSED_ON.map(|signal| signal as i32).into_iter().filter(|number| !is_ignored(*number)) {
        let mut signals = signal(SignalKind::from_raw(number))?;
        let events = events.clone();
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                if events.send(Event::Signal(number)).is_err() {
                    return;
                }
            }
        });
    }
    Ok(())
}

/// Stops this process, as the terminal asked, once the agents have been told; it goes on here after SIGCONT.
pub fn stop_self_soon() {
    tokio::spawn(async {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        let _ = nix::sys::signal::kill(nix::unistd::getpid(), Signal::SIGSTOP);
    });
}
