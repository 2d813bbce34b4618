//! Views of a window: each keeps account of its own operations.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;

use super::Core;
use super::options::LiveHints;
use super::table::Peers;
use crate::Result;
use crate::epoch::AccessState;
use crate::shortcut::ShortCut;

impl Core {
    /// A view of this window: the same memory, with epochs of its own, and its own account of what this rank has outstanding. So flushes
    /// complete what was issued through it, and nothing else; no other rank knows of it. Not collective. It is to be dropped before the window
    /// is freed.
    pub fn view(&self) -> Self {
        let mapped = self.shortcut.targets();
        Self {
            member: self.member.clone(),
            comm: self.comm.clone(),
            rank: self.rank,
            title: self.title,
            number: self.number,
            exposure: self.exposure.clone(),
            peers: Peers::new(self.comm.channel().clone(), self.peers.parts().clone()),
            access: AccessState::default(),
            shortcut: ShortCut::new(mapped, self.member.control.sections.clone(), false),
            flavour: self.flavour,
            hints: self.hints.clone(),
            live: LiveHints::new(&self.hints),
            counters: self.counters.clone(),
            name: Mutex::new(self.name.lock().clone()),
            local: self.local.clone(),
            copies: None,
            attachments: Mutex::new(BTreeMap::new()),
            registrations: Mutex::default(),
            private: self.private,
            domain: self.domain,
            user_memory: false,
            created: None,
            pages: None,
            block: None,
            freed: AtomicBool::new(false),
            is_view: true,
        }
    }

    /// Has a view reach a target's memory as this window does, which is attached once for all.
    pub fn lend(&self, operation: &'static str, target: usize, view: &Self) -> Result<()> {
        if let (Some(own), Some(peer)) = (self.peers.get(target), view.peers.get(target))
            && peer.remote.get().is_none()
        {
            let remote = self.remote(operation, target, own)?;
            peer.remote.get_or_init(|| remote.clone());
        }
        Ok(())
    }
}
