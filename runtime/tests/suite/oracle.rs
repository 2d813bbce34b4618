//! Some random programs against a sequential model, whatever the ranks are, and wherever. (`tests/oracle.rs` runs more of
//! them, and shrinks those that fail.)

use transom::{Error, Job, Result};

#[path = "../oracle/mod.rs"]
pub mod programs;

use programs::{first_seed, generate, model, run};

const PROGRAMS: u64 = 25;

pub fn random_programs(job: &Job) -> Result<()> {
    for seed in first_seed()..first_seed() + PROGRAMS {
        let program = generate::program(seed, job.size());
        let expected = model::expect(&program, None).map_err(|e| failure(format!("seed {seed}: {e}")))?;
        if let Some(wrong) = run::program(job, &program, &expected)? {
            return Err(failure(format!("seed {seed}: {wrong}\n{program}")));
        }
    }
    Ok(())
}

fn failure(message: String) -> Error {
    Error::other("oracle", message)
}
