//! What the programs have in common: pairs of ranks, ways to synchronise.

use transom::{Epoch, Job, LockKind, MemoryModel, Result, Window};

pub use super::each::each;

/// The processes of the standard's examples.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    A,
    B,
    /// Without a partner: takes part in collectives only.
    Idle,
}

/// Ranks 0 and 1, 2 and 3, …: the even one is process A, the odd one process B, which has the window location.
#[derive(Clone, Copy)]
pub struct Pair {
    pub a: usize,
    pub b: usize,
    role: Role,
}

impl Pair {
    pub fn of(job: &Job) -> Self {
        let (a, b) = (job.rank() & !1, job.rank() | 1);
        let role = match job.rank() {
            _ if b >= job.size() => Role::Idle,
            rank if rank == a => Role::A,
            _ => Role::B,
        };
        Self { a, b, role }
    }

    pub fn is_a(&self) -> bool {
        self.role == Role::A
    }

    pub fn is_b(&self) -> bool {
        self.role == Role::B
    }
}

/// How an access of A to B is synchronised.
#[derive(Debug, Clone, Copy)]
pub enum How {
    Fence,
    Start,
    Lock,
    LockAll,
}

pub const HOWS: [How; 4] = [How::Fence, How::Start, How::Lock, How::LockAll];

/// A runs `body` in an access epoch to B; the others do their part.
pub fn access<'env>(
    window: &Window<u64>,
    pair: Pair,
    how: How,
    body: impl FnOnce(&Epoch<'_, 'env, u64>) -> Result<()>,
) -> Result<()> {
    match (how, pair.role) {
        (How::Fence, Role::A) => window.fence(body),
        (How::Fence, _) => window.fence(|_| Ok(())),
        (How::Start, Role::A) => window.start(&[pair.b], body),
        (How::Start, Role::B) => window.expose(&[pair.a], |_| Ok(())),
        (How::Lock, Role::A) => window.lock(LockKind::Exclusive, pair.b, body),
        (How::LockAll, Role::A) => window.lock_all(body),
        _ => Ok(()),
    }
}

/// An element of a rank's public copy, under a shared lock.
pub fn public(window: &Window<u64>, rank: usize, at: usize) -> Result<u64> {
    window.lock(LockKind::Shared, rank, |epoch| epoch.get_value(rank, at))
}

/// A value that the rules do not guarantee to be new. In the separate model, which reconciles at no other time than the
/// rules say, it is old.
pub fn assert_obsolete(window: &Window<u64>, seen: u64, old: u64, new: u64) {
    match window.model() {
        MemoryModel::Separate => assert_eq!(seen, old, "the copies met before they had to"),
        MemoryModel::Unified => assert!(seen == old || seen == new, "{seen} is neither {old} nor {new}"),
    }
}
