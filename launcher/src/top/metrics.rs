//! What has been counted, as OpenMetrics text (OpenMetrics 1.0, "Text format").

use std::fmt::Write;

use crate::hang::{RankView, Report, State};

/// Labels, and a value.
type Sample = (Vec<(&'static str, String)>, f64);

/// A metric family.
struct Family {
    name: &'static str,
    ty: &'static str,
    /// Which the name ends with.
    unit: &'static str,
    help: &'static str,
    samples: Vec<Sample>,
}

/// The whole text.
pub fn text(report: &Report) -> String {
    let mut text = String::new();
    for family in families(report) {
        write_family(&mut text, &family);
    }
    text + "# EOF\n"
}

fn families(report: &Report) -> Vec<Family> {
    let job = report.summary.job.to_string();
    let family = |name, ty, unit, help, samples| Family { name, ty, unit, help, samples };
    let of_job = |value| vec![(vec![("job", job.clone())], value)];
    let rank_labels = |rank: &RankView| {
        vec![("job", job.clone()), ("rank", rank.rank.to_string()), ("host", rank.host.clone())]
    };
    let per_rank = |value: fn(&RankView) -> f64| -> Vec<Sample> {
        report.ranks.iter().map(|rank| (rank_labels(rank), value(rank))).collect()
    };
    let counted = |value: fn(&transom::waits::Traffic) -> u64| -> Vec<Sample> {
        let of = |rank: &RankView| -> Vec<Sample> {
            let labels = |path: &String| [rank_labels(rank), vec![("path", path.clone())]].concat();
            let traffic = rank.load.traffic.iter().flatten();
            traffic.map(|traffic| (labels(&traffic.path), value(traffic) as f64)).collect()
        };
        report.ranks.iter().flat_map(of).collect()
    };
    let states = report.ranks.iter().flat_map(|rank| {
        STATES.map(|(state, name)| {
            let labels = [rank_labels(rank), vec![("transom_rank_state", name.to_owned())]].concat();
            (labels, f64::from(u8::from(rank.state == state)))
        })
    });
    let info = vec![("job", job.clone()), ("program", report.summary.program.clone())];
    vec![
        family("transom_job", "info", "", "The job, and what it runs.", vec![(info, 1.0)]),
        family(
            "transom_job_ranks",
            "gauge",
            "",
            "Ranks of the job.",
            of_job(f64::from(report.summary.ranks)),
        ),
        family(
            "transom_job_age_seconds",
            "gauge",
            "seconds",
            "How long the job has run.",
            of_job(report.summary.age.as_secs_f64()),
        ),
        family(
            "transom_job_silent_hosts",
            "gauge",
            "",
            "Hosts of the job that have not answered.",
            of_job(report.silent.len() as f64),
        ),
        family("transom_rank_state", "stateset", "", "What the rank's process does.", states.collect()),
        family(
            "transom_rank_cpu_seconds",
            "counter",
            "seconds",
            "Processor time of the rank's process.",
            per_rank(|rank| rank.load.cpu.as_secs_f64()),
        ),
        family(
            "transom_rank_resident_bytes",
            "gauge",
            "bytes",
            "Memory of the rank's process that is in use, shared memory at each rank that has touched it.",
            per_rank(|rank| rank.load.resident as f64),
        ),
        family(
            "transom_rank_blocked_seconds",
            "gauge",
            "seconds",
            "How long the rank's longest call has blocked; 0: none blocks.",
            per_rank(|rank| rank.waits.iter().map(|(_, waited)| waited.as_secs_f64()).fold(0.0, f64::max)),
        ),
        family(
            "transom_operations",
            "counter",
            "",
            "Operations on windows that are counted, by the path that they took.",
            counted(|traffic| traffic.operations),
        ),
        family(
            "transom_operation_bytes",
            "counter",
            "bytes",
            "Bytes that these operations named at their targets.",
            counted(|traffic| traffic.bytes),
        ),
    ]
}

const STATES: [(State, &str); 4] =
    [(State::Runs, "runs"), (State::Sleeps, "sleeps"), (State::Stopped, "stopped"), (State::Ended, "ended")];

fn write_family(text: &mut String, Family { name, ty, unit, help, samples }: &Family) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "# TYPE {name} {ty}");
    if !unit.is_empty() {
        let _ = writeln!(text, "# UNIT {name} {unit}");
    }
    let _ = writeln!(text, "# HELP {name} {}", escaped(help));
    let suffix = match *ty {
        "counter" => "_total",
        "info" => "_info",
        _ => "",
    };
    for (labels, value) in samples {
        let labels: Vec<String> =
            labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
        let _ = writeln!(text, "{name}{suffix}{{{}}} {value}", labels.join(","));
    }
}

/// For labels' values and help: both know these three.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::time::Duration;

    use super::super::table::tests::{counted, rank, report};
    use super::*;

    fn is_name(name: &str) -> bool {
        let head = |c: char| c.is_ascii_alphabetic() || c == '_';
        name.starts_with(head) && name.chars().all(|c| head(c) || c.is_ascii_digit())
    }

    /// `a="b",…}`: the labels, with their values as they were, and what follows.
    fn labels(mut text: &str) -> (Vec<(String, String)>, &str) {
        let mut labels = Vec::new();
        loop {
            let (name, rest) = text.split_once("=\"").unwrap();
            assert!(is_name(name), "{text}");
            let (mut value, mut chars) = (String::new(), rest.char_indices());
            let end = loop {
                match chars.next().unwrap() {
                    (at, '"') => break at,
                    (_, '\\') => value.push(match chars.next().unwrap().1 {
                        'n' => '\n',
                        c @ ('\\' | '"') => c,
                        c => panic!("\\{c} is no escape"),
                    }),
                    (_, c) => value.push(c),
                }
            };
            labels.push((name.to_owned(), value));
            text = &rest[end + 1..];
            match text.strip_prefix(',') {
                Some(rest) => text = rest,
                None => return (labels, text.strip_prefix("} ").unwrap()),
            }
        }
    }

    /// Checks a text against the rules of OpenMetrics 1.0; gives its samples.
    fn checked(text: &str) -> BTreeMap<(String, Vec<(String, String)>), f64> {
        let body = text.strip_suffix("# EOF\n").unwrap();
        assert!(!body.contains("# EOF"));
        let (mut samples, mut families) = (BTreeMap::new(), BTreeSet::new());
        let (mut name, mut ty, mut said) = ("", "", BTreeSet::new());
        for line in body.lines() {
            if let Some(meta) = line.strip_prefix("# ") {
                let [keyword, of, value] = meta.splitn(3, ' ').collect::<Vec<_>>()[..] else {
                    panic!("{line}")
                };
                if of != name {
                    // The lines of a family stand together.
                    assert!(families.insert(of) && is_name(of), "{line}");
                    (name, ty, said) = (of, "unknown", BTreeSet::new());
                }
                assert!(said.insert(keyword), "twice: {line}");
                match keyword {
                    "TYPE" => ty = value,
                    "UNIT" => assert!(name.ends_with(&format!("_{value}")), "{line}"),
                    "HELP" => assert!(!value.contains('\n')),
                    _ => panic!("{line}"),
                }
                continue;
            }
            said.extend(["TYPE", "UNIT", "HELP"]);
            let (sample, rest) = line.split_once('{').unwrap();
            let (labels, value) = labels(rest);
            let value: f64 = value.parse().unwrap();
            let names: BTreeSet<&String> = labels.iter().map(|(name, _)| name).collect();
            assert_eq!(names.len(), labels.len(), "a label twice: {line}");
            match ty {
                "counter" => assert!(sample == format!("{name}_total") && value >= 0.0, "{line}"),
                "gauge" => assert_eq!(sample, name),
                "info" => assert!(sample == format!("{name}_info") && value == 1.0, "{line}"),
                "stateset" => {
                    assert!(sample == name && [0.0, 1.0].contains(&value), "{line}");
                    assert!(labels.iter().any(|(label, _)| label == name), "{line}");
                }
                _ => panic!("{line}"),
            }
            assert!(samples.insert((sample.to_owned(), labels), value).is_none(), "twice: {line}");
        }
        samples
    }

    #[test]
    fn the_text_keeps_to_the_grammar_and_says_what_was_counted() {
        let mut one = rank(0, "a\n\"b\\", 1000, 1500);
        one.load.traffic = counted(&[("direct", 12, 96), ("tcp agent", 3, 1 << 40)]);
        let mut two = rank(1, "c", 1000, 2);
        two.state = State::Stopped;
        let report = report(vec![one, two]);
        let samples = checked(&text(&report));
        let of = |sample: &str, labels: &[(&str, &str)]| {
            let labels = labels.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
            samples[&(sample.to_owned(), labels)]
        };
        let host = ("host", "a\n\"b\\");
        let agent = [("job", "7"), ("rank", "0"), host, ("path", "tcp agent")];
        assert_eq!(of("transom_operations_total", &agent), 3.0);
        assert_eq!(of("transom_operation_bytes_total", &agent), (1_u64 << 40) as f64);
        assert_eq!(of("transom_rank_cpu_seconds_total", &[("job", "7"), ("rank", "0"), host]), 1.5);
        assert_eq!(of("transom_job_info", &[("job", "7"), ("program", "./heat \"a\\b\"")]), 1.0);
        let stopped = [("job", "7"), ("rank", "1"), ("host", "c"), ("transom_rank_state", "stopped")];
        assert_eq!(of("transom_rank_state", &stopped), 1.0);
        assert_eq!(report.summary.age, Duration::from_secs(60));
    }

    #[test]
    fn a_job_without_ranks_is_a_text_too() {
        assert_eq!(checked(&text(&report(Vec::new()))).len(), 4);
    }
}
