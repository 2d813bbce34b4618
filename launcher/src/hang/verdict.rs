//! Who is to blame, in words, and what to do.

use transom::waits::{Subject, Wait};

use super::analysis::{Edge, Ranks, Why};
use super::{RankView, State};

/// Ranks of a circle that are named.
const LONGEST_CIRCLE: usize = 8;

/// One cause of waiting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The culprits.
    pub ranks: Vec<u32>,
    /// What they do or fail to do.
    pub text: String,
    /// What to do.
    pub advice: String,
}

/// `ranks 0-3 and 7`, `rank 2`.
pub fn names(ranks: &[u32]) -> String {
    match ranks {
        [one] => format!("rank {one}"),
        [one, two] => format!("ranks {one} and {two}"),
        _ => format!("ranks {}", ranges(ranks)),
    }
}

/// `0-3,7`.
pub fn ranges(ranks: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for rank in ranks {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*rank) => *last = *rank,
            _ => ranges.push((*rank, *rank)),
        }
    }
    let text: Vec<String> = ranges
        .into_iter()
        .map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") })
        .collect();
    text.join(",")
}

/// A communicator, as its members can tell it from others.
pub fn communicator(context: u64) -> String {
    match context {
        0 => "the job's communicator".into(),
        // Bits above count the rank that made it; the number alone is short.
        _ => format!("communicator {}.{}", context >> 40, context & ((1 << 40) - 1)),
    }
}

fn sorted(ranks: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut ranks: Vec<u32> = ranks.collect();
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

/// Ranks that wait for each other in a circle.
pub fn of_cycle(cycle: &[Edge<'_>]) -> Verdict {
    let culprits = sorted(cycle.iter().map(|edge| edge.from));
    let subjects: Vec<Subject> = cycle.iter().filter_map(|edge| Some(edge.wait?.subject)).collect();
    let all = |is: fn(&Subject) -> bool| subjects.len() == cycle.len() && subjects.iter().all(is);
    let (what, advice) = if all(|s| matches!(s, Subject::Lock { .. })) {
        (
            "each hold a lock that the next wants",
            "take locks in the same order at all ranks, or unlock one before the next is taken",
        )
    } else if all(|s| matches!(s, Subject::Collective { .. })) && subjects.iter().all(|s| *s == subjects[0]) {
        (
            "are in the same collective, which is under way",
            "ask again: if the same ranks wait for each other then, `transom doctor` examines the network",
        )
    } else if all(|s| matches!(s, Subject::Collective { .. })) {
        (
            "are in different collectives",
            "call the collectives of all communicators and windows in the same order at all ranks",
        )
    } else if all(|s| matches!(s, Subject::Send)) {
        (
            "send to each other, and none receives",
            "receive first at one of them, or use sendrecv, isend or irecv",
        )
    } else if all(|s| matches!(s, Subject::Receive)) {
        ("each wait for a message of the next, and none sends", "send first at one of them")
    } else if all(|s| matches!(s, Subject::Post)) {
        ("each wait for the next to post its window", "post before start, at all of them")
    } else {
        ("wait for each other in a circle", "make one of these calls after the one that it waits for")
    };
    let text = format!("{} {what} ({}){}", names(&culprits), circle(cycle), places(cycle));
    Verdict { ranks: culprits, text, advice: advice.into() }
}

/// `0 -> 1 -> 0`: who waits for whom, in the order of the table above it.
fn circle(cycle: &[Edge<'_>]) -> String {
    let mut ranks: Vec<String> = cycle.iter().map(|edge| edge.from.to_string()).collect();
    if ranks.len() > LONGEST_CIRCLE {
        ranks.truncate(LONGEST_CIRCLE);
        ranks.push("...".into());
    }
    ranks.push(cycle[0].from.to_string());
    ranks.join(" -> ")
}

/// In which collectives the ranks of a circle are, if that is what it is made of.
fn places(cycle: &[Edge<'_>]) -> String {
    let place = |edge: &Edge<'_>| match edge.wait {
        Some(Wait { subject: Subject::Collective { context, .. }, call, .. }) => {
            Some(format!("rank {} in {call} of {}", edge.from, communicator(*context)))
        }
        _ => None,
    };
    let places: Option<Vec<String>> = cycle.iter().take(LONGEST_CIRCLE).map(place).collect();
    places.map_or_else(String::new, |places| format!(": {}", places.join(", ")))
}

/// What a rank does that does not wait for another.
pub fn doing(rank: &RankView) -> String {
    match (rank.state, &rank.sleeps_in) {
        (State::Stopped, _) => "is stopped".into(),
        (State::Ended, _) => "has ended".into(),
        _ if !rank.waits.is_empty() => {
            let (wait, _) = &rank.waits[0];
            format!("waits in {} for {}", wait.call, wait.what)
        }
        _ if rank.left => "has left the job".into(),
        _ if !rank.joined => "has not joined the job".into(),
        (State::Runs, _) => "computes outside of Transom".into(),
        (State::Sleeps, Some(place)) => format!("sleeps outside of Transom ({place})"),
        (State::Sleeps, None) => "sleeps outside of Transom".into(),
    }
}

/// A rank that others wait for, and that waits for none.
pub fn of_end(ranks: &Ranks<'_>, end: u32, to_it: &[Edge<'_>]) -> Verdict {
    let Some(view) = ranks.get(&end) else {
        let text = format!("nothing is known of rank {end}, for which others wait");
        return Verdict { ranks: vec![end], text, advice: "see whether its host answers".into() };
    };
    let waiting = match to_it.first().and_then(|edge| edge.wait) {
        Some(wait) if matches!(wait.subject, Subject::Collective { .. }) => together(ranks, wait),
        _ => sorted(to_it.iter().map(|edge| edge.from)),
    };
    let pid = view.pid;
    let one_host = ranks.values().all(|rank| rank.host == view.host);
    let place = if one_host { String::new() } else { format!(" on {}", view.host) };
    let (text, advice) = match view.state {
        State::Stopped => {
            let guess = if to_it.iter().all(|edge| edge.why == Why::Maybe) && !to_it.is_empty() {
                ", it seems"
            } else {
                ""
            };
            let wait = verb(&waiting);
            let at = view.place().map(|place| format!(", {}", place.text())).unwrap_or_default();
            (
                format!(
                    "rank {end} is stopped (process {pid}{place}{at}); {} {wait} for it{guess}",
                    names(&waiting)
                ),
                format!("continue it: kill -CONT {pid}; or detach the debugger"),
            )
        }
        State::Ended => (
            format!("rank {end} has ended; {} {} for it", names(&waiting), verb(&waiting)),
            "see what it printed last".into(),
        ),
        _ => of_running(view, &place, &waiting, to_it),
    };
    Verdict { ranks: vec![end], text, advice }
}

/// The ranks that are in the same collective as one of them.
fn together(ranks: &Ranks<'_>, wait: &Wait) -> Vec<u32> {
    let inside = |rank: &&&RankView| rank.waits.iter().any(|(other, _)| other.subject == wait.subject);
    sorted(ranks.values().filter(inside).map(|rank| rank.rank))
}

fn verb(ranks: &[u32]) -> &'static str {
    if ranks.len() == 1 { "waits" } else { "wait" }
}

/// The same of one whose process runs: what it has not done.
fn of_running(view: &RankView, place: &str, waiting: &[u32], to_it: &[Edge<'_>]) -> (String, String) {
    let at = view.place().map(|place| format!(", {}", place.text())).unwrap_or_default();
    let (end, who, doing) = (view.rank, names(waiting), doing(view) + &at);
    let gdb = format!("look at its stack: gdb -p {} -batch -ex 'thread apply all bt'{place}", view.pid);
    let line = view.place().filter(|place| place.line.is_some());
    let look = line.map_or(gdb, |place| format!("see {}", place.source()));
    let Some(edge) = to_it.first() else {
        return (format!("rank {end} {doing}, and no rank is known to be about to do that"), look);
    };
    let Some(wait) = edge.wait else {
        let text = format!("rank {end} has not called init, for which {who} {}{at}", verb(waiting));
        return (text, look);
    };
    let missing = match wait.subject {
        Subject::Lock { .. } if edge.why == Why::Maybe => {
            format!("does not say whether it holds {}", wait.what)
        }
        Subject::Lock { .. } => format!("holds a lock, and {who} {} for {}", verb(waiting), wait.what),
        Subject::Post => format!("has not called post for {who}"),
        Subject::Complete => format!("has not called complete for {who}"),
        Subject::Collective { .. } => format!("is missing from {}, where {who} {}", wait.call, verb(waiting)),
        Subject::Send => {
            format!("does not receive what {who} {}", if waiting.len() == 1 { "sends" } else { "send" })
        }
        Subject::Receive => format!("does not send what {who} {} for", verb(waiting)),
        Subject::Target => format!("does not answer {who} ({})", wait.what),
        Subject::Room => format!("does not empty its queue, where {who} {} for room", verb(waiting)),
        Subject::Other => format!("is who {who} {} for", verb(waiting)),
    };
    let advice = match wait.subject {
        Subject::Lock { .. } => "it has to unlock".to_owned(),
        Subject::Post => format!("it has to call post with {who} in its group"),
        Subject::Complete => "it has to call complete".to_owned(),
        Subject::Collective { .. } => format!("it has to call {}, too", wait.call),
        Subject::Send => "it has to receive (tags and communicator as above)".to_owned(),
        Subject::Receive => "it has to send (tag and communicator as above)".to_owned(),
        _ => String::new(),
    };
    let advice = match (advice.is_empty(), line) {
        (true, _) => look,
        (false, Some(_)) => advice,
        (false, None) => format!("{advice}; {look}"),
    };
    (format!("rank {end} {missing}; it {doing}"), advice)
}
