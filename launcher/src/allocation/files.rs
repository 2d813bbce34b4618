//! The forms in which batch systems say hosts.

use crate::hosts::{Host, HostError, merge, parse_host, parse_slots};

fn bad(place: &str, text: &str, reason: &'static str) -> HostError {
    HostError::Bad { place: place.to_owned(), text: text.to_owned(), reason }
}

fn host(text: &str, slots: u32, place: &str) -> Result<Host, HostError> {
    let host = parse_host(text, place)?;
    if host.slots.is_some() {
        return Err(bad(place, text, "has slots behind a colon, and stands here once for each"));
    }
    Ok(Host { slots: Some(slots), ..host })
}

fn all(hosts: Vec<Host>, place: &str) -> Result<Vec<Host>, HostError> {
    if hosts.is_empty() { Err(HostError::Empty(place.to_owned())) } else { merge(hosts) }
}

/// Lines with their place, without those that are empty.
fn lines<'a>(text: &'a str, place: &'a str) -> impl Iterator<Item = (Vec<&'a str>, &'a str, String)> {
    let words = move |(index, line): (usize, &'a str)| {
        (line.split_whitespace().collect(), line.trim(), format!("{place} line {}", index + 1))
    };
    text.lines().enumerate().map(words).filter(|(words, ..): &(Vec<_>, _, _)| !words.is_empty())
}

/// A host a line, once for each rank that it takes.
pub(super) fn nodes(text: &str, place: &str) -> Result<Vec<Host>, HostError> {
    let one = |(words, line, place): (Vec<&str>, &str, String)| match words[..] {
        [name] => host(name, 1, &place),
        _ => Err(bad(&place, line, "is more than the name of a host")),
    };
    all(lines(text, place).map(one).collect::<Result<_, _>>()?, place)
}

/// `HOST SLOTS QUEUE PROCESSORS` a line; the same host may be there for several queues.
pub(super) fn grid_engine(text: &str, place: &str) -> Result<Vec<Host>, HostError> {
    let one = |(words, line, place): (Vec<&str>, &str, String)| match words[..] {
        [name, slots, ..] => {
            let slots = parse_slots(slots).ok_or_else(|| {
                bad(&place, line, "has no number of slots from 1 to 1000000 behind the host")
            })?;
            host(name, slots, &place)
        }
        _ => Err(bad(&place, line, "has no number of slots behind the host")),
    };
    all(lines(text, place).map(one).collect::<Result<_, _>>()?, place)
}

/// `HOST SLOTS HOST SLOTS…`
pub(super) fn pairs(text: &str, place: &str) -> Result<Vec<Host>, HostError> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let one = |pair: &[&str]| match pair {
        [name, slots] => {
            let slots = parse_slots(slots)
                .ok_or_else(|| bad(place, slots, "is not a number of slots from 1 to 1000000"))?;
            host(name, slots, place)
        }
        _ => Err(bad(place, pair.first().unwrap_or(&""), "has no number of slots behind it")),
    };
    all(words.chunks(2).map(one).collect::<Result<_, _>>()?, place)
}

/// A host for each rank, on one line.
pub(super) fn words(text: &str, place: &str) -> Result<Vec<Host>, HostError> {
    all(text.split_whitespace().map(|name| host(name, 1, place)).collect::<Result<_, _>>()?, place)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Read = fn(&str, &str) -> Result<Vec<Host>, HostError>;

    fn show(read: Read, text: &str) -> String {
        match read(text, "X") {
            Ok(hosts) => {
                let one = |host: &Host| format!("{}:{}", host.name, host.slots.map_or(0, |slots| slots));
                hosts.iter().map(one).collect::<Vec<_>>().join(" ")
            }
            Err(error) => format!("! {error}"),
        }
    }

    #[test]
    fn hosts_and_slots() {
        assert_eq!(show(nodes, "n1\nn1\n\n n2 \nn1\n"), "n1:3 n2:1");
        assert_eq!(
            show(grid_engine, "n1.lan 2 all.q@n1 UNDEFINED\nn2 1 all.q@n2 0,0\nn1.lan 3\n"),
            "n1.lan:5 n2:1"
        );
        assert_eq!(show(pairs, "n1 4 n2 8"), "n1:4 n2:8");
        assert_eq!(show(words, "n1 n1 n2"), "n1:2 n2:1");
    }

    #[test]
    fn what_is_none() {
        for (read, text, error) in [
            (nodes as Read, "", "! X: no host in it"),
            (nodes, "n1\nn2 2\n", "! X line 2: \"n2 2\" is more than the name of a host"),
            (nodes, "n1\n-oProxyCommand=x\n", "! X line 2: \"-oProxyCommand=x\" is no host name"),
            (nodes, "n1:2\n", "! X line 1: \"n1:2\" has slots behind a colon, and stands here once for each"),
            (grid_engine, "n1\n", "! X line 1: \"n1\" has no number of slots behind the host"),
            (
                grid_engine,
                "n1 0 q\n",
                "! X line 1: \"n1 0 q\" has no number of slots from 1 to 1000000 behind the host",
            ),
            (pairs, "n1 4 n2", "! X: \"n2\" has no number of slots behind it"),
            (pairs, "n1 n2", "! X: \"n2\" is not a number of slots from 1 to 1000000"),
            (pairs, " ", "! X: no host in it"),
            (words, "n1 $(x)", "! X: \"$(x)\" is no host name"),
        ] {
            assert_eq!(show(read, text), error);
        }
    }

    /// As large as such files get: the time must not be that of each line times each host.
    #[test]
    fn many_hosts() {
        let text: String = (0..500_000).map(|line| format!("node{}\n", line / 10)).collect();
        let hosts = nodes(&text, "X").unwrap();
        assert_eq!((hosts.len(), hosts[49_999].slots), (50_000, Some(10)));
    }
}
