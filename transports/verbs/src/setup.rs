//! Opens the objects.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use ibverbs::{
    Access, Atomics, Batch, CompletionChannel, CompletionQueue, MAX_PARTS, ProtectionDomain, QueuePair,
    QueuePairOptions, SharedReceiveQueue, VerbsError, WorkCompletion,
};
use slab::Slab;
use transom_transport::{TransportError, TransportResult};

use crate::Options;
use crate::confirm;
use crate::connect::{Connect, Connector, timer};
use crate::datagrams::{Datagrams, ROUTING_HEADER};
use crate::device::{Device, Network, PORT, unavailable};
use crate::local::Registrations;
use crate::manager::Manager;
use crate::peer_receives::PeerReceives;
use crate::pool::Pool;
use crate::port::{BATCH, Bounds, Port};
use crate::posting::COPIED;
use crate::wait::Wait;
use crate::wire::Hello;

/// Most bytes of a message, and of a put or get that is copied.
pub(crate) const MAX_MESSAGE: usize = 16 << 10;
/// Buffers for small messages, atomics and small gets, and their size.
const SMALL: usize = 1024;
const SMALL_BYTES: usize = 256;
/// Buffers for other messages and copies.
const LARGE: usize = 128;
/// Of the receives asked for, the part that each peer gets where they are not shared; and how many at least and at most.
const EACH_OF: usize = 8;
const LEAST_EACH: usize = 4;
const MOST_EACH: usize = 64;
/// Buffers for datagrams, each way.
const DATAGRAMS: usize = 64;
/// What a datagram is sent with must not be a guess.
const QUEUE_KEY_BITS: u32 = 0x7fff_ffff;
/// Bytes written into a work request, at most: more makes every work request longer.
pub(crate) const INLINE: u32 = 128;
/// Reads and atomics at a time, at most.
pub(crate) const READS: u32 = 16;

/// An error of registering memory.
pub(crate) fn refused(bytes: usize, error: &VerbsError) -> TransportError {
    TransportError::NoMemory { bytes, reason: format!("registration: {error}") }
}

/// Opens everything, and posts the receives.
pub(crate) fn open(options: &Options, device: Device) -> TransportResult<Port> {
    let failed = |e: VerbsError| unavailable(format!("device {}: {e}", device.context.name()));
    let domain = ProtectionDomain::new(&device.context).map_err(failed)?;
    let attributes = &device.attributes;
    let limits = &options.limits;
    let receives = limits.receives.clamp(4, attributes.max_srq_wr.max(4) as usize);
    // Where a message must not come without a receive, each peer has some of its own.
    let iwarp = device.network == Network::Iwarp;
    let each = (receives / EACH_OF).clamp(LEAST_EACH, MOST_EACH).min(attributes.max_qp_wr.max(1) as usize);
    let receives = if iwarp { each * options.ranks } else { receives };
    let reserved = receives + 2 * DATAGRAMS;
    let completions = limits.completions.max(reserved + 16).min(attributes.max_cqe as usize);
    if completions <= reserved {
        return Err(unavailable(format!("a completion queue of {completions} entries is too short")));
    }
    let channel = CompletionChannel::new(&device.context).map_err(failed)?;
    let queue = CompletionQueue::new(&device.context, completions as u32, Some(&channel)).map_err(failed)?;
    let sink = device.sink();
    let shared = match iwarp {
        true => None,
        false => Some(SharedReceiveQueue::new(&domain, receives as u32).map_err(failed)?),
    };
    let connector = match (options.connect, device.network) {
        (Connect::Datagram, Network::Iwarp) => {
            let reason = "it has no datagrams (TRANSOM_VERBS_CONNECT=cm, or auto, connects by rdma_cm)";
            return Err(unavailable(format!("device {}: {reason}", device.context.name())));
        }
        (Connect::Manager, _) | (_, Network::Iwarp) => {
            Connector::Manager(Manager::new(device.context.name())?)
        }
        _ => Connector::Datagrams(datagrams(&domain, &queue)?),
    };
    let inbox = Arc::new(match iwarp {
        true => Pool::unregistered(receives, MAX_MESSAGE)?,
        false => Pool::new(&domain, receives, MAX_MESSAGE, Access::LOCAL_WRITE)?,
    });
    let peer_receives = match iwarp {
        true => Some(PeerReceives::new(&domain, options.ranks, each, &inbox, sink)?),
        false => None,
    };
    let wait = Wait::new(&device.context, channel)?;
    if let Connector::Manager(manager) = &connector {
        wait.add(manager.fd())?;
    }
    let piece = device.max_message.min(1 << 30);
    let bounds = Bounds {
        queue_pairs: limits.queue_pairs.max(1),
        depth: limits.depth.min(attributes.max_qp_wr as usize).max(if iwarp { confirm::READS } else { 2 }),
        inline: INLINE,
        piece,
        copied: if device.is_soft_iwarp() { 0 } else { COPIED.min(piece) },
        put_parts: (attributes.max_sge as usize).clamp(1, MAX_PARTS),
        get_parts: (attributes.max_sge_rd.min(attributes.max_sge) as usize).clamp(1, MAX_PARTS),
        short_reads_stay: device.is_soft_iwarp(),
        answers: attributes.max_qp_rd_atom.clamp(1, READS) as u8,
        questions: attributes.max_qp_init_rd_atom.clamp(1, READS) as u8,
        timer: timer(options.silence),
    };
    let atomic_access =
        if attributes.atomics == Atomics::None { Access::NONE } else { Access::REMOTE_ATOMIC };
    let mut port = Port {
        closed: false,
        simple: matches!(connector, Connector::Datagrams(_)) && peer_receives.is_none(),
        rank: options.rank,
        secret: random()?,
        links: (0..options.ranks).map(|_| None).collect(),
        dirty: BTreeSet::new(),
        waiting: VecDeque::new(),
        connecting: BTreeSet::new(),
        open: 0,
        uses: 0,
        inbound: HashMap::new(),
        retired: Vec::new(),
        connector: Some(connector),
        receives: shared,
        peer_receives,
        small: Pool::new(&domain, SMALL, SMALL_BYTES, sink)?,
        large: Pool::new(&domain, LARGE, MAX_MESSAGE, sink)?,
        inbox,
        regions: Slab::new(),
        registrations: Registrations::new(sink),
        holds: Slab::new(),
        credits: completions - reserved,
        batch: Batch::new(),
        entries: Box::new([WorkCompletion::EMPTY; BATCH]),
        found: Vec::new(),
        bounds,
        atomic_access,
        wait,
        queue,
        domain,
        device,
    };
    if !iwarp {
        for buffer in 0..receives as u32 {
            port.receive_into(buffer)?;
        }
    }
    if let Some(Connector::Datagrams(_)) = port.connector {
        (0..DATAGRAMS as u32).for_each(|buffer| port.listen(buffer));
    }
    port.bounds.inline = granted(&port).map_err(|e| unavailable(e.to_string()))?;
    Ok(port)
}

/// Bytes that the device takes with a work request.
fn granted(port: &Port) -> Result<u32, VerbsError> {
    crate::connect::queue_pair(port, 0).map(|queue_pair| queue_pair.inline().min(INLINE))
}

fn datagrams(domain: &Arc<ProtectionDomain>, queue: &Arc<CompletionQueue>) -> TransportResult<Datagrams> {
    let options = QueuePairOptions {
        send: queue,
        receive: queue,
        shared: None,
        sends: DATAGRAMS as u32,
        receives: DATAGRAMS as u32,
        parts: 1,
        inline: 0,
        signal_all: false,
    };
    let failed = |e: VerbsError| unavailable(e.to_string());
    let queue_pair = QueuePair::datagram(domain, &options).map_err(failed)?;
    let queue_key = random()? as u32 & QUEUE_KEY_BITS;
    queue_pair.initialise_datagram(PORT, queue_key).map_err(failed)?;
    Ok(Datagrams {
        queue_pair,
        queue_key,
        incoming: Pool::new(domain, DATAGRAMS, ROUTING_HEADER + Hello::BYTES, Access::LOCAL_WRITE)?,
        outgoing: Pool::new(domain, DATAGRAMS, Hello::BYTES, Access::LOCAL_WRITE)?,
        handles: (0..DATAGRAMS).map(|_| None).collect(),
    })
}

fn random() -> TransportResult<u64> {
    getrandom::u64().map_err(|e| TransportError::System { operation: "getrandom", reason: e.to_string() })
}
