//! A program's windows.

use transom::{Class, Element, Integer, Job, Local, MemoryModel, Result, Window, WindowOptions};
use zerocopy::IntoBytes;

use super::model::Memory;
use super::program::{Kind, Operation, Program, Round};

/// What the elements of a window can be.
pub trait Cell: Integer + Element {}

impl<T: Integer + Element> Cell for T {}

/// Elements from bytes.
pub fn words<T: Cell>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(size_of::<T>()).filter_map(|word| T::read_from_bytes(word).ok()).collect()
}

/// The windows of one rank.
pub struct Windows<'a, T> {
    program: &'a Program,
    rank: usize,
    first: Window<T>,
    second: Option<Window<T>>,
    /// Of attached regions, by rank.
    addresses: Vec<Vec<usize>>,
}

impl<'a, T: Cell> Windows<'a, T> {
    pub fn make(job: &Job, program: &'a Program) -> Result<Self> {
        let rank = job.rank();
        let options = |unit: usize| {
            let model = if program.separate { MemoryModel::Separate } else { MemoryModel::Unified };
            let options = WindowOptions::unit(unit).model(model);
            program.hints.iter().fold(options, |options, (key, value)| options.with(key, value))
        };
        let regions = &program.regions[rank];
        let (len, own) = (regions[0] / size_of::<T>(), options(program.units[rank]));
        let first = match program.kind {
            Kind::Shared => match job.allocate_shared_with(len, &own) {
                // Of several hosts.
                Err(error) if error.class() == Class::RmaShared => job.allocate_with(len, &own)?,
                made => made?,
            },
            Kind::Allocate => job.allocate_with(len, &own)?,
            Kind::Create => job.create_with(vec![T::new_zeroed(); len], &own)?,
            Kind::Dynamic => job.dynamic_with(&own)?,
        };
        let mut addresses = Vec::new();
        if program.kind == Kind::Dynamic {
            let attach = |bytes: &usize| first.attach(vec![T::new_zeroed(); bytes / size_of::<T>()]);
            addresses = job.allgather(&regions.iter().map(attach).collect::<Result<Vec<_>>>()?)?;
        }
        let second = match &program.second {
            Some(parts) => {
                let part = &parts[rank];
                Some(first.overlapping(part.start / size_of::<T>()..part.end / size_of::<T>(), &options(1))?)
            }
            None => None,
        };
        Ok(Self { program, rank, first, second, addresses })
    }

    /// The one that a round goes through.
    pub fn of(&self, round: &Round) -> &Window<T> {
        match &self.second {
            Some(second) if round.second => second,
            _ => &self.first,
        }
    }

    pub fn displacement(&self, round: &Round, operation: &Operation) -> usize {
        let Some(target) = operation.target else { return operation.at };
        match &self.program.second {
            Some(parts) if round.second => operation.at - parts[target].start,
            _ if self.program.kind == Kind::Dynamic => {
                self.addresses[target][operation.region] + operation.at
            }
            _ => operation.at / self.program.units[target],
        }
    }

    pub fn sync(&self) -> Result<()> {
        self.first.sync()?;
        // What one public copy had is now in the private one, from where the other gets it.
        self.second.as_ref().map_or(Ok(()), Window::sync)
    }

    /// One of this rank's regions, for loads and stores.
    pub fn local<R>(&self, region: usize, view: impl FnOnce(Local<'_, T>) -> Result<R>) -> Result<R> {
        match self.addresses.get(self.rank) {
            Some(addresses) => self.first.with_attached(addresses[region], view),
            None => view(self.first.local()),
        }
    }

    /// Stores bytes that need not be whole elements.
    pub fn store(&self, region: usize, at: usize, bytes: &[u8]) -> Result<()> {
        let size = size_of::<T>();
        let (start, end) = (at / size, (at + bytes.len()).div_ceil(size));
        self.local(region, |local| {
            let mut words = vec![T::new_zeroed(); end - start];
            local.read(start, &mut words)?;
            words.as_mut_bytes()[at - start * size..][..bytes.len()].copy_from_slice(bytes);
            local.write(start, &words)
        })
    }

    pub fn load(&self, region: usize) -> Result<Vec<u8>> {
        self.local(region, |local| Ok(local.to_vec()?.as_bytes().to_vec()))
    }

    /// Frees the windows. What is wrong with the memory that comes back, compared with `last`.
    pub fn finish(self, last: Option<&Memory>) -> Result<Option<String>> {
        let Self { program, rank, first, second, addresses } = self;
        let mut back = Vec::new();
        // Nobody accesses memory any more that is taken away.
        for address in addresses.get(rank).into_iter().flatten() {
            back.push(first.detach(*address)?);
        }
        let overlapped = second.is_some();
        second.map_or(Ok(()), Window::free)?;
        match program.kind {
            Kind::Dynamic => first.free()?,
            _ if overlapped && rank.is_multiple_of(2) => first.free()?,
            _ => back.push(first.reclaim()?),
        }
        let wrong = back
            .iter()
            .enumerate()
            .find(|(region, words)| last.is_some_and(|last| last[rank][*region] != words.as_bytes()));
        Ok(wrong.map(|(region, _)| format!("rank {rank}: region {region} came back with other contents")))
    }
}
