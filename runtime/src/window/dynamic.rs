//! Attaching memory to a dynamic window, and detaching it (MPI-4.1 §12.2.4).

use std::any::Any;
use std::sync::Arc;

use parking_lot::Mutex;
use transom_transport::{Region, Span};

use super::copies::Copies;
use super::created::Created;
use super::{Local, MemoryModel, Window, create};
use crate::engine::{Attached, Regions};
use crate::memory::{ExposedVec, Lingering, RawBuffer};
use crate::protocol::wire::Kind;
use crate::{Class, Element, Error, Result};

/// Attached memory of this rank's, as its owner has it. (What others access is the engine's [`Attached`].)
#[derive(Debug)]
pub(crate) struct Attachment {
    local: Span,
    pub copies: Option<Copies>,
    /// How peers of this node reach it.
    created: Option<Created>,
    /// Dropped before the memory, as is all before it.
    registrations: Vec<Box<dyn Region>>,
    memory: Box<dyn Any + Send>,
    /// Calls of [`Window::with_attached`] that run.
    views: usize,
}

const ATTACH: &str = "attach";

impl<T: Element> Window<T> {
    /// Attaches memory, and returns its address, by which all ranks access it (`MPI_Win_attach`). The window owns the memory
    /// until [`Window::detach`]. Not collective: tell the others the address.
    ///
    /// ```
    /// transom::local(2, |job| {
    ///     let window = job.dynamic::<u64>()?;
    ///     let address = window.attach(vec![0; 4])?;
    ///     let addresses = job.allgather(&[address])?;
    ///     let other = 1 - job.rank();
    ///     window.lock_all(|epoch| epoch.put_value(other, addresses[other][0] + 8, 5))?;
    ///     job.barrier()?;
    ///     assert_eq!(window.with_attached(address, |memory| memory.get(1))?, 5);
    ///     assert_eq!(window.detach(address)?, [0, 5, 0, 0]);
    ///     window.free()
    /// })?;
    /// # Ok::<(), transom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The window is not dynamic; the vector is empty; the memory cannot be registered ([`Class::RmaAttach`], with the
    /// reason).
    pub fn attach(&self, memory: Vec<T>) -> Result<usize> {
        self.regions(ATTACH)?;
        let (memory, local) = ExposedVec::new(memory);
        self.attach_span(local, Box::new(memory))
    }

    /// [`Window::attach`] of memory of a program in another language.
    ///
    /// # Errors
    /// As [`Window::attach`]; memory that begins at the same address is attached already.
    pub fn attach_raw(&self, memory: RawBuffer) -> Result<usize> {
        self.regions(ATTACH)?;
        if self.core.attachments.lock().contains_key(&memory.address()) {
            let message = "memory at this address is attached already: detach it first";
            return Err(self.core.error(Class::RmaAttach, ATTACH, message));
        }
        self.attach_span(memory.span(), Box::new(memory))
    }

    fn attach_span(&self, local: Span, memory: Box<dyn Any + Send>) -> Result<usize> {
        const NAME: &str = ATTACH;
        let core = &self.core;
        let regions = self.regions(NAME)?;
        let bytes = local.len();
        let refused = |e: Error| {
            let message = format!("{bytes} bytes cannot be attached: {}", e.message());
            core.error(Class::RmaAttach, NAME, message)
        };
        if local.is_empty() {
            return Err(core.error(
                Class::RmaAttach,
                NAME,
                "an empty vector has no address: attach elements",
            ));
        }
        let address = local.address();
        let shared = match core.hints.model {
            MemoryModel::Unified => Some(Created::new(&core.comm, local.clone(), core.hints.created)),
            MemoryModel::Separate => None,
        };
        let (created, local) = shared.map_or((None, local), |(created, local)| (Some(created), local));
        let (public, copies) = create::copies(&core.member, &core.hints, local.clone()).map_err(refused)?;
        let (registrations, keys) = create::register(&core.member, &public).map_err(refused)?;
        let region = Attached { address, memory: public, keys, known_to: Mutex::default() };
        let attachment = Attachment { local, copies, created, registrations, memory, views: 0 };
        core.attachments.lock().insert(address, attachment);
        regions.attach(region);
        Ok(address)
    }

    /// Detaches memory, and gives it back (`MPI_Win_detach`). After that no rank accesses it: those that cache the region
    /// are notified first.
    ///
    /// # Errors
    /// Nothing is attached at `address`, or a vector of other elements; it is being viewed.
    pub fn detach(&self, address: usize) -> Result<Vec<T>> {
        let memory = self.detach_as::<ExposedVec<T>>(address, None)?;
        Ok(memory.take())
    }

    /// [`Window::detach`] of memory of [`Window::attach_raw`].
    ///
    /// # Errors
    /// As [`Window::detach`].
    pub fn detach_raw(&self, address: usize) -> Result<()> {
        self.detach_as::<RawBuffer>(address, None).map(drop)
    }

    /// [`Window::detach_raw`] of memory that peers may still access, as long as it is there: by messages to this rank, until its next
    /// fence of the window. After that such an access is an error of class [`Class::RmaRange`].
    ///
    /// # Errors
    /// As [`Window::detach`].
    pub fn detach_lingering(&self, address: usize, lingering: Lingering) -> Result<()> {
        self.detach_as::<RawBuffer>(address, Some(lingering)).map(drop)
    }

    fn detach_as<M: Any>(&self, address: usize, lingering: Option<Lingering>) -> Result<Box<M>> {
        const NAME: &str = "detach";
        let core = &self.core;
        let regions = self.regions(NAME)?;
        let mut attachments = core.attachments.lock();
        let attachment = attachments.get(&address).ok_or_else(|| self.nothing_at(NAME, address))?;
        if attachment.views > 0 {
            return Err(core.error(Class::RmaAttach, NAME, "the memory is in use by with_attached"));
        }
        if !attachment.memory.is::<M>() {
            return Err(core.error(Class::RmaAttach, NAME, "the attached elements are of another type"));
        }
        let (Some(attachment), Some(mut region)) =
            (attachments.remove(&address), regions.detach(address, lingering))
        else {
            return Err(self.nothing_at(NAME, address));
        };
        drop(attachments);
        let known_to = Regions::known_to(&region);
        let ranks = (0..core.peers.len()).filter(|rank| known_to.contains(&core.peers.world(*rank)));
        core.notify_agents(ranks, Kind::ForgetRegion, address);
        // An access by the agent, or by another thread of this rank, may be under way.
        while Arc::get_mut(&mut region).is_none() {
            std::thread::yield_now();
        }
        drop(region);
        let Attachment { copies, created, registrations, memory, .. } = attachment;
        drop((registrations, created));
        if let Some(copies) = copies {
            copies.refresh().map_err(|e| core.name(Error::transport(NAME, &e)))?;
        }
        regions.leave(address);
        memory.downcast::<M>().map_err(|_| self.nothing_at(NAME, address))
    }

    /// Calls `view` with the memory that this rank has attached at `address`: as [`Window::local`] of other windows.
    ///
    /// # Errors
    /// Nothing is attached there; the error of `view`.
    pub fn with_attached<R>(
        &self,
        address: usize,
        view: impl FnOnce(Local<'_, T>) -> Result<R>,
    ) -> Result<R> {
        let attachments = &self.core.attachments;
        let local = match attachments.lock().get_mut(&address) {
            Some(attachment) => {
                attachment.views += 1;
                attachment.local.clone()
            }
            None => return Err(self.nothing_at("with_attached", address)),
        };
        // Counted down after a panic, too.
        let _viewing = Viewing(attachments, address);
        view(Local::new(&local))
    }

    fn regions(&self, operation: &'static str) -> Result<&Regions> {
        let message = "the window is not dynamic: make it with Communicator::dynamic";
        self.core.exposure.regions().ok_or_else(|| self.core.error(Class::RmaFlavour, operation, message))
    }

    fn nothing_at(&self, operation: &'static str, address: usize) -> Error {
        let message =
            format!("nothing is attached at {address:#x}: use an address that Window::attach returned");
        self.core.error(Class::RmaAttach, operation, message)
    }
}

/// A call of [`Window::with_attached`].
struct Viewing<'a>(&'a Mutex<std::collections::BTreeMap<usize, Attachment>>, usize);

impl Drop for Viewing<'_> {
    fn drop(&mut self) {
        if let Some(attachment) = self.0.lock().get_mut(&self.1) {
            attachment.views -= 1;
        }
    }
}
