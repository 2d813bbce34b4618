//! What single calls of synchronisation cost, between ranks 0 and 1.

use transom::{LockKind, Result};

use super::Measure;
use crate::operation::{Operation, Sync, Verb, WORD};
use crate::repeat::{Recorder, Repeat};
use crate::suite::catalogue::Call;
use crate::suite::row::Head;
use crate::suite::stage::{Stage, Two};
use crate::windows::Windows;

/// Numbers of notifications, there and back.
const THERE: u64 = 71;
const BACK: u64 = 72;

/// A call of rank 0.
#[derive(Debug)]
pub struct Calls {
    /// What the row is about.
    pub head: Head,
    /// The call.
    pub call: Call,
}

impl Measure for Calls {
    fn head(&self) -> Head {
        self.head.clone()
    }

    fn compared(&self) -> Option<Operation> {
        let put = Operation::new(Verb::Put, WORD);
        match self.call {
            Call::PutFlush | Call::LockAll => Some(put),
            Call::LockExclusive | Call::LockShared | Call::LockPut => Some(put.by(Sync::Lock)),
            Call::Flush | Call::FlushLocal | Call::Sync | Call::Notify => None,
        }
    }

    fn round(&mut self, stage: &mut Stage<'_>, recorder: &mut Recorder) -> anyhow::Result<()> {
        let Some(Two { pair, windows }) = &mut stage.two else { return Ok(()) };
        match (self.call, pair.is_origin()) {
            (Call::Notify, true) => {
                notify(windows, 1, [THERE, BACK], recorder)?;
                recorder.scale(0.5);
            }
            (Call::Notify, false) => answer(windows, [BACK, THERE], recorder.schedule().repetitions())?,
            (call, true) => self::call(windows, call, recorder)?,
            (_, false) => {}
        }
        Ok(pair.comm().barrier()?)
    }

    fn validate(&mut self, stage: &mut Stage<'_>, seed: u64) -> anyhow::Result<Option<bool>> {
        let Some(Two { pair, windows }) = &mut stage.two else { return Ok(Some(true)) };
        if self.call != Call::Notify {
            return Ok(None);
        }
        // The word is there when its notification is: no barrier in between.
        let (area, word) = (&windows.words, [seed]);
        let mut holds = true;
        if pair.is_origin() {
            area.window.lock_all(|epoch| epoch.put_notify(1, area.at(1, 0), &word, THERE))?;
        } else {
            area.window.wait_notifications(THERE, 1)?;
            holds = area.first(1)? == word;
        }
        Ok(Some(super::all(pair.comm(), holds)?))
    }
}

fn call(windows: &mut Windows, call: Call, recorder: &mut Recorder) -> Result<()> {
    let (area, window) = (&windows.words, &windows.words.window);
    let at = area.at(1, 0);
    match call {
        Call::PutFlush => windows.act(Operation::new(Verb::Put, WORD), 1, recorder),
        Call::Flush => window.lock_all(|epoch| recorder.repeat(|| epoch.flush(1))),
        Call::FlushLocal => window.lock_all(|epoch| recorder.repeat(|| epoch.flush_local(1))),
        // The flush takes the lock: an epoch in which nothing happens need not.
        Call::LockExclusive => {
            recorder.repeat(|| window.lock(LockKind::Exclusive, 1, |epoch| epoch.flush(1)))
        }
        Call::LockShared => recorder.repeat(|| window.lock(LockKind::Shared, 1, |epoch| epoch.flush(1))),
        Call::LockPut => {
            recorder.repeat(|| window.lock(LockKind::Exclusive, 1, |epoch| epoch.put_value(1, at, 1)))
        }
        Call::LockAll => recorder.repeat(|| window.lock_all(|epoch| epoch.put_value(1, at, 1))),
        Call::Sync => recorder.repeat(|| window.sync()),
        Call::Notify => Ok(()),
    }
}

/// A word to `target` with the first number, and one back with the second.
fn notify(windows: &Windows, target: usize, [own, other]: [u64; 2], repeat: &mut impl Repeat) -> Result<()> {
    let (area, word) = (&windows.words, [1]);
    let at = area.at(target, 0);
    area.window.lock_all(|epoch| {
        repeat.repeat(|| {
            epoch.put_notify(target, at, &word, own)?;
            epoch.flush(target)?;
            area.window.wait_notifications(other, 1)
        })
    })
}

/// Rank 1's part of [`notify`], so many times.
fn answer(windows: &Windows, [own, other]: [u64; 2], count: u64) -> Result<()> {
    let (area, word) = (&windows.words, [1]);
    let at = area.at(0, 0);
    area.window.lock_all(|epoch| {
        (0..count).try_for_each(|_| {
            area.window.wait_notifications(other, 1)?;
            epoch.put_notify(0, at, &word, own)?;
            epoch.flush(0)
        })
    })
}
