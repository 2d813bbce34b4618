//! Options of a window: displacement unit, hints, and what these mean.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};

use super::created::{CREATED, CREATED_AS, CreatedHint};
use super::domain::{ATOMICS, AtomicsHint};
use super::pages::{PAGES, PAGES_AS, PagesHint};
use crate::{Class, Error, Result};

/// Whether a window's public and private copy are the same memory (MPI-4.1 §12.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum MemoryModel {
    /// They are: what others put is seen by loads, sooner or later, without further calls (`MPI_WIN_UNIFIED`).
    #[default]
    Unified,
    /// Each rank has a second copy that others access. The two are reconciled by the calls that rules 5 and 6 of the
    /// standard name, and at no other time (`MPI_WIN_SEPARATE`). For finding missing synchronisation.
    Separate,
}

/// Where a window's memory comes from (`MPI_WIN_CREATE_FLAVOR`, MPI-4.1 §12.2.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Flavour {
    /// The user's memory (`MPI_WIN_FLAVOR_CREATE`).
    Create,
    /// Allocated (`MPI_WIN_FLAVOR_ALLOCATE`).
    Allocate,
    /// Allocated, for loads and stores of all ranks (`MPI_WIN_FLAVOR_SHARED`).
    Shared,
    /// Attached later (`MPI_WIN_FLAVOR_DYNAMIC`).
    Dynamic,
}

/// Hints as keys and values (`MPI_Info`, MPI-4.1 §10). Unknown keys are kept and have no effect.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Info(BTreeMap<String, String>);

impl Info {
    /// No hints.
    pub fn new() -> Self {
        Self::default()
    }

    /// With one more hint.
    pub fn with(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.set(key, value);
        self
    }

    /// Sets a hint.
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<String>) {
        self.0.insert(key.into(), value.into());
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// Every key with its value, in order of keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }
}

/// How a window is made.
#[derive(Debug, Clone, Default)]
pub struct WindowOptions {
    /// Bytes that a displacement of 1 stands for at this rank; by default the size of an element.
    pub displacement_unit: Option<usize>,
    /// Hints (MPI-4.1 §12.2.1), the same at all ranks. Known keys, with the default first:
    ///
    /// | key | values | effect |
    /// |---|---|---|
    /// | `no_locks` | false, true | true: locks of the window are refused |
    /// | `accumulate_ordering` | rar,raw,war,waw or some of them, none | none: large accumulates overlap each other |
    /// | `accumulate_ops` | same_op_no_op, same_op | kept for programs that ask |
    /// | `same_size`, `same_disp_unit` | false, true | true: checked when the window is made |
    /// | `alloc_shared_noncontig` | false, true | true: each rank's shared part starts on a page of its own |
    /// | `mpi_accumulate_granularity` | bytes | ranges of this size are locked for accumulates, of several elements or of elements wider than 8 bytes; up to 32, each element is updated by itself; 0, the default, leaves it to the runtime. Where ranks differ, the largest |
    /// | `transom_memory_model` | unified, separate | see [`MemoryModel`] |
    /// | `transom_atomics` | auto, cpu, nic | who updates elements of 8 bytes: the network device integers, where it can and ranks are on several nodes (auto); CPUs; or the device all types, wherever it can |
    /// | `transom_created` | auto, share, attach | memory of the program's is shared with the ranks of its node in place, page by page, where nothing speaks against it (auto) or wherever it can be; or is reached by cross-memory attach. [`crate::Window::info`] tells by `transom_created_as` what became of it |
    /// | `transom_pages` | auto, small, huge | memory that the window allocates has huge pages at once, as far as the kernel gives them: accesses all over a large window are faster, and all of it is taken, touched or not. [`crate::Window::info`] tells by `transom_pages_as` what this rank has. auto: as TRANSOM_PAGES says, and else small |
    /// | `transom_explain` | false, true | true: operations are counted by path, see [`crate::Window::explain`] |
    pub info: Info,
}

impl WindowOptions {
    /// With a displacement unit in bytes.
    pub fn unit(bytes: usize) -> Self {
        Self { displacement_unit: Some(bytes), ..Self::default() }
    }

    /// With one more hint.
    pub fn with(mut self, key: &str, value: &str) -> Self {
        self.info.set(key, value);
        self
    }

    /// With a memory model.
    pub fn model(self, model: MemoryModel) -> Self {
        let value = if model == MemoryModel::Separate { "separate" } else { "unified" };
        self.with(MODEL, value)
    }
}

const NO_LOCKS: &str = "no_locks";
const ORDERING: &str = "accumulate_ordering";
const OPS: &str = "accumulate_ops";
const SAME_SIZE: &str = "same_size";
const SAME_UNIT: &str = "same_disp_unit";
const NONCONTIGUOUS: &str = "alloc_shared_noncontig";
const GRANULARITY: &str = "mpi_accumulate_granularity";
const MODEL: &str = "transom_memory_model";
const EXPLAIN: &str = "transom_explain";
/// The keys that only this runtime knows: others that begin like them are misspelt.
const OWN: [&str; 7] = [MODEL, EXPLAIN, ATOMICS, CREATED, CREATED_AS, PAGES, PAGES_AS];

/// The orders that accumulates keep unless a hint gives them up (MPI-4.1 §12.7.2).
const ORDERS: [&str; 4] = ["rar", "raw", "war", "waw"];

/// The meaning of the hints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hints {
    pub no_locks: bool,
    /// Whether one rank's accumulates to one place keep their order.
    pub ordered: bool,
    pub same_op: bool,
    pub same_size: bool,
    pub same_unit: bool,
    pub noncontiguous: bool,
    pub granularity: usize,
    pub model: MemoryModel,
    /// Whether operations are counted.
    pub explain: bool,
    pub atomics: AtomicsHint,
    pub created: CreatedHint,
    pub pages: PagesHint,
}

/// A hint that is one of some words; the default leaves it to the setting of the same meaning.
pub(crate) trait Word: Copy + Default + PartialEq + 'static {
    /// Its key.
    const KEY: &'static str;
    /// Its words.
    const ALL: &'static [(&'static str, Self)];

    /// What `info` says.
    fn parse(info: &Info) -> Result<Self> {
        let Some(value) = info.get(Self::KEY).map(str::trim) else { return Ok(Self::default()) };
        let known = || {
            let words: Vec<&str> = Self::ALL.iter().map(|(word, _)| *word).collect();
            words
                .split_last()
                .map_or_else(String::new, |(last, others)| format!("{} or {last}", others.join(", ")))
        };
        Self::named(value).ok_or_else(|| invalid(Self::KEY, &format!("is {value:?}"), &known()))
    }

    /// The one of this name.
    fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, wanted)| *wanted)
    }

    /// Its word.
    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, wanted)| *wanted == self).map_or("", |(name, _)| name)
    }

    /// What is wanted, which `setting` says where the hint does not.
    fn or(self, setting: Self) -> Self {
        if self == Self::default() { setting } else { self }
    }
}

/// The hints that can change while there is a window.
#[derive(Debug)]
pub(crate) struct LiveHints {
    no_locks: AtomicBool,
    ordered: AtomicBool,
    same_op: AtomicBool,
}

impl LiveHints {
    /// As the window was made.
    pub fn new(hints: &Hints) -> Self {
        Self {
            no_locks: AtomicBool::new(hints.no_locks),
            ordered: AtomicBool::new(hints.ordered),
            same_op: AtomicBool::new(hints.same_op),
        }
    }

    /// Whether locks are refused.
    #[inline]
    pub fn no_locks(&self) -> bool {
        self.no_locks.load(Ordering::Relaxed)
    }

    /// Whether one rank's accumulates to one place keep their order.
    pub fn ordered(&self) -> bool {
        self.ordered.load(Ordering::Relaxed)
    }

    /// Takes those that `info` names, of `hints` that it comes to.
    pub fn change(&self, info: &Info, hints: &Hints) {
        let all = [
            (NO_LOCKS, &self.no_locks, hints.no_locks),
            (ORDERING, &self.ordered, hints.ordered),
            (OPS, &self.same_op, hints.same_op),
        ];
        for (_, now, new) in all.into_iter().filter(|(key, ..)| info.get(key).is_some()) {
            now.store(new, Ordering::Relaxed);
        }
    }

    /// All hints in effect.
    pub fn info(&self, hints: &Hints) -> Info {
        let same_op = self.same_op.load(Ordering::Relaxed);
        Hints { no_locks: self.no_locks(), ordered: self.ordered(), same_op, ..hints.clone() }.info()
    }
}

impl Hints {
    /// What `info` comes to. A known key with a value that makes no sense is an error.
    pub fn parse(info: &Info) -> Result<Self> {
        let misspelt = |key: &str| key.starts_with("transom_") && !OWN.contains(&key);
        if let Some((key, _)) = info.iter().find(|(key, _)| misspelt(key)) {
            return Err(invalid(key, "is not known", &OWN.join(" or ")));
        }
        Ok(Self {
            no_locks: flag(info, NO_LOCKS)?,
            ordered: ordered(info)?,
            same_op: choice(info, OPS, ["same_op_no_op", "same_op"])?,
            same_size: flag(info, SAME_SIZE)?,
            same_unit: flag(info, SAME_UNIT)?,
            noncontiguous: flag(info, NONCONTIGUOUS)?,
            granularity: granularity(info)?,
            model: if choice(info, MODEL, ["unified", "separate"])? {
                MemoryModel::Separate
            } else {
                MemoryModel::Unified
            },
            explain: flag(info, EXPLAIN)?,
            atomics: AtomicsHint::parse(info)?,
            created: CreatedHint::parse(info)?,
            pages: PagesHint::parse(info)?,
        })
    }

    /// As keys and values.
    fn info(&self) -> Info {
        let flag = |set: bool| if set { "true" } else { "false" };
        Info::new()
            .with(NO_LOCKS, flag(self.no_locks))
            .with(ORDERING, if self.ordered { ORDERS.join(",") } else { "none".into() })
            .with(OPS, if self.same_op { "same_op" } else { "same_op_no_op" })
            .with(SAME_SIZE, flag(self.same_size))
            .with(SAME_UNIT, flag(self.same_unit))
            .with(NONCONTIGUOUS, flag(self.noncontiguous))
            .with(GRANULARITY, self.granularity.to_string())
            .with(MODEL, if self.model == MemoryModel::Separate { "separate" } else { "unified" })
            .with(EXPLAIN, flag(self.explain))
            .with(ATOMICS, self.atomics.name())
            .with(CREATED, self.created.name())
            .with(PAGES, self.pages.name())
    }
}

pub(super) fn invalid(key: &str, what: &str, known: &str) -> Error {
    Error::new(Class::Info, "window", format!("the hint {key} {what}: use {known}"))
}

/// Whether the second of two values is given; the first is the default.
fn choice(info: &Info, key: &str, [no, yes]: [&str; 2]) -> Result<bool> {
    match info.get(key).map(str::trim) {
        None => Ok(false),
        Some(value) if value.eq_ignore_ascii_case(no) => Ok(false),
        Some(value) if value.eq_ignore_ascii_case(yes) => Ok(true),
        Some(value) => Err(invalid(key, &format!("is {value:?}"), &format!("{no} or {yes}"))),
    }
}

fn flag(info: &Info, key: &str) -> Result<bool> {
    choice(info, key, ["false", "true"])
}

fn ordered(info: &Info) -> Result<bool> {
    match info.get(ORDERING).map(str::trim) {
        None => Ok(true),
        Some("none") => Ok(false),
        // Any of the four keeps them all: an order more than asked for does no harm.
        Some(value) if value.split(',').all(|order| ORDERS.contains(&order.trim())) => Ok(true),
        Some(value) => Err(invalid(ORDERING, &format!("is {value:?}"), "rar, raw, war, waw, or none")),
    }
}

fn granularity(info: &Info) -> Result<usize> {
    match info.get(GRANULARITY).map(str::trim) {
        None => Ok(0),
        Some(value) => {
            value.parse().map_err(|_| invalid(GRANULARITY, &format!("is {value:?}"), "a number of bytes"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_come_back_as_they_were_given() {
        let info = Info::new()
            .with("no_locks", "true")
            .with("accumulate_ordering", "none")
            .with("accumulate_ops", "same_op")
            .with("mpi_accumulate_granularity", "64")
            .with("transom_memory_model", "separate")
            .with("transom_explain", "true")
            .with("transom_atomics", "nic")
            .with("transom_created", "attach")
            .with("transom_pages", "huge")
            .with("unknown", "kept by nobody");
        let hints = Hints::parse(&info).unwrap();
        let effective = hints.info();
        for key in [
            "no_locks",
            "accumulate_ordering",
            "accumulate_ops",
            "transom_memory_model",
            "transom_explain",
            "transom_atomics",
            "transom_created",
            "transom_pages",
        ] {
            assert_eq!(effective.get(key), info.get(key));
        }
        assert_eq!((effective.get("unknown"), effective.get("same_size")), (None, Some("false")));
    }

    #[test]
    fn nonsense_is_an_error_and_not_a_default() {
        for (key, value) in [
            ("no_locks", "yes"),
            ("accumulate_ordering", "rar,xyz"),
            ("accumulate_ops", "any"),
            ("mpi_accumulate_granularity", "-1"),
            ("transom_memory_model", "unify"),
            ("transom_memory_modle", "separate"),
            ("transom_explain", "stderr"),
            ("transom_atomics", "gpu"),
            ("transom_created", "yes"),
            ("transom_pages", "large"),
        ] {
            let error = Hints::parse(&Info::new().with(key, value)).unwrap_err();
            assert_eq!(error.class(), Class::Info, "{key}");
            assert!(error.to_string().contains(key), "{error}");
        }
    }
}
