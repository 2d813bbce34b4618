//! What can go wrong in a program, and how ranks agree about it.

use std::io;
use std::path::Path;

use transom::Job;

/// Why a program ends early.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// All ranks know of it, so that they end in good order and one of them says it.
    #[error("{0}")]
    Agreed(String),
    /// This rank knows of it only: the job fails.
    #[error("{0}")]
    Here(String),
    /// The runtime's.
    #[error(transparent)]
    Runtime(#[from] transom::Error),
}

impl Failure {
    /// An input or output error of this rank.
    #[cold]
    pub fn io(what: &str, path: &Path, error: &io::Error) -> Self {
        Self::Here(io_message(what, path, error))
    }
}

/// `cannot read notes.txt: permission denied`.
pub fn io_message(what: &str, path: &Path, error: &io::Error) -> String {
    let text = error.to_string();
    let reason = text.split(" (os error").next().unwrap_or_default();
    let (first, rest) = reason.split_at(reason.chars().next().map_or(0, char::len_utf8));
    format!("cannot {what} {}: {}{rest}", path.display(), first.to_lowercase())
}

/// Every rank's `own` result, if no rank was refused; else the refusal of the first that was. Collective.
///
/// # Errors
/// [`Failure::Agreed`] on all ranks alike, and errors of the runtime.
pub fn agree<T>(job: &Job, own: Result<T, String>) -> Result<T, Failure> {
    let refusal = own.as_ref().err().map_or("", String::as_str);
    let refusals = job.allgather(refusal.as_bytes())?;
    match refusals.iter().position(|refusal| !refusal.is_empty()) {
        None => own.map_err(Failure::Agreed),
        Some(rank) => {
            let text = String::from_utf8_lossy(&refusals[rank]);
            let place = if rank == 0 { String::new() } else { format!(" (on rank {rank})") };
            Err(Failure::Agreed(format!("{text}{place}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_agree() {
        let results = transom::local(3, |job| {
            assert!(agree(&job, Ok(1)).is_ok());
            let own = if job.rank() == 0 { Ok(()) } else { Err(format!("no {}", job.rank())) };
            Ok(agree(&job, own).unwrap_err().to_string())
        });
        assert_eq!(results.unwrap(), ["no 1 (on rank 1)"; 3]);
    }
}
