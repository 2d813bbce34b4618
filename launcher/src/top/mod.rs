//! `transom top`: what the ranks of a running job do.
//!
//! It asks as `transom where` does (`hang`), each second; rates are what two looks differ by, so that ranks keep nothing for it but
//! the counters that `explain` has.

mod metrics;
mod rates;
mod table;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use crate::cli::TopArgs;
use crate::hang::ask::{failed, only_job, out, refusal};
use crate::hang::{Question, Report, door};
use rates::Rates;

/// Between two looks.
const INTERVAL: Duration = Duration::from_secs(1);

/// Runs the command.
pub fn main(args: &TopArgs) -> ExitCode {
    let job = match args.job.map_or_else(only_job, Ok) {
        Ok(job) => job,
        Err(message) => return failed(&message),
    };
    let ask = || door::ask::<Report>(job, Question::Load);
    let mut before = match ask() {
        Ok(report) => report,
        Err(error) => return failed(&refusal(job, &error)),
    };
    if args.metrics {
        return out(&metrics::text(&before));
    }
    let once = args.once || !io::stdout().is_terminal();
    if !once {
        clear();
    }
    loop {
        std::thread::sleep(INTERVAL);
        let now = match ask() {
            Ok(report) => report,
            Err(error) if gone(&error) => return out(&format!("job {job} has ended\n")),
            Err(error) => return failed(&refusal(job, &error)),
        };
        let page = table::page(&now, &Rates::between(&before, &now), args);
        if once {
            return out(&page);
        }
        if show(&page).is_err() {
            return ExitCode::SUCCESS;
        }
        before = now;
    }
}

/// Whether the job has ended since it was asked.
fn gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::UnexpectedEof)
}

/// Takes what the terminal showed away (ECMA-48: ED, CUP).
fn clear() {
    let _ = io::stdout().write_all(b"\x1b[2J\x1b[H");
}

/// Writes a page over the one before, as much of it as the terminal has lines for.
fn show(page: &str) -> io::Result<()> {
    let lines = terminal_size::terminal_size_of(io::stdout()).map_or(24, |(_, height)| usize::from(height.0));
    let mut out = io::stdout().lock();
    out.write_all(screen(page, lines).as_bytes())?;
    out.flush()
}

/// A page for so many lines: each is cleared behind its end, and so is what is below (ECMA-48: EL, ED).
fn screen(page: &str, lines: usize) -> String {
    let count = page.lines().count();
    let room = lines.saturating_sub(1);
    let shown = if count > room { room.saturating_sub(1) } else { count };
    let mut text = String::from("\x1b[H");
    for line in page.lines().take(shown) {
        text += line;
        text += "\x1b[K\n";
    }
    if shown < count {
        text += &format!("{} more lines: a higher terminal, or --once, shows them\x1b[K", count - shown);
    }
    text + "\x1b[J"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_screen_has_no_more_lines_than_the_terminal() {
        assert_eq!(screen("a\nb\n", 24), "\x1b[Ha\x1b[K\nb\x1b[K\n\x1b[J");
        let long = screen("a\nb\nc\nd\ne\n", 4);
        assert_eq!(long.lines().count(), 3);
        assert!(long.contains("b\x1b[K\n3 more lines"), "{long:?}");
        assert_eq!(screen("a\n", 0).lines().count(), 1);
    }
}
