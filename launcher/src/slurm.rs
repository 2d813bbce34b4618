//! Hosts and ranks of a Slurm allocation.

use std::collections::HashMap;
use std::process::Command;

use crate::hosts::Host;

/// Why an allocation cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SlurmError {
    /// scontrol does not do its work.
    #[error(
        "Slurm job: `scontrol show hostnames {0}`: {1}; give --hosts, or set TRANSOM_ALLOCATION=none to do without Slurm"
    )]
    Scontrol(String, String),
    /// A variable that makes no sense.
    #[error(
        "{0}={1:?} is not what Slurm sets; give --hosts, or set TRANSOM_ALLOCATION=none to do without Slurm"
    )]
    Variable(String, String),
}

/// An allocation.
#[derive(Debug)]
pub struct Found {
    /// Its hosts as Slurm writes them.
    pub list: String,
    /// One by one, with their tasks.
    pub hosts: Vec<Host>,
    /// `SLURM_NTASKS`.
    pub tasks: Option<u32>,
    /// Of a heterogeneous job: in which of its components each host is.
    pub components: HashMap<String, u32>,
}

/// The allocation, if there is one.
pub fn allocation() -> Result<Option<Found>, SlurmError> {
    let variable = |name: &str| std::env::var(name).ok();
    let (Some(_), Some(list)) = (variable("SLURM_JOB_ID"), variable("SLURM_JOB_NODELIST")) else {
        return Ok(None);
    };
    let size = number("SLURM_HET_SIZE")?;
    let Some(size) = size else {
        let (hosts, tasks) = component("", &list)?;
        return Ok(Some(Found { list, hosts, tasks, components: HashMap::new() }));
    };
    let mut found =
        Found { list: String::new(), hosts: Vec::new(), tasks: Some(0), components: HashMap::new() };
    for number in 0..size {
        let suffix = format!("_HET_GROUP_{number}");
        let name = format!("SLURM_JOB_NODELIST{suffix}");
        let list = variable(&name).ok_or_else(|| SlurmError::Variable(name, String::new()))?;
        let (hosts, tasks) = component(&suffix, &list)?;
        found.list += &format!("{}{list}", if number == 0 { "" } else { " : " });
        found.tasks = found.tasks.zip(tasks).and_then(|(all, tasks)| all.checked_add(tasks));
        for host in hosts {
            found.add(host, number);
        }
    }
    Ok(Some(found))
}

impl Found {
    /// A host of a component. Of two that share it the first has it.
    fn add(&mut self, host: Host, component: u32) {
        if !self.components.contains_key(&host.name) {
            self.components.insert(host.name.clone(), component);
            self.hosts.push(host);
        } else if let Some(known) = self.hosts.iter_mut().find(|known| known.name == host.name) {
            known.slots = known.slots.zip(host.slots).map(|(all, slots)| all.saturating_add(slots));
        }
    }
}

/// A variable that is a number, and not 0.
fn number(name: &str) -> Result<Option<u32>, SlurmError> {
    let Ok(text) = std::env::var(name) else { return Ok(None) };
    let number = text.parse().ok().filter(|number| *number > 0);
    number.map(Some).ok_or_else(|| SlurmError::Variable(name.to_owned(), text))
}

/// Hosts and tasks of the allocation, or of the component for which variables have this suffix.
fn component(suffix: &str, list: &str) -> Result<(Vec<Host>, Option<u32>), SlurmError> {
    let names = host_names(list)?;
    let tasks = number(&format!("SLURM_NTASKS{suffix}"))?;
    let variable = format!("SLURM_TASKS_PER_NODE{suffix}");
    let slots = match std::env::var(&variable) {
        Err(_) => vec![None; names.len()],
        Ok(text) => match parse_tasks(&text).filter(|counts| counts.len() == names.len()) {
            Some(counts) => counts.into_iter().map(Some).collect(),
            None => return Err(SlurmError::Variable(variable, text)),
        },
    };
    let hosts = names.into_iter().zip(slots).map(|(name, slots)| Host { name, slots }).collect();
    Ok((hosts, tasks))
}

fn host_names(list: &str) -> Result<Vec<String>, SlurmError> {
    let failed = |why: String| SlurmError::Scontrol(list.to_owned(), why);
    let output = Command::new("scontrol").args(["show", "hostnames", list]).output();
    let output = output.map_err(|e| failed(e.to_string()))?;
    let names: Vec<String> =
        String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect();
    if !output.status.success() || names.is_empty() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    Ok(names)
}

/// `2(x2),1` is 2, 2, 1.
fn parse_tasks(text: &str) -> Option<Vec<u32>> {
    let mut counts = Vec::new();
    for part in text.split(',') {
        let (count, times) = match part.split_once("(x") {
            Some((count, times)) => (count, times.strip_suffix(')')?.parse().ok()?),
            None => (part, 1_usize),
        };
        let count: u32 = count.parse().ok().filter(|count| *count > 0)?;
        if times > 1_000_000 || counts.len() > 1_000_000 {
            return None;
        }
        counts.extend(std::iter::repeat_n(count, times));
    }
    Some(counts)
}

/// Whether this cluster binds tasks to processors.
pub fn binds_cpus() -> bool {
    let output = Command::new("scontrol").args(["show", "config"]).output();
    let config =
        output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    config.lines().any(|line| line.starts_with("TaskPlugin ") && line.contains("affinity"))
}

/// The command that starts an agent on a host of the allocation, or of a component of it.
pub fn agent_command(host: &str, exe: &std::path::Path, binds_cpus: bool, component: Option<u32>) -> Command {
    let mut command = Command::new("srun");
    if let Some(component) = component {
        command.arg(format!("--het-group={component}"));
    }
    command.args(["--nodes=1", "--ntasks=1", "--nodelist", host, "--overlap", "--mpi=none"]);
    command.args(["--kill-on-bad-exit=0", "--input=all", "--quiet"]);
    if binds_cpus {
        // The agent's own ranks share all processors of the allocation; without the plugin srun would warn.
        command.arg("--cpu-bind=none");
    }
    command.arg("--").arg(exe).args(["agent", "keep"]);
    // What the batch script asked for its own steps must not change this one (labels would break the frames).
    for name in [
        "LABELIO",
        "STDINMODE",
        "STDOUTMODE",
        "STDERRMODE",
        "UNBUFFEREDIO",
        "NTASKS_PER_NODE",
        "DISTRIBUTION",
    ] {
        command.env_remove(format!("SLURM_{name}"));
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_of_two_components_is_one_host() {
        let components = HashMap::new();
        let mut found = Found { list: String::new(), hosts: Vec::new(), tasks: None, components };
        for (name, slots, component) in
            [("a", Some(1), 0), ("b", None, 0), ("a", Some(2), 1), ("b", Some(1), 1)]
        {
            found.add(Host { name: name.into(), slots }, component);
        }
        let hosts: Vec<_> = found.hosts.iter().map(|host| (host.name.as_str(), host.slots)).collect();
        assert_eq!(hosts, [("a", Some(3)), ("b", None)]);
        assert_eq!((found.components["a"], found.components["b"]), (0, 0));
    }

    #[test]
    fn tasks_per_node() {
        assert_eq!(parse_tasks("2(x2),1"), Some(vec![2, 2, 1]));
        assert_eq!(parse_tasks("4"), Some(vec![4]));
        for bad in ["", "x", "2(x)", "2(x2", "0", "2,,1", "1(x99999999999)", "1(x2000000)"] {
            assert_eq!(parse_tasks(bad), None, "{bad:?}");
        }
    }
}
