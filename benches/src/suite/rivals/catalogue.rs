//! What the program in C measures: names of the suite, and some of its own.

use crate::suite::catalogue::{ENTRIES, Entry, unknown};

/// A measurement of the program in C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measurement {
    /// The name.
    pub name: &'static str,
    /// Its group: what one start of the program measures.
    pub group: &'static str,
    /// For people.
    pub about: &'static str,
}

const fn own(group: &'static str, name: &'static str, about: &'static str) -> Measurement {
    Measurement { name, group, about }
}

/// Where puts are looked for.
pub const VISIBLE: &str = "put-visible";

/// What has nothing to do with libraries: where it differs between them, the machine does.
pub const CONTROLS: [&str; 2] = ["locked-add", "line-round-trip"];

/// What has a meaning for more than two ranks.
const OF_MANY: [&str; 15] = [
    "put-rate",
    "get-rate",
    "accumulate-rate",
    "fence",
    "put-fence",
    "pscw",
    "barrier",
    "lock-contention",
    "atomic-contention",
    "atomic-batch-contention",
    "locked-add",
    "window-create-free",
    "broadcast",
    "allreduce",
    "all-to-all",
];

/// What only this program has.
const OWN: [Measurement; 17] = [
    own("latency", "rput-latency", "one put with a request, waited for and flushed"),
    own("types", "sum-float", "accumulate and flush: a sum of floats"),
    own("types", "sum-int", "accumulate and flush: a sum of ints"),
    own("types", "max-double", "accumulate and flush: the greater of doubles"),
    own("types", "band-long", "accumulate and flush: bits that both have, of 8 B"),
    own("types", "prod-complex", "accumulate and flush: a product of complex doubles"),
    own("rate", "accumulate-rate", "sums of 8 B, 1000 before a flush"),
    own("contention", "atomic-batch-contention", "as atomic-contention, 64 additions before a flush"),
    own("contention", "locked-add", "what these cores do without a library: locked additions to one word"),
    own(
        "contention",
        "line-round-trip",
        "what these cores do without a library: a cache line there and back",
    ),
    own("threads", "threads-1-put", "put of 8 B and flush at MPI_THREAD_MULTIPLE, one thread"),
    own("threads", "threads-2-put-windows", "the same of two threads at once, on two windows"),
    own("threads", "threads-2-put-targets", "the same of two threads at once, on two targets"),
    own("threads", "threads-1-fetch-and-op", "fetch-and-add at MPI_THREAD_MULTIPLE, one thread"),
    own("threads", "threads-2-fetch-and-op-windows", "the same of two threads at once, on two windows"),
    own("threads", "threads-2-fetch-and-op-targets", "the same of two threads at once, on two targets"),
    own("correctness", VISIBLE, "puts that the target could read once their flush had returned"),
];

/// Names of the suite that the program has not, and why.
const WITHOUT: [(&str, &str); 11] = [
    ("put-notify", "MPI has no such call"),
    ("thread-rate", "the group threads has latencies of threads instead"),
    ("attach-detach", "windows are allocated or created"),
    ("pscw-neighbours", "pscw has a neighbour on each side"),
    ("first-put", "it is not written in C"),
    ("start-up", "it is not written in C"),
    ("random-access", "it is not written in C"),
    ("halo-exchange", "it is not written in C"),
    ("all-to-all-puts", "it is not written in C"),
    ("matrix-latency", "two ranks are one pair: put-latency"),
    ("matrix-bandwidth", "two ranks are one pair: put-bandwidth"),
];

/// All of them, each group in one piece.
pub fn all() -> Vec<Measurement> {
    let has = |entry: &&Entry| !WITHOUT.iter().any(|(name, _)| *name == entry.name);
    let of_suite = |entry: &Entry| own(entry.group, entry.name, entry.about);
    let mut all: Vec<Measurement> = ENTRIES.iter().filter(has).map(of_suite).collect();
    for measurement in OWN {
        let behind = all.iter().rposition(|other| other.group == measurement.group);
        all.insert(behind.map_or(all.len(), |at| at + 1), measurement);
    }
    all
}

fn stands_for(name: &str, one: &Measurement) -> bool {
    name == one.name || name == one.group
}

/// Whether it is the name of a measurement or a group.
pub fn is_known(name: &str) -> bool {
    all().iter().any(|one| stands_for(name, one))
}

/// What the names and groups stand for among so many ranks; all of them if there is no name.
///
/// # Errors
/// A name that is none, that only the suite has, or that is of two ranks.
pub fn select(names: &[String], ranks: usize) -> Result<Vec<Measurement>, String> {
    let all = all();
    let of_all = |one: &Measurement| ranks == 2 || OF_MANY.contains(&one.name);
    let is_rate = |one: &Measurement| one.group == "rate";
    for name in names {
        if let Some((_, why)) = WITHOUT.iter().find(|(without, _)| without == name) {
            return Err(format!("{name} is not measured with --rivals: {why}"));
        }
        if !all.iter().any(|one| stands_for(name, one)) {
            let known = all.iter().flat_map(|one| [one.name, one.group]);
            return Err(unknown(name, known));
        }
        if !all.iter().any(|one| stands_for(name, one) && of_all(one)) {
            return Err(format!("{name} is of 2 ranks; of {ranks} are {}", OF_MANY.join(", ")));
        }
        if !ranks.is_multiple_of(2) && all.iter().any(|one| stands_for(name, one) && is_rate(one)) {
            return Err(format!("{name}: of {ranks} ranks one has no partner: an even number"));
        }
    }
    let wanted = |one: &Measurement| names.is_empty() || names.iter().any(|name| stands_for(name, one));
    let wanted = |one: &Measurement| wanted(one) && of_all(one) && (ranks.is_multiple_of(2) || !is_rate(one));
    Ok(all.into_iter().filter(wanted).collect())
}

/// Whether the suite has the measurement, with a limit, or to be compared with what a call from C takes.
pub fn is_of_suite(measurement: &Measurement) -> bool {
    let groups = ["latency", "bandwidth", "rate", "sync"];
    groups.contains(&measurement.group) && !OWN.contains(measurement)
}

/// All of them for people.
pub fn list() -> String {
    let mut text = String::new();
    for group in all().chunk_by(|a, b| a.group == b.group) {
        text += &format!("{}\n", group[0].group);
        group.iter().for_each(|one| text += &format!("  {:32}{}\n", one.name, one.about));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Result<Vec<&'static str>, String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        Ok(select(&names, 2)?.iter().map(|one| one.name).collect())
    }

    #[test]
    fn names_and_groups() {
        assert_eq!(names(&["put-latency"]).unwrap(), ["put-latency"]);
        assert_eq!(names(&["rate"]).unwrap(), ["put-rate", "get-rate", "accumulate-rate"]);
        assert_eq!(names(&[]).unwrap().len(), ENTRIES.len() - WITHOUT.len() + OWN.len());
        assert!(names(&["put-notify"]).unwrap_err().contains("no such call"));
        assert!(names(&["thread"]).unwrap_err().contains("threads"));
    }

    #[test]
    fn more_than_two_ranks() {
        let names = |names: &[&str], ranks| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            select(&names, ranks).map(|all| all.iter().map(|one| one.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&["sync"], 4).unwrap(), ["fence", "put-fence", "pscw", "barrier"]);
        assert_eq!(names(&[], 4).unwrap().len(), OF_MANY.len());
        assert_eq!(names(&[], 3).unwrap().len(), OF_MANY.len() - 3);
        assert!(names(&["put-latency"], 4).unwrap_err().contains("of 2 ranks"));
        assert!(names(&["rate"], 3).unwrap_err().contains("even number"));
    }

    #[test]
    fn groups_are_in_one_piece_and_the_program_has_them() {
        let all = all();
        let mut groups: Vec<&str> =
            all.chunk_by(|a, b| a.group == b.group).map(|group| group[0].group).collect();
        groups.sort_unstable();
        assert!(groups.windows(2).all(|two| two[0] != two[1]), "{groups:?}");
        let program = include_str!("../../../rivals/main.c");
        for one in all {
            assert!(program.contains(&format!("{{\"{}\", ", one.name)), "{}", one.name);
        }
    }
}
