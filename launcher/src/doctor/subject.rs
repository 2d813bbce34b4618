//! What is examined, and how it is opened.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use transom_litmus::{Memory, Pair};
use transom_ofi::{Ofi, Options};
use transom_shm::Shm;
use transom_tcp::Tcp;
use transom_transport::{Transport, TransportResult};
use transom_verbs::Verbs;

/// What to examine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// Shared memory: as windows are allocated, or the process's own.
    Shm(Memory),
    /// Verbs from one device to another, or to itself.
    Verbs(String, String),
    /// A libfabric provider.
    Ofi(String),
    /// TCP.
    Tcp,
}

/// What cannot be examined, and why.
#[derive(Debug)]
pub struct Missing {
    /// Its name.
    pub what: String,
    /// What is missing, and how to get it.
    pub why: String,
    /// The user named it: not to have it is an error.
    pub was_asked_for: bool,
}

/// What there is on this host.
#[derive(Debug, Default)]
pub struct Found {
    /// What can be examined.
    pub subjects: Vec<Subject>,
    /// What cannot.
    pub missing: Vec<Missing>,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shm(Memory::Allocated) => f.write_str("shm:allocated"),
            Self::Shm(Memory::Own) => f.write_str("shm:own"),
            Self::Verbs(origin, target) => write!(f, "verbs:{origin}:{target}"),
            Self::Ofi(provider) => write!(f, "ofi:{provider}"),
            Self::Tcp => f.write_str("tcp"),
        }
    }
}

impl FromStr for Subject {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split(':').collect::<Vec<_>>()[..] {
            ["shm", "allocated"] => Ok(Self::Shm(Memory::Allocated)),
            ["shm", "own"] => Ok(Self::Shm(Memory::Own)),
            ["verbs", origin, target] => Ok(Self::Verbs(origin.into(), target.into())),
            ["tcp"] => Ok(Self::Tcp),
            ["ofi", provider] => Ok(Self::Ofi(provider.into())),
            _ => Err(format!("{text:?} is no subject")),
        }
    }
}

impl Subject {
    /// For people.
    pub fn title(&self) -> String {
        match self {
            Self::Shm(Memory::Allocated) => "Shared memory: allocated windows".into(),
            Self::Shm(Memory::Own) => "Shared memory: windows of user memory".into(),
            Self::Verbs(origin, target) if origin == target => format!("Verbs: device {origin}"),
            Self::Verbs(origin, target) => format!("Verbs: device {origin} to {target}"),
            Self::Ofi(provider) => format!("libfabric: provider {provider}"),
            Self::Tcp => "TCP".into(),
        }
    }

    /// Opens two ranks and connects them; the provider's name for itself comes along.
    pub fn open(&self) -> TransportResult<(String, Pair)> {
        let (origin, target) = (self.rank(0)?, self.rank(1)?);
        let provider = origin.capabilities().provider.clone();
        let memory = if let Self::Shm(memory) = self { *memory } else { Memory::Allocated };
        Ok((provider, Pair::connect(origin, target, memory)?))
    }

    fn rank(&self, rank: usize) -> TransportResult<Arc<dyn Transport>> {
        Ok(match self {
            Self::Shm(_) => Arc::new(Shm::new(2)?),
            Self::Verbs(origin, target) => {
                let device = Some(format!("{origin},{target}"));
                let options = transom_verbs::Options { ranks: 2, rank, device, ..Default::default() };
                Arc::new(Verbs::new(&options)?)
            }
            Self::Ofi(provider) => Arc::new(Ofi::new(Options {
                ranks: 2,
                provider: Some(provider.clone()),
                loopback: true,
                patience: Some(transom_ofi::PATIENCE),
            })?),
            Self::Tcp => Arc::new(Tcp::new(&crate::info::tcp::options(rank, true))?),
        })
    }
}

/// What a job on this host, or with others, would use; and the providers that were named.
pub fn find(providers: &[String]) -> Found {
    let mut found = Found::default();
    match Shm::new(1) {
        Ok(_) => found.subjects.extend([Memory::Allocated, Memory::Own].map(Subject::Shm)),
        Err(error) => found.miss("shared memory", &error, false),
    }
    find_verbs(&mut found);
    find_providers(&mut found, providers);
    match Tcp::new(&crate::info::tcp::options(0, true)) {
        Ok(_) => found.subjects.push(Subject::Tcp),
        Err(error) => found.miss("tcp", &error, false),
    }
    found
}

impl Found {
    fn miss(&mut self, what: &str, why: &impl ToString, was_asked_for: bool) {
        self.missing.push(Missing { what: what.into(), why: why.to_string(), was_asked_for });
    }
}

fn find_verbs(found: &mut Found) {
    let names = match transom_verbs::devices() {
        Ok(names) => names,
        Err(error) => return found.miss("verbs", &error, false),
    };
    let mut usable = Vec::new();
    for name in names {
        match transom_verbs::describe(&name).map(|report| (report.unusable, report.link)) {
            Ok((None, network)) => usable.push((name, network)),
            Ok((Some(why), _)) => found.miss(&format!("device {name}"), &why, false),
            Err(error) => found.miss(&format!("device {name}"), &error, false),
        }
    }
    found.subjects.extend(usable.iter().map(|(name, _)| Subject::Verbs(name.clone(), name.clone())));
    // The first of a network to the next one.
    for (place, (first, network)) in usable.iter().enumerate() {
        let of_network = |(_, other): &&(String, &str)| other == network;
        if usable[..place].iter().any(|device| of_network(&device)) {
            continue;
        }
        if let Some((second, _)) = usable[place + 1..].iter().find(of_network) {
            found.subjects.push(Subject::Verbs(first.clone(), second.clone()));
        }
    }
}

fn find_providers(found: &mut Found, named: &[String]) {
    let mut wanted: Vec<String> = named.to_vec();
    if let Err(error) = libfabric::Library::open() {
        return found.miss("libfabric", &error, !named.is_empty());
    }
    for loopback in [true, false] {
        match crate::info::fabric::choice(loopback) {
            Ok(provider) => wanted.push(crate::info::fabric::name_of(&provider)),
            Err(error) if loopback => found.miss("libfabric, one host", &error, false),
            Err(error) => found.miss("libfabric, several hosts", &error, false),
        }
    }
    for provider in wanted {
        let subject = Subject::Ofi(provider);
        if !found.subjects.contains(&subject) {
            found.subjects.push(subject);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_survives_the_command_line() {
        for subject in [
            Subject::Shm(Memory::Allocated),
            Subject::Shm(Memory::Own),
            Subject::Verbs("rxe0".into(), "rxe1".into()),
            Subject::Ofi("tcp;ofi_rxm".into()),
            Subject::Tcp,
        ] {
            assert_eq!(subject.to_string().parse(), Ok(subject));
        }
        assert!("moon".parse::<Subject>().is_err());
    }
}
