//! Business cards through PMIx: under `srun --mpi=pmix`, PRRTE's `prterun` and Open MPI's `mpirun`.

use transom_pmix::Client;

use super::Bootstrap;
use crate::{Class, Error, Result};

#[derive(Debug)]
pub(crate) struct Pmix {
    rank: usize,
    size: usize,
    /// Until the end of the job.
    client: Option<Client>,
}

fn failed(operation: &'static str) -> impl Fn(transom_pmix::Error) -> Error {
    move |error| Error::new(Class::Launch, operation, format!("PMIx: {error}"))
}

impl Pmix {
    /// Joins the job of the launcher with PMIx that started this process, if one did.
    pub fn from_env() -> Result<Option<Self>> {
        let client = Client::from_environment().map_err(failed("init"))?;
        Ok(client.map(|client| Self {
            rank: client.rank() as usize,
            size: client.size() as usize,
            client: Some(client),
        }))
    }

    fn client(&mut self) -> Result<&mut Client> {
        self.client.as_mut().ok_or_else(|| Error::new(Class::Launch, "init", "PMIx: finalized already"))
    }
}

impl Bootstrap for Pmix {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn exchange(&mut self, round: u32, card: &[u8]) -> Result<Vec<Vec<u8>>> {
        let (own, size) = (self.rank, self.size);
        let key = format!("transom-{round}");
        let client = self.client()?;
        client.put(&key, card).map_err(failed("init"))?;
        client.fence(true).map_err(failed("init"))?;
        let of = |rank| {
            if rank == own {
                return Ok(card.to_vec());
            }
            let missing =
                || Error::new(Class::Launch, "init", format!("PMIx: rank {rank} published no card"));
            client.get(rank as u32, &key).map_err(failed("init"))?.ok_or_else(missing)
        };
        (0..size).map(of).collect()
    }

    fn barrier(&mut self, _round: u32) -> Result<()> {
        self.client()?.fence(false).map_err(failed("init"))
    }

    fn finalize(&mut self) -> Result<()> {
        self.client.take().map_or(Ok(()), |client| client.finalize().map_err(failed("finalize")))
    }

    fn program(&mut self) -> Result<u32> {
        Ok(self.client()?.program().map_err(failed("init"))?.unwrap_or(0))
    }

    fn abort(&mut self, code: i32) -> Result<()> {
        self.client.as_mut().map_or(Ok(()), |client| client.abort(code).map_err(failed("abort")))
    }
}
