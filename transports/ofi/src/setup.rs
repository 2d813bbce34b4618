//! Opens the objects.

use std::sync::Arc;

use libfabric::{
    AddressVector, Completion, CompletionQueue, Descriptor, Domain, Endpoint, EndpointOptions, Fabric,
    FabricError, Info, Library, Progress, QueueOptions, flags,
};
use slab::Slab;
use transom_transport::{TransportError, TransportResult};

use crate::buffers::Buffers;
use crate::operations::Operations;
use crate::port::{BATCH, Inbox, Outbox, Port, Traits, named};
use crate::wait::Wait;
use crate::{NAME, Options, provider};

/// Most bytes of a message.
const MAX_MESSAGE: usize = 16 * 1024;
/// Up to this size the provider ofi_rxm sends a message in one piece; what is longer it splits, and then (1.17) lets
/// later messages overtake. Its default is [`MAX_MESSAGE`].
const RXM_ONE_PIECE: &str = "FI_OFI_RXM_BUFFER_SIZE";
/// Messages on their way out, and room for messages coming in. A provider with less room for receives gets fewer.
const SENDS: usize = 64;
const RECEIVES: usize = 64;
/// `FI_ADDR_STR` of fi_getinfo(3).
const ADDRESSES_AS_TEXT: u32 = 9;
/// Begins the name of the provider that is all software, and without threads where progress is manual (fi_tcp(7)).
const POLLED: &str = "tcp";
/// Completions the queue has room for.
const QUEUE: usize = 8192;

/// Finds the library and a provider.
pub(crate) fn find(options: &Options) -> TransportResult<Info> {
    provider::choose(library()?, options)
}

/// The library, where there is one.
pub(crate) fn library() -> TransportResult<&'static Library> {
    Library::open().map_err(|e| TransportError::Unavailable { transport: NAME, reason: e.to_string() })
}

/// Opens everything on a provider's offer, and posts the receives.
pub(crate) fn open(info: &Info, options: &Options) -> TransportResult<Port> {
    let max_message = max_message(info);
    let receives = RECEIVES.min(info.receive_size().max(1));
    let mut port =
        objects(info, options, receives, max_message).map_err(|e| TransportError::Unavailable {
            transport: NAME,
            reason: format!("provider {}: {}", info.provider(), named(&e)),
        })??;
    if port.traits.local {
        register_pools(&mut port)?;
    }
    for buffer in 0..receives {
        port.receive_into(buffer)?;
    }
    Ok(port)
}

/// Most bytes of a message on this provider.
pub(crate) fn max_message(info: &Info) -> usize {
    let set = std::env::var(RXM_ONE_PIECE).ok().and_then(|size| size.trim().parse().ok());
    MAX_MESSAGE.min(info.max_message_size()).min(set.unwrap_or(usize::MAX))
}

fn objects(
    info: &Info,
    options: &Options,
    receives: usize,
    max_message: usize,
) -> Result<TransportResult<Port>, FabricError> {
    let fabric = Fabric::open(info)?;
    // SAFETY: everything of this domain is in one `Port`, which is used and dropped under one lock.
    let domain = unsafe { Domain::open_serialised(&fabric, info)? };
    let queue = CompletionQueue::open(&domain, &QueueOptions { size: QUEUE, wait: libfabric::Wait::Fd })
        .or_else(|_| {
            CompletionQueue::open(&domain, &QueueOptions { size: QUEUE, ..QueueOptions::default() })
        })?;
    let addresses = AddressVector::open(&domain, info, options.ranks)?;
    let endpoint = Endpoint::open(&domain, info, &addresses, &queue, &queue, &EndpointOptions::default())?;
    let port = || {
        let inbox = Inbox {
            buffers: Arc::new(Buffers::new(receives, max_message)?),
            posted: vec![false; receives].into(),
            waiting: Vec::new(),
            descriptor: Descriptor::NONE,
        };
        let outbox = Outbox {
            buffers: Buffers::new(SENDS, max_message)?,
            free: (0..SENDS).rev().collect(),
            peers: vec![None; SENDS].into(),
            descriptor: Descriptor::NONE,
        };
        Ok(Port {
            regions: Slab::new(),
            endpoint: Some(endpoint),
            operations: Operations::new(receives, SENDS)?,
            patience: options.patience,
            registrations: Vec::new(),
            outbox,
            inbox,
            peers: (0..options.ranks).map(|_| None).collect(),
            addresses,
            fabric,
            domain,
            traits: traits(info),
            wait: Wait::new(&queue)?,
            queue,
            entries: [Completion::EMPTY; BATCH],
            found: Vec::new(),
            unreachable: None,
            distrusted: false,
        })
    };
    Ok(port())
}

fn traits(info: &Info) -> Traits {
    let mode = info.mr_mode();
    let key_bits = (info.mr_key_size() * 8).clamp(8, 64) as u32;
    Traits {
        inject: info.inject_size(),
        local: mode & flags::mr::LOCAL != 0,
        virtual_addresses: mode & flags::mr::VIRT_ADDR != 0,
        key_mask: (mode & flags::mr::PROV_KEY == 0).then_some(u64::MAX >> (64 - key_bits)),
        fixed_addresses: info.address_format() != ADDRESSES_AS_TEXT,
        bound: mode & flags::mr::ENDPOINT != 0,
        polled: info.provider().starts_with(POLLED) && info.data_progress() == Progress::Manual,
    }
}

fn register_pools(port: &mut Port) -> TransportResult<()> {
    let (inbox, outbox) = (&port.inbox.buffers, &port.outbox.buffers);
    // SAFETY: both mappings outlive the registrations, which the port drops before them, and are only used through
    // pointers while the provider has them.
    let (receives, sends) = unsafe {
        (
            port.register(inbox.start(), inbox.len(), flags::RECV)?,
            port.register(outbox.start(), outbox.len(), flags::SEND)?,
        )
    };
    port.inbox.descriptor = receives.descriptor();
    port.outbox.descriptor = sends.descriptor();
    port.registrations.extend([receives, sends]);
    Ok(())
}
