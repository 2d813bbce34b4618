//! A job's own Flux instance: its hosts are those of the brokers, and the resources say how many cores each has.

use std::collections::HashMap;
use std::process::Command;

use serde::Deserialize;

use super::{Allocation, AllocationError, System};
use crate::hosts::{Host, HostError, merge, parse_host};

const HOSTS: [&str; 3] = ["hostlist", "--expand", "instance"];
const RESOURCES: [&str; 2] = ["resource", "R"];

/// RFC 20 of Flux, "R", as far as it matters here.
#[derive(Debug, Deserialize)]
struct Resources {
    execution: Execution,
}

#[derive(Debug, Deserialize)]
struct Execution {
    #[serde(rename = "R_lite")]
    lite: Vec<Lite>,
}

#[derive(Debug, Deserialize)]
struct Lite {
    rank: String,
    children: Children,
}

#[derive(Debug, Deserialize)]
struct Children {
    core: Option<String>,
}

pub(super) fn allocation() -> Result<Allocation, AllocationError> {
    let system = System::Flux;
    let names = call(&HOSTS).map_err(|why| failed(&HOSTS, why))?;
    let source = format!("flux {}", HOSTS.join(" "));
    // Where the resources cannot be read, hosts have no slots: `-n` or `-N` says how many ranks there are.
    let cores = call(&RESOURCES).ok().and_then(|text| cores(&text)).unwrap_or_default();
    let slots = |broker: usize| cores.iter().find(|(rank, _)| *rank == broker).map(|(_, cores)| *cores);
    let one = |(broker, name): (usize, &str)| {
        let host = parse_host(name, &source)?;
        Ok(Host { slots: slots(broker), ..host })
    };
    let hosts = names.split_whitespace().enumerate().map(one).collect::<Result<Vec<_>, HostError>>();
    let hosts = hosts.and_then(|hosts| match hosts.is_empty() {
        true => Err(HostError::Empty(source.clone())),
        false => merge(hosts),
    });
    let hosts = hosts.map_err(|error| AllocationError::Hosts { system, error })?;
    Ok(Allocation { system, source, hosts, tasks: None, components: HashMap::new() })
}

fn failed(args: &[&str], why: String) -> AllocationError {
    AllocationError::Command { system: System::Flux, command: format!("flux {}", args.join(" ")), why }
}

fn call(args: &[&str]) -> Result<String, String> {
    let output = Command::new("flux").args(args).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{} ({})", said.trim(), output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| "its answer is no text".to_owned())
}

/// Of each broker the number of cores.
fn cores(text: &str) -> Option<Vec<(usize, u32)>> {
    let resources: Resources = serde_json::from_str(text).ok()?;
    let mut all = Vec::new();
    for Lite { rank, children } in resources.execution.lite {
        let cores = u32::try_from(members(&children.core?)?.len()).ok().filter(|cores| *cores > 0)?;
        all.extend(members(&rank)?.into_iter().map(|rank| (rank, cores)));
    }
    Some(all)
}

/// The numbers of a set as Flux writes it: `0-3,7`.
fn members(set: &str) -> Option<Vec<usize>> {
    let mut numbers = Vec::new();
    for part in set.trim().trim_start_matches('[').trim_end_matches(']').split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if last < first || last > 1_000_000 {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_of_brokers() {
        let text = r#"{"version": 1, "execution": {"R_lite": [{"rank": "0-1", "children": {"core": "0-3,6", "gpu": "0"}},
            {"rank": "2", "children": {"core": "1"}}], "nodelist": ["n[1-3]"], "starttime": 0.0}}"#;
        assert_eq!(cores(text), Some(vec![(0, 5), (1, 5), (2, 1)]));
        for bad in
            ["", "{}", "[]", r#"{"execution": {"R_lite": [{"rank": "x", "children": {"core": "0"}}]}}"#]
        {
            assert_eq!(cores(bad), None, "{bad}");
        }
        for bad in ["", "3-1", "0-99999999", "a", "1,,2"] {
            assert_eq!(members(bad), None, "{bad}");
        }
    }
}
