//! Which provider to use.

use libfabric::{Hints, Info, Library, Progress, ResourceManagement, Threading, flags};
use transom_transport::devices::Class;
use transom_transport::{TransportError, TransportResult};

use crate::{NAME, Options, interface};

/// Real network cards, best first. Not asked if all ranks are on this host.
///
/// Without psm3, which also answers where there is no card, over sockets, and is then slower than tcp.
const CARDS: [&str; 5] = ["verbs;ofi_rxm", "efa", "cxi", "psm2", "opx"];
/// Devices that such cards have: those of verbs, EFA and Omni-Path are InfiniBand's to the kernel, too.
pub(crate) const DEVICES: [Class; 5] =
    [("infiniband", ""), ("infiniband_verbs", "uverbs"), ("hfi1", ""), ("cxi", ""), ("cxi_user", "")];
/// TCP. Native `tcp` saves a layer and 1 µs of 10, but only since libfabric 2.0 is it reliable datagrams of its own.
/// Never chosen: `sockets` (nothing to sleep on), `net` (breaks its promise of delivery), `udp;ofi_rxd` (crashes on
/// itself), `shm` (leaves segments behind).
const SOCKETS: [&str; 2] = ["tcp", "tcp;ofi_rxm"];
/// What goes over sockets, or stays on the host.
const WITHOUT_CARDS: [&str; 6] = ["tcp", "sockets", "net", "udp", "shm", "sm2"];
/// The libfabric from which on native `tcp` is used.
const NATIVE_TCP: u32 = 2 << 16;

/// The name of the provider that drives a network card here; `wanted` is the one asked for.
pub(crate) fn card(library: &'static Library, wanted: Option<&str>) -> TransportResult<String> {
    let name = wanted.unwrap_or_default();
    let offers = offers(library, wanted, None)?;
    let found = match wanted {
        None => best(offers, &CARDS),
        // It may be a card's that is not known here.
        Some(_) if !WITHOUT_CARDS.contains(&name.split(';').next().unwrap_or_default()) => {
            offers.into_iter().next()
        }
        Some(_) => None,
    };
    found.map(|info| info.provider()).ok_or_else(|| missing(library, "no provider drives a network card"))
}

/// The first provider that can, or the one asked for.
pub(crate) fn choose(library: &'static Library, options: &Options) -> TransportResult<Info> {
    if let Some(name) = &options.provider {
        return forced(library, name, options.loopback);
    }
    if !options.loopback
        && let Some(info) = best(offers(library, None, None)?, &CARDS)
    {
        return Ok(info);
    }
    let node = interface::listen_address(options.loopback)?;
    let native = library.version() >= NATIVE_TCP;
    let names = if native { &SOCKETS[..] } else { &SOCKETS[1..] };
    best(offers(library, Some("tcp"), Some(&node))?, names)
        .ok_or_else(|| missing(library, "no provider offers messages and remote memory access"))
}

fn forced(library: &'static Library, name: &str, loopback: bool) -> TransportResult<Info> {
    // Providers of IP networks take a node to listen on; others refuse one.
    let node = interface::listen_address(loopback);
    let mut found = match &node {
        Ok(node) => offers(library, Some(name), Some(node))?,
        Err(_) => Vec::new(),
    };
    if found.is_empty() {
        found = offers(library, Some(name), None)?;
    }
    let exact = found.iter().position(|info| info.provider() == name).unwrap_or(0);
    if exact < found.len() {
        return Ok(found.swap_remove(exact));
    }
    Err(missing(library, &format!("provider {name} (TRANSOM_OFI_PROVIDER) offers nothing here")))
}

fn best(offers: Vec<Info>, names: &[&str]) -> Option<Info> {
    let rank = |info: &Info| names.iter().position(|name| *name == info.provider());
    offers
        .into_iter()
        .filter_map(|info| Some((rank(&info)?, info)))
        .min_by_key(|(rank, _)| *rank)
        .map(|(_, i)| i)
}

/// All that a provider must do, and all that it may ask for.
fn offers(
    library: &'static Library,
    provider: Option<&str>,
    node: Option<&str>,
) -> TransportResult<Vec<Info>> {
    let hints = Hints {
        provider: provider.map(Into::into),
        source_node: node.map(Into::into),
        caps: flags::MSG | flags::RMA,
        mode: flags::CONTEXT | flags::CONTEXT2,
        mr_mode: flags::mr::COMMON,
        message_order: flags::ORDER_SAS,
        data_progress: Some(Progress::Manual),
        threading: Some(Threading::Domain),
        resource_management: Some(ResourceManagement::Enabled),
        ..Hints::default()
    };
    hints
        .query(library)
        .map_err(|e| TransportError::System { operation: "fi_getinfo", reason: e.to_string() })
}

fn missing(library: &'static Library, why: &str) -> TransportError {
    let everything = Hints { endpoint_type: None, threading: None, ..Hints::default() };
    let mut names: Vec<String> =
        everything.query(library).unwrap_or_default().iter().map(Info::provider).collect();
    names.sort();
    names.dedup();
    let reason = format!(
        "{why}; this libfabric ({}) has: {}. Another one may be installed (Debian and Ubuntu: apt install libfabric1) or \
         named in TRANSOM_LIBFABRIC",
        version(library),
        names.join(", ")
    );
    TransportError::Unavailable { transport: NAME, reason }
}

/// Whether registering memory pins no page of it: with providers over sockets, which register by writing a note.
pub(crate) fn registration_is_free(provider: &str) -> bool {
    matches!(provider.split(';').next(), Some("tcp" | "net" | "sockets"))
}

/// The library's version, for people.
pub(crate) fn version(library: &Library) -> String {
    format!("libfabric {}.{}", library.version() >> 16, library.version() & 0xffff)
}
