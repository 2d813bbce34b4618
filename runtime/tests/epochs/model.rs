//! The standard's rules for epochs (MPI-4.1 §12.5) as a small state machine of one rank, against which the runtime is tried.
//! Posts and starts name this rank itself or nobody, so that what is pending is known here.

use transom::Class;

/// A call on `Explicit`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Call {
    Lock(usize),
    LockWrongly(usize),
    Unlock(usize),
    LockAll,
    UnlockAll,
    Fence {
        wrong: bool,
        no_precede: bool,
    },
    /// To this rank, or to nobody.
    Start(bool),
    StartWrongly,
    Complete,
    Post(bool),
    PostWrongly,
    Wait,
    Test,
    Flush(usize),
    FlushAll,
    Put(usize),
    PutOutside(usize),
    Get(usize),
    Accumulate(usize),
}

#[derive(Debug, Clone, PartialEq, Default)]
enum Access {
    #[default]
    None,
    /// After a fence; whether there was an operation since. Only then is there an epoch.
    Fence(bool),
    Start(bool),
    Locks(Vec<usize>),
    LockAll,
}

/// What a call must do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Outcome {
    Done,
    /// Of test.
    Tested(bool),
    Fails(Class),
    /// It would wait for another call, or for other ranks: not to be called now.
    Waits,
}

use Outcome::{Done, Fails, Tested, Waits};

/// One rank's epochs.
#[derive(Debug, Default, Clone)]
pub struct Model {
    me: usize,
    access: Access,
    /// The exposure epoch: to this rank, or to nobody.
    exposed: Option<bool>,
    posts: i64,
    completes: i64,
}

const SYNC: Outcome = Fails(Class::RmaSync);

impl Model {
    pub fn new(me: usize) -> Self {
        Self { me, ..Self::default() }
    }

    pub fn rank(&self) -> usize {
        self.me
    }

    /// Whether operations were started since the last fence.
    pub fn in_use(&self) -> bool {
        self.access == Access::Fence(true)
    }

    /// A collective fence has taken place.
    pub fn fenced(&mut self, succeed: bool) {
        self.access = if succeed { Access::Fence(false) } else { Access::None };
    }

    /// What `call` must do. If it fails, it changes nothing.
    pub fn call(&mut self, call: Call) -> Outcome {
        match call {
            Call::Put(t) | Call::Get(t) | Call::Accumulate(t) | Call::PutOutside(t) => {
                self.operation(call, t)
            }
            Call::LockWrongly(_) | Call::StartWrongly | Call::PostWrongly => Fails(Class::Assert),
            Call::Start(..) | Call::Complete | Call::Post(..) | Call::Wait | Call::Test => self.active(call),
            Call::Fence { wrong, no_precede } => match &self.access {
                _ if wrong => Fails(Class::Assert),
                Access::Fence(true) if no_precede => Fails(Class::Assert),
                Access::None | Access::Fence(_) if self.exposed.is_none() => Waits,
                _ => SYNC,
            },
            _ => self.passive(call),
        }
    }

    /// No access epoch is open.
    fn idle(&self) -> bool {
        matches!(self.access, Access::None | Access::Fence(false))
    }

    fn passive(&mut self, call: Call) -> Outcome {
        let idle = self.idle();
        // A window is not locked while it is exposed (MPI-4.1 §12.5.3), as far as its owner can see.
        let own = matches!(call, Call::LockAll) || call == Call::Lock(self.me);
        if own && self.exposed.is_some() {
            return SYNC;
        }
        match (call, &mut self.access) {
            (Call::Lock(target), Access::Locks(held)) if !held.contains(&target) => held.push(target),
            (Call::Lock(target), _) if idle => self.access = Access::Locks(vec![target]),
            (Call::LockAll, _) if idle => self.access = Access::LockAll,
            (Call::UnlockAll, Access::LockAll) => self.access = Access::None,
            (Call::Unlock(target), Access::Locks(held)) if held.contains(&target) => {
                held.retain(|other| *other != target);
                if held.is_empty() {
                    self.access = Access::None;
                }
            }
            (Call::Flush(target), Access::Locks(held)) if held.contains(&target) => {}
            (Call::FlushAll, Access::Locks(_)) | (Call::Flush(_) | Call::FlushAll, Access::LockAll) => {}
            _ => return SYNC,
        }
        Done
    }

    fn active(&mut self, call: Call) -> Outcome {
        match call {
            Call::Start(group) if self.idle() => self.access = Access::Start(group),
            Call::Complete => {
                let Access::Start(group) = self.access else { return SYNC };
                self.access = Access::None;
                self.posts -= i64::from(group);
                self.completes += i64::from(group);
            }
            Call::Post(group) if self.exposed.is_none() => {
                let locked = matches!(&self.access, Access::Locks(held) if held.contains(&self.me));
                if locked || matches!(self.access, Access::Fence(true) | Access::LockAll) {
                    return SYNC;
                }
                if matches!(self.access, Access::Fence(false)) {
                    self.access = Access::None;
                }
                self.exposed = Some(group);
                self.posts += i64::from(group);
            }
            Call::Wait | Call::Test => {
                let Some(group) = self.exposed else { return SYNC };
                let ended = !group || self.completes > 0;
                if !ended {
                    return if call == Call::Wait { Waits } else { Tested(false) };
                }
                self.completes -= i64::from(group);
                self.exposed = None;
                return if call == Call::Wait { Done } else { Tested(true) };
            }
            _ => return SYNC,
        }
        Done
    }

    fn operation(&mut self, call: Call, target: usize) -> Outcome {
        let covered = match &mut self.access {
            Access::None => false,
            Access::Fence(_) | Access::LockAll => true,
            Access::Start(group) => *group && target == self.me,
            Access::Locks(held) => held.contains(&target),
        };
        if !covered {
            return SYNC;
        }
        if matches!(self.access, Access::Start(_)) && self.posts <= 0 {
            return Waits;
        }
        if matches!(call, Call::PutOutside(_)) {
            return Fails(Class::RmaRange);
        }
        if let Access::Fence(used) = &mut self.access {
            *used = true;
        }
        Done
    }

    /// A call that brings this rank nearer to having no epoch open.
    pub fn next_to_close(&self) -> Option<Call> {
        match &self.access {
            Access::Start(_) => return Some(Call::Complete),
            Access::LockAll => return Some(Call::UnlockAll),
            Access::Locks(held) => return held.first().map(|target| Call::Unlock(*target)),
            Access::None | Access::Fence(_) => {}
        }
        match self.exposed? {
            true if self.completes <= 0 => Some(Call::Start(true)),
            _ => Some(Call::Wait),
        }
    }
}
