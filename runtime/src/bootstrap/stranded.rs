//! Ranks that a launcher has started as one job, and has given no way to find each other: each would be a job of its own, with
//! a result of its own.

use std::ffi::OsString;

use crate::{Class, Error, Result};

/// A launcher, by what it leaves in the environment of each process.
struct Launcher {
    name: &'static str,
    /// The number of processes that it started together.
    size: &'static str,
    /// This process's number among them.
    rank: &'static str,
    /// What to type.
    instead: &'static str,
}

/// Slurm's are those of a step: a batch script has the job's alone, and is no rank of anything.
const LAUNCHERS: [Launcher; 2] = [
    Launcher {
        name: "srun",
        size: "SLURM_STEP_NUM_TASKS",
        rank: "SLURM_PROCID",
        instead: "`srun --mpi=pmi2 PROGRAM`, `srun --mpi=pmix PROGRAM` (`srun --mpi=list` says what this Slurm has), or `transom run \
                  PROGRAM` in the allocation, without srun",
    },
    Launcher {
        name: "mpirun",
        size: "OMPI_COMM_WORLD_SIZE",
        rank: "OMPI_COMM_WORLD_RANK",
        instead: "`transom run -n N PROGRAM`, or an mpirun with PMIx (Open MPI 3 and later)",
    },
];

/// An error if this process, which no PMI leads from, is one of several that a launcher started together.
pub(super) fn check(variable: impl Fn(&str) -> Option<OsString>) -> Result<()> {
    let number = |name| variable(name)?.to_str()?.trim().parse::<u32>().ok();
    for launcher in &LAUNCHERS {
        if let (Some(size), Some(rank)) = (number(launcher.size), number(launcher.rank))
            && size > 1
        {
            let Launcher { name, size: variable, instead, .. } = launcher;
            let message = format!(
                "{name} started this process as number {rank} of {size}, and offers no PMI by which they find each other. Type \
                 {instead}. For {size} jobs of one rank each: env -u {variable} PROGRAM"
            );
            return Err(Error::new(Class::Launch, "init", message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &[(&str, &str)]) -> Result<()> {
        check(|name| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into()))
    }

    #[test]
    fn one_process_is_a_job_of_its_own() {
        with(&[]).unwrap();
        // A batch script, a shell in a step of one task, and what makes no sense.
        with(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4")]).unwrap();
        with(&[("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "1")]).unwrap();
        with(&[("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "many")]).unwrap();
    }

    #[test]
    fn several_are_told_what_to_type() {
        let error = with(&[("SLURM_PROCID", "3"), ("SLURM_STEP_NUM_TASKS", "4")]).unwrap_err().to_string();
        assert!(error.contains("number 3 of 4") && error.contains("srun --mpi=pmi2 PROGRAM"), "{error}");
        let error =
            with(&[("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "2")]).unwrap_err().to_string();
        assert!(error.contains("mpirun started") && error.contains("transom run -n N"), "{error}");
    }
}
