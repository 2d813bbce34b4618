//! Two-sided messages and collectives, to compare one-sided communication with.

use transom::{Communicator, Job, Result, Sum};

use super::Measure;
use crate::repeat::{Once, Recorder, Repeat};
use crate::suite::catalogue::Message;
use crate::suite::row::Head;
use crate::suite::stage::Stage;

const TAG: i32 = 5;

/// A message, or a collective of all ranks.
#[derive(Debug)]
pub struct Messages {
    head: Head,
    message: Message,
    data: Vec<u8>,
    doubles: Vec<f64>,
    blocks: Vec<Vec<u8>>,
}

impl Messages {
    /// With buffers for it.
    pub fn new(job: &Job, head: Head, message: Message) -> Self {
        let bytes = head.bytes;
        let blocks = if message == Message::AllToAll { vec![vec![1; bytes]; job.size()] } else { Vec::new() };
        Self { data: vec![1; bytes], doubles: vec![1.0; bytes / 8], blocks, head, message }
    }

    fn act(&mut self, comm: &Communicator, repeat: &mut impl Repeat) -> Result<()> {
        let Self { data, doubles, blocks, .. } = self;
        match (self.message, comm.rank()) {
            (Message::PingPong, 0) => repeat.repeat(|| {
                comm.send(1, TAG, data)?;
                comm.recv_into(1, TAG, data).map(drop)
            }),
            (Message::PingPong, 1) => repeat.repeat(|| {
                comm.recv_into(0, TAG, data)?;
                comm.send(0, TAG, data)
            }),
            (Message::PingPong, _) => Ok(()),
            (Message::Exchange, rank) => {
                let (next, before) = ((rank + 1) % comm.size(), (rank + comm.size() - 1) % comm.size());
                repeat.repeat(|| {
                    let come = comm.irecv::<u8>(before, TAG, data.len());
                    comm.isend(next, TAG, std::mem::take(data)).wait().map(drop)?;
                    come.wait().map(|(come, _)| *data = come)
                })
            }
            (Message::Broadcast, _) => repeat.repeat(|| comm.broadcast(0, data)),
            (Message::AllReduce, _) => repeat.repeat(|| comm.allreduce(Sum, doubles).map(drop)),
            (Message::NonblockingAllReduce, _) => {
                repeat.repeat(|| comm.iallreduce(Sum, doubles).wait().map(drop))
            }
            (Message::AllToAll, _) => repeat.repeat(|| comm.alltoall(blocks).map(drop)),
        }
    }

    fn is_right(&mut self, comm: &Communicator, mark: u8) -> Result<bool> {
        let (rank, bytes) = (comm.rank(), self.head.bytes);
        match self.message {
            Message::PingPong | Message::Broadcast => {
                self.data.fill(if rank == 0 { mark } else { !mark });
                self.act(comm, &mut Once)?;
                let touched = self.message == Message::Broadcast || rank < 2;
                Ok(!touched || self.data.iter().all(|byte| *byte == mark))
            }
            Message::Exchange => {
                self.data.fill(mark.wrapping_add(rank as u8));
                self.act(comm, &mut Once)?;
                let before = (rank + comm.size() - 1) % comm.size();
                Ok(self.data.iter().all(|byte| *byte == mark.wrapping_add(before as u8)))
            }
            Message::AllReduce | Message::NonblockingAllReduce => {
                self.doubles.fill(f64::from(mark) + rank as f64);
                let sum = (0..comm.size()).map(|rank| f64::from(mark) + rank as f64).sum::<f64>();
                let sums = match self.message {
                    Message::AllReduce => comm.allreduce(Sum, &self.doubles)?,
                    _ => comm.iallreduce(Sum, &self.doubles).wait()?,
                };
                Ok(sums.iter().all(|element| *element == sum))
            }
            Message::AllToAll => {
                let own: Vec<Vec<u8>> =
                    (0..comm.size()).map(|to| vec![mark ^ (3 * rank + to) as u8; bytes]).collect();
                let come = comm.alltoall(&own)?;
                Ok((0..comm.size()).all(|from| come[from] == vec![mark ^ (3 * from + rank) as u8; bytes]))
            }
        }
    }
}

impl Measure for Messages {
    fn head(&self) -> Head {
        self.head.clone()
    }

    fn round(&mut self, stage: &mut Stage<'_>, recorder: &mut Recorder) -> anyhow::Result<()> {
        let job = stage.job;
        job.barrier()?;
        if self.message != Message::PingPong || job.rank() == 0 {
            self.act(job, recorder)?;
        } else {
            // Its samples are those of rank 0, at another phase.
            self.act(job, &mut Recorder::new(recorder.schedule(), 0))?;
        }
        if self.message == Message::PingPong {
            recorder.scale(0.5);
        }
        Ok(())
    }

    fn validate(&mut self, stage: &mut Stage<'_>, seed: u64) -> anyhow::Result<Option<bool>> {
        let holds = self.is_right(stage.job, seed as u8)?;
        Ok(Some(super::all(stage.job, holds)?))
    }
}
