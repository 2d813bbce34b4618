//! Hosts and ranks of a Slurm allocation.

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
    Variable(&'static str, String),
}

/// Hosts of an allocation as Slurm writes them, one by one with their tasks, and `SLURM_NTASKS`.
pub type Found = (String, Vec<Host>, Option<u32>);

/// The allocation, if there is one.
pub fn allocation() -> Result<Option<Found>, SlurmError> {
    let variable = |name| std::env::var(name).ok();
    let (Some(_), Some(list)) = (variable("SLURM_JOB_ID"), variable("SLURM_JOB_NODELIST")) else {
        return Ok(None);
    };
    let names = host_names(&list)?;
    let tasks = variable("SLURM_NTASKS")
        .map(|text| text.parse().ok().filter(|n| *n > 0).ok_or(SlurmError::Variable("SLURM_NTASKS", text)))
        .transpose()?;
    let slots = match variable("SLURM_TASKS_PER_NODE") {
        None => vec![None; names.len()],
        Some(text) => match parse_tasks(&text).filter(|counts| counts.len() == names.len()) {
            Some(counts) => counts.into_iter().map(Some).collect(),
            None => return Err(SlurmError::Variable("SLURM_TASKS_PER_NODE", text)),
        },
    };
    let hosts = names.into_iter().zip(slots).map(|(name, slots)| Host { name, slots }).collect();
    Ok(Some((list, hosts, tasks)))
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

/// The command that starts an agent on a host of the allocation.
pub fn agent_command(host: &str, exe: &std::path::Path, binds_cpus: bool) -> Command {
    let mut command = Command::new("srun");
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
    fn tasks_per_node() {
        assert_eq!(parse_tasks("2(x2),1"), Some(vec![2, 2, 1]));
        assert_eq!(parse_tasks("4"), Some(vec![4]));
        for bad in ["", "x", "2(x)", "2(x2", "0", "2,,1", "1(x99999999999)", "1(x2000000)"] {
            assert_eq!(parse_tasks(bad), None, "{bad:?}");
        }
    }
}
