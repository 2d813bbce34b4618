//! The measurements by name, in groups.

use std::fmt::Write;

use crate::operation::{Sync, Verb};

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Time of one operation, by size.
    Latency(Verb),
    /// Bytes a second of many operations, by size.
    Bandwidth(Verb),
    /// Puts both ways at once.
    Bidirectional,
    /// Small operations a second, of pairs.
    Rate(Verb),
    /// Small puts a second, of threads.
    Threads,
    /// A call of one rank, or of two.
    Call(Call),
    /// A call of all ranks, on parts of the job.
    Collective(Collective),
    /// An operation while the target computes, and what completes it.
    Passive(Verb, usize, Sync),
    /// All ranks want one lock.
    LockContention,
    /// All ranks change one word.
    AtomicContention,
    /// What part of a put's time can be computed in.
    Overlap,
    /// A window from its making to its end.
    WindowCycle,
    /// The first operation in a window.
    First,
    /// Memory that becomes a dynamic window's, and is its no more.
    Attach,
    /// A job from its start to its end.
    StartUp,
    /// Updates of random places of a table that all ranks hold.
    RandomAccess,
    /// Edges to four neighbours.
    Halo,
    /// A block to every rank, by puts.
    AllToAllPuts,
    /// Two-sided messages and collectives.
    Message(Message),
    /// All pairs of ranks: latency.
    MatrixLatency,
    /// All pairs of ranks: bandwidth.
    MatrixBandwidth,
}

/// Calls of one rank, to the other of its pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// Put of 8 B, flush: what a flush waits for.
    PutFlush,
    /// Flush with nothing to complete.
    Flush,
    /// Flush_local with nothing to complete.
    FlushLocal,
    /// Exclusive lock and unlock.
    LockExclusive,
    /// Shared lock and unlock.
    LockShared,
    /// Exclusive lock, put, unlock.
    LockPut,
    /// Lock_all and unlock_all.
    LockAll,
    /// `MPI_Win_sync`.
    Sync,
    /// A put that notifies, one way.
    Notify,
}

/// Calls of all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collective {
    /// A barrier.
    Barrier,
    /// A fence.
    Fence,
    /// Puts to the next rank, and the fence that completes them.
    PutFence,
    /// Post, start, complete, wait between neighbours of a ring.
    Pscw,
    /// The same between two on each side, both ways.
    Neighbours,
}

/// Two-sided messages and collectives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message {
    /// A message, one way.
    PingPong,
    /// A message to the next rank and one from the rank before, nonblocking.
    Exchange,
    /// Rank 0's data to all.
    Broadcast,
    /// Sums of all.
    AllReduce,
    /// The same, nonblocking.
    NonblockingAllReduce,
    /// A block to every rank.
    AllToAll,
}

/// A name, and what it is.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// The name.
    pub name: &'static str,
    /// Its group.
    pub group: &'static str,
    /// For people.
    pub about: &'static str,
    /// What is measured.
    pub what: What,
}

const fn entry(group: &'static str, name: &'static str, what: What, about: &'static str) -> Entry {
    Entry { name, group, about, what }
}

const KIB_64: usize = 64 << 10;

/// All measurements, in the order of the table.
pub const ENTRIES: [Entry; 51] = [
    entry("latency", "put-latency", What::Latency(Verb::Put), "one put, completed"),
    entry("latency", "get-latency", What::Latency(Verb::Get), "one get, completed"),
    entry("latency", "accumulate-latency", What::Latency(Verb::Accumulate), "one sum of doubles, completed"),
    entry(
        "latency",
        "get-accumulate-latency",
        What::Latency(Verb::GetAccumulate),
        "the same, with what was there",
    ),
    entry("latency", "fetch-and-op-latency", What::Latency(Verb::FetchAndOp), "one fetch-and-add of a word"),
    entry(
        "latency",
        "compare-and-swap-latency",
        What::Latency(Verb::CompareAndSwap),
        "one compare-and-swap of a word",
    ),
    entry(
        "bandwidth",
        "put-bandwidth",
        What::Bandwidth(Verb::Put),
        "up to 64 puts, at both ends one behind the other, completed together",
    ),
    entry(
        "bandwidth",
        "get-bandwidth",
        What::Bandwidth(Verb::Get),
        "up to 64 gets, at both ends one behind the other, completed together",
    ),
    entry(
        "bandwidth",
        "accumulate-bandwidth",
        What::Bandwidth(Verb::Accumulate),
        "up to 64 sums of doubles to one place, completed together",
    ),
    entry("bandwidth", "put-bidirectional", What::Bidirectional, "the same puts both ways at once"),
    entry(
        "rate",
        "put-rate",
        What::Rate(Verb::Put),
        "puts of 8 B, 1000 one behind the other before a flush, by all pairs at once",
    ),
    entry(
        "rate",
        "get-rate",
        What::Rate(Verb::Get),
        "gets of 8 B, 1000 one behind the other, by all pairs at once",
    ),
    entry(
        "rate",
        "thread-rate",
        What::Threads,
        "puts of 8 B, 1000 before a flush, by threads of rank 0 with a window each",
    ),
    entry("sync", "put-flush", What::Call(Call::PutFlush), "put of 8 B and its flush"),
    entry("sync", "flush", What::Call(Call::Flush), "flush with nothing to complete"),
    entry("sync", "flush-local", What::Call(Call::FlushLocal), "flush_local with nothing to complete"),
    entry("sync", "lock-unlock", What::Call(Call::LockExclusive), "exclusive lock of a rank, flush, unlock"),
    entry("sync", "lock-shared", What::Call(Call::LockShared), "shared lock of a rank, flush, unlock"),
    entry(
        "sync",
        "lock-put-unlock",
        What::Call(Call::LockPut),
        "exclusive lock of a rank, put of 8 B, unlock",
    ),
    entry("sync", "lock-all", What::Call(Call::LockAll), "lock_all, put of 8 B, unlock_all"),
    entry("sync", "win-sync", What::Call(Call::Sync), "MPI_Win_sync"),
    entry(
        "sync",
        "put-notify",
        What::Call(Call::Notify),
        "put of 8 B with notification, until the target has seen it",
    ),
    entry("sync", "fence", What::Collective(Collective::Fence), "a fence, against the number of ranks"),
    entry(
        "sync",
        "put-fence",
        What::Collective(Collective::PutFence),
        "put of 8 B to the next rank and the fence that completes it, against the number of ranks",
    ),
    entry(
        "sync",
        "pscw",
        What::Collective(Collective::Pscw),
        "post, start, put, complete, wait around a ring, against the number of ranks",
    ),
    entry(
        "sync",
        "pscw-neighbours",
        What::Collective(Collective::Neighbours),
        "the same with two ranks on each side, both ways",
    ),
    entry("sync", "barrier", What::Collective(Collective::Barrier), "a barrier, against the number of ranks"),
    entry(
        "passive",
        "passive-put",
        What::Passive(Verb::Put, 8, Sync::Flush),
        "put of 8 B while the target computes",
    ),
    entry(
        "passive",
        "passive-lock",
        What::Passive(Verb::Put, 8, Sync::Lock),
        "exclusive lock, put of 8 B and unlock meanwhile",
    ),
    entry(
        "passive",
        "passive-get",
        What::Passive(Verb::Get, 8, Sync::Flush),
        "get of 8 B while the target computes",
    ),
    entry(
        "passive",
        "passive-fetch-and-op",
        What::Passive(Verb::FetchAndOp, 8, Sync::Flush),
        "fetch-and-add while the target computes",
    ),
    entry(
        "passive",
        "passive-compare-and-swap",
        What::Passive(Verb::CompareAndSwap, 8, Sync::Flush),
        "compare-and-swap while the target computes",
    ),
    entry(
        "passive",
        "passive-accumulate",
        What::Passive(Verb::Accumulate, KIB_64, Sync::Flush),
        "sum of 64 KiB of doubles while the target computes",
    ),
    entry(
        "contention",
        "lock-contention",
        What::LockContention,
        "all ranks take one lock: locks a second, and how equal",
    ),
    entry(
        "contention",
        "atomic-contention",
        What::AtomicContention,
        "all ranks add to one word: additions a second, and how equal",
    ),
    entry("overlap", "put-overlap", What::Overlap, "part of a put's time in which the origin can compute"),
    entry(
        "window",
        "window-create-free",
        What::WindowCycle,
        "a window of 4 KiB a rank: made and freed by all ranks",
    ),
    entry(
        "window",
        "first-put",
        What::First,
        "the first put of 8 B in a window, and its flush: finds the way to the target",
    ),
    entry("window", "attach-detach", What::Attach, "memory attached to a dynamic window, and detached"),
    entry("window", "start-up", What::StartUp, "a job of as many ranks on rank 0's host, from start to end"),
    entry(
        "application",
        "random-access",
        What::RandomAccess,
        "updates of random words of a table (GUPS), verified",
    ),
    entry(
        "application",
        "halo-exchange",
        What::Halo,
        "edges put to four neighbours, synchronised as --sync says",
    ),
    entry(
        "application",
        "all-to-all-puts",
        What::AllToAllPuts,
        "a block put to every rank, flushed, a barrier",
    ),
    entry("messages", "ping-pong", What::Message(Message::PingPong), "a two-sided message, one way"),
    entry(
        "messages",
        "message-exchange",
        What::Message(Message::Exchange),
        "MPI_Irecv, MPI_Isend, MPI_Waitall around a ring",
    ),
    entry("messages", "broadcast", What::Message(Message::Broadcast), "MPI_Bcast"),
    entry("messages", "allreduce", What::Message(Message::AllReduce), "MPI_Allreduce: a sum of doubles"),
    entry(
        "messages",
        "iallreduce",
        What::Message(Message::NonblockingAllReduce),
        "MPI_Iallreduce, and MPI_Wait at once",
    ),
    entry("messages", "all-to-all", What::Message(Message::AllToAll), "MPI_Alltoall"),
    entry("matrix", "matrix-latency", What::MatrixLatency, "put of 8 B, between all pairs of ranks"),
    entry("matrix", "matrix-bandwidth", What::MatrixBandwidth, "put of 1 MiB, between all pairs of ranks"),
];

/// The entries that names and groups stand for, in the order of the table; all of them if there is no name.
///
/// # Errors
/// A name that is none, with those that are like it.
pub fn select(names: &[String]) -> Result<Vec<Entry>, String> {
    for name in names {
        if !ENTRIES.iter().any(|entry| stands_for(name, entry)) {
            return Err(unknown(name, ENTRIES.iter().flat_map(|entry| [entry.name, entry.group])));
        }
    }
    let wanted = |entry: &&Entry| names.is_empty() || names.iter().any(|name| stands_for(name, entry));
    Ok(ENTRIES.iter().filter(wanted).copied().collect())
}

fn stands_for(name: &str, entry: &Entry) -> bool {
    name == entry.name || name == entry.group
}

/// That there is no such name among those, with some that are like it.
pub fn unknown<'a>(name: &str, all: impl Iterator<Item = &'a str>) -> String {
    let mut near: Vec<(f64, &str)> =
        all.map(|known| (likeness(name, known), known)).filter(|(like, _)| *like > 0.75).collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    near.dedup_by_key(|(_, known)| *known);
    let near: Vec<&str> = near.into_iter().take(4).map(|(_, known)| known).collect();
    let hint = if near.is_empty() { String::new() } else { format!("is it {}? ", near.join(", ")) };
    format!("no measurement or group {name:?}: {hint}--list has all")
}

fn likeness(name: &str, known: &str) -> f64 {
    let (name, known) = (name.to_lowercase().replace('_', "-"), known.to_owned());
    if name.len() > 2 && known.contains(&name) { 1.0 } else { strsim::jaro_winkler(&name, &known) }
}

/// All of them for people.
pub fn list() -> String {
    let mut text = String::new();
    let mut group = "";
    for entry in &ENTRIES {
        if entry.group != group {
            group = entry.group;
            let _ = writeln!(text, "{group}");
        }
        let _ = writeln!(text, "  {:26}{}", entry.name, entry.about);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Result<Vec<&'static str>, String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        Ok(select(&names)?.into_iter().map(|entry| entry.name).collect())
    }

    #[test]
    fn names_and_groups() {
        assert_eq!(names(&[]).unwrap().len(), ENTRIES.len());
        assert_eq!(names(&["fence", "put-latency"]).unwrap(), ["put-latency", "fence"]);
        assert_eq!(names(&["rate"]).unwrap(), ["put-rate", "get-rate", "thread-rate"]);
        let mut all = names(&[]).unwrap();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), ENTRIES.len());
    }

    #[test]
    fn near_names() {
        let error = names(&["put_latncy"]).unwrap_err();
        assert!(error.contains("put-latency"), "{error}");
        assert!(names(&["cas"]).unwrap_err().contains("--list"));
        assert!(names(&["band"]).unwrap_err().contains("bandwidth"));
    }

    #[test]
    fn the_list_has_all() {
        let list = list();
        assert!(ENTRIES.iter().all(|entry| list.contains(entry.name) && list.contains(entry.about)));
    }
}
