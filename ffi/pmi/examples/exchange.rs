//! Every rank puts a card, meets the others, and reads all cards.
//!
//! Start it with any PMI-1 launcher: `transom run -n 4 exchange`, `srun --mpi=pmi2 -n 4 exchange`,
//! `mpiexec -n 4 exchange`, `mpiexec -pmi-port -n 4 exchange`. With an argument N, rank N aborts the job.

use std::process::ExitCode;

use transom_pmi::{Client, Error};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("exchange: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Error> {
    let Some(mut pmi) = Client::from_environment()? else {
        println!("no launcher: a job of one rank");
        return Ok(());
    };
    let (rank, size) = (pmi.rank(), pmi.size());
    pmi.put(&format!("card-{rank}"), &format!("rank-{rank}-pid-{}", std::process::id()))?;
    pmi.fence()?;
    for other in 0..size {
        let card = pmi.get(&format!("card-{other}"))?.unwrap_or_default();
        if !card.starts_with(&format!("rank-{other}-")) {
            eprintln!("rank {rank}: card of rank {other} is {card:?}");
            return pmi.abort(1);
        }
    }
    let missing = pmi.get("nobody-put-this")?;
    println!("rank {rank} of {size}: all {size} cards are right, missing key gives {missing:?}");
    if std::env::args().nth(1).and_then(|arg| arg.parse().ok()) == Some(rank) {
        return pmi.abort(5);
    }
    pmi.finalize()
}
