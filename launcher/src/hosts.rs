//! Which hosts, and how many ranks on each.

use std::collections::HashMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::process::host_name;
use crate::ranks::Ranks;

/// A host as the user or a batch system named it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// How many ranks it takes, if that was said.
    pub slots: Option<u32>,
}

/// The ranks of one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Name of the host.
    pub host: String,
    /// Which, at least one.
    pub ranks: Ranks,
}

/// Why the hosts cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The file cannot be read.
    #[error("hostfile {0}: {1}")]
    File(String, String),
    /// What a batch system has written cannot be read.
    #[error("{0}: {1}")]
    Unread(String, String),
    /// No host in the list or in the file.
    #[error("{0}: no host in it")]
    Empty(String),
    /// Something that is no host.
    #[error("{place}: {text:?} {reason}")]
    Bad {
        /// Where it stands.
        place: String,
        /// What stands there.
        text: String,
        /// What is wrong.
        reason: &'static str,
    },
    /// Fewer slots than ranks on each host.
    #[error("host {host} has {slots} slots, and {ranks} ranks are asked for on each (-N)")]
    PerNode {
        /// The host.
        host: String,
        /// Its slots.
        slots: u32,
        /// Ranks asked for.
        ranks: u32,
    },
    /// More ranks than slots.
    #[error(
        "{ranks} ranks do not fit into the {slots} slots of the hosts; give more slots (HOST:N) or fewer ranks (-n)"
    )]
    Full {
        /// Ranks asked for.
        ranks: u32,
        /// Slots there are.
        slots: u64,
    },
}

/// Reads `a,b:4`.
pub fn parse_list(list: &str) -> Result<Vec<Host>, HostError> {
    let place = "--hosts".to_owned();
    if list.trim().is_empty() {
        return Err(HostError::Empty(place));
    }
    list.split(',').map(|text| parse_host(text.trim(), &place)).collect::<Result<_, _>>().and_then(merge)
}

/// Reads a hostfile.
pub fn read_file(path: &Path) -> Result<Vec<Host>, HostError> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|e| HostError::File(name.clone(), e.to_string()))?;
    let mut hosts = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim();
        if !line.is_empty() {
            hosts.push(parse_line(line, &format!("{name} line {}", index + 1))?);
        }
    }
    if hosts.is_empty() {
        return Err(HostError::Empty(name));
    }
    merge(hosts)
}

fn parse_line(line: &str, place: &str) -> Result<Host, HostError> {
    let mut words = line.split_whitespace();
    let mut host = parse_host(words.next().unwrap_or(""), place)?;
    let mut most_slots: Option<u32> = None;
    for word in words {
        let bad = |reason| HostError::Bad { place: place.to_owned(), text: word.to_owned(), reason };
        let number =
            |text| parse_slots(text).ok_or_else(|| bad("is not a number of slots from 1 to 1000000"));
        // Open MPI's `max_slots` says how many ranks at most, which slots do here: without them it stands for them.
        match (
            word.strip_prefix("slots="),
            word.strip_prefix("max_slots=").or(word.strip_prefix("max-slots=")),
        ) {
            (Some(slots), _) => host.slots = Some(number(slots)?),
            (None, Some(most)) => most_slots = Some(number(most)?),
            (None, None) => return Err(bad("is neither slots=N nor max_slots=N")),
        }
    }
    if let Some(most) = most_slots {
        host.slots = Some(host.slots.map_or(most, |slots| slots.min(most)));
    }
    Ok(host)
}

/// `HOST`, `HOST:N`, `[ADDRESS]` or `[ADDRESS]:N`; more than one colon is an IPv6 address.
pub(crate) fn parse_host(text: &str, place: &str) -> Result<Host, HostError> {
    let bad = |reason| HostError::Bad { place: place.to_owned(), text: text.to_owned(), reason };
    let (name, slots) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, "")) => (name, None),
        Some((name, rest)) => (name, Some(rest.strip_prefix(':').ok_or_else(|| bad("is no host"))?)),
        None => match text.split_once(':') {
            Some((name, slots)) if !slots.contains(':') => (name, Some(slots)),
            _ => (text, None),
        },
    };
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-._:%@".contains(c);
    if name.is_empty() {
        return Err(bad("has no host name"));
    }
    // A name that starts with a dash would be a flag to ssh.
    if name.starts_with('-') || !name.chars().all(allowed) {
        return Err(bad("is no host name"));
    }
    let count = |slots| {
        parse_slots(slots).ok_or_else(|| bad("has no number of slots from 1 to 1000000 behind the colon"))
    };
    Ok(Host { name: name.to_owned(), slots: slots.map(count).transpose()? })
}

pub(crate) fn parse_slots(text: &str) -> Option<u32> {
    text.parse().ok().filter(|slots| (1..=1_000_000).contains(slots))
}

/// A host that is named twice is one host with the slots of both.
pub(crate) fn merge(hosts: Vec<Host>) -> Result<Vec<Host>, HostError> {
    let mut merged: Vec<Host> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for host in hosts {
        match known.get(&host.name).and_then(|at| merged.get_mut(*at)) {
            Some(other) => {
                other.slots = Some(other.slots.unwrap_or(1).saturating_add(host.slots.unwrap_or(1)));
            }
            None => {
                known.insert(host.name.clone(), merged.len());
                merged.push(host);
            }
        }
    }
    Ok(merged)
}

/// Number of slots if any host said one; hosts that did not have one each.
pub fn total_slots(hosts: &[Host]) -> Option<u64> {
    let any = hosts.iter().any(|host| host.slots.is_some());
    any.then(|| hosts.iter().map(|host| u64::from(host.slots.unwrap_or(1))).sum())
}

/// Gives each host so many slots, which it must have if its own number is known.
pub fn per_node(hosts: &mut [Host], ranks: u32) -> Result<(), HostError> {
    for host in hosts {
        if let Some(slots) = host.slots.filter(|slots| *slots < ranks) {
            return Err(HostError::PerNode { host: host.name.clone(), slots, ranks });
        }
        host.slots = Some(ranks);
    }
    Ok(())
}

/// Gives each host its ranks: consecutive ones, or with `in_turn` every host one until its slots are full; hosts that get none are left out.
pub fn place(hosts: &[Host], ranks: u32, in_turn: bool) -> Result<Vec<Block>, HostError> {
    let by_slots = total_slots(hosts);
    if let Some(slots) = by_slots.filter(|slots| u64::from(ranks) > *slots) {
        return Err(HostError::Full { ranks, slots });
    }
    let host_count = u32::try_from(hosts.len()).unwrap_or(u32::MAX).max(1);
    let (even, extra) = (ranks / host_count, ranks % host_count);
    let most = |(index, host): (usize, &Host)| {
        let share = even + u32::from((index as u64) < u64::from(extra));
        by_slots.map_or(share, |_| host.slots.unwrap_or(1))
    };
    let most: Vec<u32> = hosts.iter().enumerate().map(most).collect();
    let mut of_hosts = vec![Ranks::default(); hosts.len()];
    let mut next = 0;
    while next < ranks {
        for (own, most) in of_hosts.iter_mut().zip(&most) {
            let free = (most - own.count()).min(ranks - next);
            let count = if in_turn { free.min(1) } else { free };
            (next..next + count).for_each(|rank| own.push(rank));
            next += count;
        }
    }
    let blocks = hosts.iter().zip(of_hosts).map(|(host, ranks)| Block { host: host.name.clone(), ranks });
    Ok(blocks.filter(|block| block.ranks.count() > 0).collect())
}

/// `PMI_process_mapping`: runs of hosts with equally many consecutive ranks, as (first host, hosts, ranks on each), which begin again when
/// there are more ranks (so MPICH reads it).
pub fn process_mapping(blocks: &[Block]) -> String {
    let size: u32 = blocks.iter().map(|block| block.ranks.count()).sum();
    let mut host_of = vec![0; size as usize];
    for (index, block) in blocks.iter().enumerate() {
        for rank in block.ranks.iter() {
            if let Some(host) = host_of.get_mut(rank as usize) {
                *host = index;
            }
        }
    }
    let mut runs: Vec<(usize, usize, usize)> = Vec::new();
    for same in host_of.chunk_by(|a, b| a == b) {
        match runs.last_mut() {
            Some((first, hosts, count)) if *count == same.len() && *first + *hosts == same[0] => *hosts += 1,
            _ => runs.push((same[0], 1, same.len())),
        }
    }
    // The last one may be cut off.
    let repeats = |period: &usize| {
        let last = runs.len() - 1;
        runs.iter().enumerate().all(|(at, run)| {
            let other = runs[at % period];
            *run == other || at == last && (run.0, run.2) == (other.0, other.2) && run.1 < other.1
        })
    };
    let period = (1..runs.len()).find(repeats).unwrap_or(runs.len());
    let runs: Vec<String> =
        runs[..period].iter().map(|(first, hosts, count)| format!("({first},{hosts},{count})")).collect();
    format!("(vector,{})", runs.join(","))
}

/// Whether a name means this host.
pub fn is_local(name: &str) -> bool {
    let own = host_name();
    let short = own.split('.').next().unwrap_or(&own);
    ["localhost", "127.0.0.1", "::1", own.as_str(), short].contains(&name)
}

/// Whether a batch system's name for a host is this one's, which either may have written with its domain.
pub fn is_this(name: &str) -> bool {
    let own = host_name();
    let label = |name: &str| name.split('.').next().unwrap_or("").to_owned();
    let address = name.parse::<std::net::IpAddr>().is_ok();
    is_local(name) || !address && label(name) == label(&own) && !(name.contains('.') && own.contains('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(list: &str, ranks: u32) -> Vec<u32> {
        let blocks = place(&parse_list(list).unwrap(), ranks, false).unwrap();
        assert!(blocks.iter().flat_map(|block| block.ranks.iter()).eq(0..ranks));
        blocks.iter().map(|block| block.ranks.count()).collect()
    }

    #[test]
    fn ranks_fill_slots_or_spread() {
        assert_eq!(counts("a,b", 4), [2, 2]);
        assert_eq!(counts("a,b,c", 5), [2, 2, 1]);
        assert_eq!(counts("a,b,c", 2), [1, 1]);
        assert_eq!(counts("a:2,b:3", 4), [2, 2]);
        assert_eq!(counts("a:2,b,c:3", 6), [2, 1, 3]);
        assert_eq!(counts("a,b,a", 3), [2, 1]);
        let full = place(&parse_list("a:1,b:1").unwrap(), 3, true);
        assert_eq!(full, Err(HostError::Full { ranks: 3, slots: 2 }));
    }

    #[test]
    fn hosts_in_turn() {
        let ranks = |list, ranks| {
            let blocks = place(&parse_list(list).unwrap(), ranks, true).unwrap();
            blocks.iter().map(|block| block.ranks.iter().collect::<Vec<_>>()).collect::<Vec<_>>()
        };
        assert_eq!(ranks("a,b,c", 5), [vec![0, 3], vec![1, 4], vec![2]]);
        assert_eq!(ranks("a:1,b:9,c:2", 7), [vec![0], vec![1, 3, 5, 6], vec![2, 4]]);
        assert_eq!(ranks("a,b,c", 2), [[0], [1]]);
    }

    #[test]
    fn as_many_on_each() {
        let mut hosts = parse_list("a,b:3").unwrap();
        assert!(per_node(&mut hosts, 4).unwrap_err().to_string().contains("host b has 3 slots"));
        per_node(&mut hosts, 3).unwrap();
        assert_eq!(total_slots(&hosts), Some(6));
        let blocks = place(&hosts, 4, false).unwrap();
        assert_eq!(blocks.iter().map(|block| block.ranks.count()).collect::<Vec<_>>(), [3, 1]);
    }

    #[test]
    fn names_of_hosts() {
        let host = |text| parse_host(text, "here").map(|host| (host.name, host.slots));
        assert_eq!(host("n1.lan:3"), Ok(("n1.lan".into(), Some(3))));
        assert_eq!(host("::1"), Ok(("::1".into(), None)));
        assert_eq!(host("[fe80::1]:2"), Ok(("fe80::1".into(), Some(2))));
        assert_eq!(host("me@n1"), Ok(("me@n1".into(), None)));
        for bad in [
            "",
            ":2",
            "a:0",
            "a:x",
            "a:",
            "a:-1",
            "a:4294967296",
            "a b",
            "-oProxyCommand=x",
            "a;b",
            "[a]x",
            "$(x)",
        ] {
            assert!(host(bad).is_err(), "{bad:?}");
        }
        for bad in ["", " ", ",", "a,,b"] {
            assert!(parse_list(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn hostfiles() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let read = |text: &str| {
            std::fs::write(file.path(), text).unwrap();
            read_file(file.path())
        };
        let hosts = read("# all\n a slots=2 # first\n\nb:3\nc\n").unwrap();
        assert_eq!(total_slots(&hosts), Some(6));
        assert!(matches!(read("# none\n"), Err(HostError::Empty(_))));
        let most = read("a max_slots=3\nb slots=2 max_slots=8\nc max-slots=1 slots=4\n").unwrap();
        assert_eq!(most.iter().map(|host| host.slots).collect::<Vec<_>>(), [Some(3), Some(2), Some(1)]);
        for (text, line) in [("a slots=x", "line 1"), ("a\nb size=2", "line 2"), ("a slots=0", "line 1")] {
            assert!(read(text).unwrap_err().to_string().contains(line), "{text}");
        }
        assert!(matches!(read_file(Path::new("/nonexistent")), Err(HostError::File(..))));
    }

    #[test]
    fn mapping_of_blocks() {
        let of =
            |list, ranks, turn| process_mapping(&place(&parse_list(list).unwrap(), ranks, turn).unwrap());
        let mapping = |list, ranks| of(list, ranks, false);
        assert_eq!(mapping("a", 4), "(vector,(0,1,4))");
        assert_eq!(mapping("a,b", 4), "(vector,(0,2,2))");
        assert_eq!(mapping("a,b,c", 5), "(vector,(0,2,2),(2,1,1))");
        assert_eq!(mapping("a:2,b:1,c:2,d:1", 6), "(vector,(0,1,2),(1,1,1),(2,1,2),(3,1,1))");
        for ranks in [3, 5, 6, 64] {
            assert_eq!(of("a,b,c", ranks, true), "(vector,(0,3,1))");
        }
        assert_eq!(of("a,b,c", 2, true), "(vector,(0,2,1))");
        assert_eq!(of("a:1,b:9,c:2", 7, true), "(vector,(0,3,1),(1,2,1),(1,1,2))");
    }
}
