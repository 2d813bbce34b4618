//! Which epochs this process has open on a window, and which may be opened next to them (MPI-4.1 §12.5): one access epoch
//! at a time, where locks of several targets count as one, and one exposure epoch.

use super::Coverage;
use crate::{Class, Error, NULL_RANK, Result};

/// The open access epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Accessing {
    #[default]
    Nothing,
    Fence,
    Start,
    Locks,
    LockAll,
}

/// The open epochs of one window.
#[derive(Debug, Default)]
pub(crate) struct Epochs {
    access: Accessing,
    /// The targets of [`Accessing::Locks`]. Kept when they go: a lock should not cost an allocation.
    locked: Vec<usize>,
    exposed: bool,
}

fn in_the_way(operation: &'static str, what: &str) -> Error {
    Error::new(Class::RmaSync, operation, format!("{what} on this window: close it first"))
}

impl Epochs {
    /// No access epoch may be open.
    fn check_no_access(&self, operation: &'static str) -> Result<()> {
        match self.access {
            Accessing::Nothing => Ok(()),
            Accessing::Fence => Err(in_the_way(operation, "a fence epoch is open")),
            Accessing::Start => {
                Err(in_the_way(operation, "an access epoch of start is open (complete ends it)"))
            }
            Accessing::LockAll => Err(in_the_way(operation, "a lock_all epoch is open")),
            Accessing::Locks => {
                Err(in_the_way(operation, &format!("locks of ranks {:?} are held", self.locked)))
            }
        }
    }

    fn check_not_exposed(&self, operation: &'static str) -> Result<()> {
        if self.exposed {
            return Err(in_the_way(operation, "an exposure epoch of post is open (wait ends it)"));
        }
        Ok(())
    }

    /// No epoch may be open.
    pub fn check_none(&self, operation: &'static str) -> Result<()> {
        self.check_no_access(operation)?;
        self.check_not_exposed(operation)
    }

    /// Opens a lock epoch to `target`; `own` is this rank, whose window is not to be locked while it is exposed.
    pub fn open_lock(&mut self, target: usize, own: usize) -> Result<()> {
        if target == own {
            self.check_not_exposed("lock")?;
        }
        match self.access {
            Accessing::Nothing => self.access = Accessing::Locks,
            Accessing::Locks if !self.locked.contains(&target) => {}
            Accessing::Locks => {
                return Err(in_the_way("lock", &format!("a lock of rank {target} is held already")));
            }
            _ => return self.check_no_access("lock"),
        }
        self.locked.push(target);
        Ok(())
    }

    /// Notes epochs that were opened when nothing was open.
    pub(super) fn note(&mut self, access: Accessing, exposed: bool) {
        (self.access, self.exposed) = (access, exposed);
    }

    /// Notes a lock epoch that was opened when nothing was open.
    pub(super) fn note_lock(&mut self, target: usize) {
        self.access = Accessing::Locks;
        self.locked.push(target);
    }

    /// Whether and how `target` is covered.
    pub(super) fn coverage(&self, target: usize) -> Coverage {
        match self.access {
            Accessing::Nothing => Coverage::None,
            Accessing::Fence | Accessing::Start => Coverage::Active,
            Accessing::LockAll => Coverage::Passive,
            Accessing::Locks if target == NULL_RANK || self.locked.contains(&target) => Coverage::Passive,
            Accessing::Locks => Coverage::None,
        }
    }

    /// The open access epoch.
    pub(super) fn accessing(&self) -> Accessing {
        self.access
    }

    /// The targets of [`Accessing::Locks`].
    pub(super) fn locked(&self) -> &[usize] {
        &self.locked
    }

    /// Whether no epoch is open.
    pub(super) fn is_empty(&self) -> bool {
        self.access == Accessing::Nothing && !self.exposed
    }

    /// Closes it.
    pub fn close_lock(&mut self, target: usize) {
        self.locked.retain(|t| *t != target);
        if self.locked.is_empty() && self.access == Accessing::Locks {
            self.access = Accessing::Nothing;
        }
    }

    /// Opens a lock_all epoch.
    pub fn open_all(&mut self) -> Result<()> {
        self.check_no_access("lock_all")?;
        self.check_not_exposed("lock_all")?;
        self.access = Accessing::LockAll;
        Ok(())
    }

    /// Opens a fence epoch: access and exposure at once.
    pub fn open_fence(&mut self) -> Result<()> {
        self.check_none("fence")?;
        self.access = Accessing::Fence;
        Ok(())
    }

    /// Opens an access epoch of start.
    pub fn open_start(&mut self) -> Result<()> {
        self.check_no_access("start")?;
        self.access = Accessing::Start;
        Ok(())
    }

    /// Closes an access epoch that is not of lock.
    pub fn close_access(&mut self) {
        self.access = Accessing::Nothing;
    }

    /// Opens an exposure epoch.
    pub fn open_post(&mut self, own: usize) -> Result<()> {
        self.check_not_exposed("post")?;
        if self.locked.contains(&own) {
            return Err(in_the_way("post", "a lock of this rank's own part is held"));
        }
        match self.access {
            // Accesses of this rank to others, or by start to itself, go with being exposed.
            Accessing::Nothing | Accessing::Start | Accessing::Locks => {}
            Accessing::Fence | Accessing::LockAll => self.check_no_access("post")?,
        }
        self.exposed = true;
        Ok(())
    }

    /// Closes it.
    pub fn close_post(&mut self) {
        self.exposed = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: usize = 0;

    /// Every call, after every state: what is allowed.
    #[test]
    fn every_order_of_calls() {
        type Open = fn(&mut Epochs) -> Result<()>;
        let opens: [(&str, Open); 7] = [
            ("lock 1", |e| e.open_lock(1, OWN)),
            ("lock 2", |e| e.open_lock(2, OWN)),
            ("lock own", |e| e.open_lock(OWN, OWN)),
            ("lock_all", Epochs::open_all),
            ("fence", Epochs::open_fence),
            ("start", Epochs::open_start),
            ("post", |e| e.open_post(OWN)),
        ];
        let together = [
            ("lock 1", "lock 2"),
            ("lock 1", "lock own"),
            ("lock 2", "lock own"),
            ("lock 1", "post"),
            ("lock 2", "post"),
            ("start", "post"),
        ];
        for (first, open_first) in opens {
            for (second, open_second) in opens {
                let mut epochs = Epochs::default();
                open_first(&mut epochs).unwrap();
                let result = open_second(&mut epochs);
                let allowed = together.contains(&(first, second)) || together.contains(&(second, first));
                assert_eq!(result.is_ok(), allowed, "{first}, {second}: {result:?}");
                if let Err(error) = result {
                    assert_eq!(error.class(), Class::RmaSync);
                }
                assert!(epochs.check_none("free").is_err());
            }
        }
    }

    #[test]
    fn what_is_closed_is_out_of_the_way() {
        let mut epochs = Epochs::default();
        epochs.open_lock(1, OWN).unwrap();
        epochs.open_lock(2, OWN).unwrap();
        epochs.close_lock(1);
        assert!(epochs.open_all().is_err());
        epochs.close_lock(2);
        epochs.open_all().unwrap();
        epochs.close_access();
        epochs.open_fence().unwrap();
        epochs.close_access();
        epochs.open_post(OWN).unwrap();
        epochs.open_start().unwrap();
        epochs.close_access();
        epochs.close_post();
        epochs.check_none("free").unwrap();
    }
}
