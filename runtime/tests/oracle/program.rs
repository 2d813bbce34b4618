//! What a program consists of.

use std::ops::Range;

use transom::{Assert, DataType, LockKind, ReduceOp};

use super::recipe::Shape;

/// How the window is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Allocate,
    Create,
    Shared,
    Dynamic,
}

/// The type of the window's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    U8,
    U16,
    I32,
    I64,
}

impl Word {
    pub fn data_type(self) -> DataType {
        match self {
            Self::U8 => DataType::U8,
            Self::U16 => DataType::U16,
            Self::I32 => DataType::I32,
            Self::I64 => DataType::I64,
        }
    }

    pub fn size(self) -> usize {
        self.data_type().size()
    }
}

#[derive(Debug, Clone)]
pub struct Program {
    pub seed: u64,
    pub ranks: usize,
    pub kind: Kind,
    pub word: Word,
    pub separate: bool,
    pub hints: Vec<(&'static str, &'static str)>,
    /// Bytes of each region, by rank; one region unless the window is dynamic.
    pub regions: Vec<Vec<usize>>,
    /// Displacement units, by rank.
    pub units: Vec<usize>,
    /// Bytes of each rank's part that a second window lies over, with displacement unit 1.
    pub second: Option<Vec<Range<usize>>>,
    pub rounds: Vec<Round>,
}

#[derive(Debug, Clone)]
pub struct Round {
    pub number: usize,
    /// Through the second window.
    pub second: bool,
    pub epoch: Epoch,
    /// Whether the windows are synchronised before an epoch that does so itself.
    pub sync: bool,
    /// What each rank stores to its own memory before the epoch.
    pub stores: Vec<Vec<Store>>,
    /// What each rank does in the epoch.
    pub operations: Vec<Vec<Operation>>,
}

#[derive(Debug, Clone)]
pub enum Epoch {
    /// Assertions by rank.
    Fence {
        before: Vec<Assert>,
        after: Vec<Assert>,
        explicit: bool,
    },
    LockAll {
        nocheck: bool,
        explicit: bool,
    },
    /// Kind and assertion by origin and target. `nested`: one origin's locks are held together.
    Locks {
        locks: Vec<Vec<(LockKind, Assert)>>,
        nested: bool,
        explicit: bool,
    },
    /// Whether an origin accesses a target.
    Pscw {
        access: Vec<Vec<bool>>,
        posts: Vec<Assert>,
        nocheck: bool,
        explicit: bool,
    },
}

impl Epoch {
    /// Whether each rank's memory is up to date when the epoch ends there.
    pub fn is_active(&self) -> bool {
        matches!(self, Self::Fence { .. } | Self::Pscw { .. })
    }

    pub fn is_explicit(&self) -> bool {
        match self {
            Self::Fence { explicit, .. }
            | Self::LockAll { explicit, .. }
            | Self::Locks { explicit, .. }
            | Self::Pscw { explicit, .. } => *explicit,
        }
    }

    /// Whether flushes are allowed in it.
    pub fn can_flush(&self) -> bool {
        !(self.is_explicit() && self.is_active())
    }

    pub fn covers(&self, origin: usize, target: usize) -> bool {
        match self {
            Self::Pscw { access, .. } => access[origin][target],
            _ => true,
        }
    }
}

/// A store of the owner's.
#[derive(Debug, Clone)]
pub struct Store {
    pub id: usize,
    pub region: usize,
    pub at: usize,
    pub bytes: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// `put`, `put_copy` or `put_value`.
    Put,
    PutCopy,
    PutNotify(u64),
    /// Complete at the end of the epoch.
    Get,
    /// Complete at once.
    Read,
    Accumulate(ReduceOp),
    GetAccumulate(ReduceOp),
    FetchOp(ReduceOp),
    CompareSwap,
    Flush,
    FlushLocal,
    FlushAll,
    FlushLocalAll,
    /// Of own memory.
    Load,
    Store,
}

impl Verb {
    pub fn reduces(self) -> Option<ReduceOp> {
        match self {
            Self::Accumulate(op) | Self::GetAccumulate(op) | Self::FetchOp(op) => Some(op),
            _ => None,
        }
    }

    pub fn is_flush(self) -> bool {
        matches!(self, Self::Flush | Self::FlushLocal | Self::FlushAll | Self::FlushLocalAll)
    }

    pub fn is_local(self) -> bool {
        matches!(self, Self::Load | Self::Store)
    }

    pub fn is_put(self) -> bool {
        matches!(self, Self::Put | Self::PutCopy | Self::PutNotify(_))
    }

    pub fn is_get(self) -> bool {
        matches!(self, Self::Get | Self::Read)
    }

    /// Whether it fetches something.
    pub fn fetches(self) -> bool {
        self.is_get()
            || matches!(self, Self::GetAccumulate(_) | Self::FetchOp(_) | Self::CompareSwap | Self::Load)
    }

    /// Whether it may be under way after the call.
    pub fn is_pending(self) -> bool {
        self.is_put() || matches!(self, Self::Get | Self::Accumulate(_))
    }
}

/// One of a rank's operations.
#[derive(Debug, Clone)]
pub struct Operation {
    pub id: usize,
    /// None is the null rank.
    pub target: Option<usize>,
    pub region: usize,
    /// Byte of the region where the target's layout has its address.
    pub at: usize,
    pub verb: Verb,
    /// By the calls for windows' elements, not those for datatypes.
    pub typed: bool,
    /// Whether what is fetched depends on nobody else.
    pub determined: bool,
    /// Elements at the target.
    pub there: Shape,
    /// Elements of `data`, and of what is fetched.
    pub from: Shape,
    pub to: Shape,
    pub data: Vec<u8>,
    /// Of a compare-and-swap.
    pub compare: Vec<u8>,
    /// Bytes of the buffer for what is fetched.
    pub room: usize,
}

impl Operation {
    /// Offset and type of each element at the target, in its region.
    pub fn places(&self) -> impl Iterator<Item = (usize, DataType)> {
        self.there.elements().into_iter().map(|(offset, ty)| ((self.at as i64 + offset) as usize, ty))
    }
}
