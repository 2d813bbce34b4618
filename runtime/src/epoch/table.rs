//! Which epochs this process has open on a window: at most one kind at a time, one lock a target (MPI-4.1 §12.5).

use crate::{Class, Error, Result};

/// The open epochs of one window.
#[derive(Debug, Default)]
pub(crate) struct Epochs {
    locked: Vec<usize>,
    all: bool,
    fence: bool,
}

fn in_the_way(operation: &'static str, what: &str) -> Error {
    Error::new(Class::RmaSync, operation, format!("{what} on this window: close it first"))
}

impl Epochs {
    /// No epoch may be open.
    pub fn check_none(&self, operation: &'static str) -> Result<()> {
        match self.locked.first() {
            _ if self.all => Err(in_the_way(operation, "a lock_all epoch is open")),
            _ if self.fence => Err(in_the_way(operation, "a fence epoch is open")),
            Some(target) => Err(in_the_way(operation, &format!("a lock of rank {target} is held"))),
            None => Ok(()),
        }
    }

    /// Opens a lock epoch to `target`.
    pub fn open_lock(&mut self, target: usize) -> Result<()> {
        if self.all || self.fence {
            return self.check_none("lock");
        }
        if self.locked.contains(&target) {
            return Err(in_the_way("lock", &format!("a lock of rank {target} is held already")));
        }
        self.locked.push(target);
        Ok(())
    }

    /// Closes it.
    pub fn close_lock(&mut self, target: usize) {
        self.locked.retain(|t| *t != target);
    }

    /// Opens a lock_all epoch.
    pub fn open_all(&mut self) -> Result<()> {
        self.check_none("lock_all")?;
        self.all = true;
        Ok(())
    }

    /// Closes it.
    pub fn close_all(&mut self) {
        self.all = false;
    }

    /// Opens a fence epoch.
    pub fn open_fence(&mut self) -> Result<()> {
        self.check_none("fence")?;
        self.fence = true;
        Ok(())
    }

    /// Closes it.
    pub fn close_fence(&mut self) {
        self.fence = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_kind_at_a_time() {
        let mut epochs = Epochs::default();
        epochs.open_lock(1).unwrap();
        epochs.open_lock(2).unwrap();
        for error in [epochs.open_lock(1), epochs.open_all(), epochs.open_fence(), epochs.check_none("free")]
        {
            assert_eq!(error.unwrap_err().class(), Class::RmaSync);
        }
        epochs.close_lock(1);
        epochs.close_lock(2);
        epochs.open_all().unwrap();
        assert!(epochs.open_lock(1).is_err());
        epochs.close_all();
        epochs.open_fence().unwrap();
        assert!(epochs.open_lock(1).is_err() && epochs.open_fence().is_err());
        epochs.close_fence();
        epochs.check_none("free").unwrap();
    }
}
