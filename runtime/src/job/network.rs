//! The transport between nodes: verbs where every rank has a device, else libfabric. All ranks come to the same answer.

use std::sync::Arc;

use transom_ofi::Ofi;
use transom_transport::Transport;
use transom_verbs::Verbs;

use super::connect::{decode, encode};
use crate::bootstrap::Bootstrap;
use crate::settings::Settings;
use crate::{Class, Error, Result};

/// A transport's address, or why a rank cannot have it.
type BusinessCard = std::result::Result<Vec<u8>, String>;

/// What a rank opened, or why it could not.
type Opened = std::result::Result<Arc<dyn Transport>, String>;

/// The bootstrap's exchanges of addresses.
const OF_VERBS: u32 = 1;
const OF_OFI: u32 = 2;

/// Whether this host has an RDMA device that may be used; or why not.
pub(super) fn verbs_available(settings: &Settings) -> std::result::Result<(), String> {
    if !settings.verbs {
        return Err("TRANSOM_TRANSPORT does not name verbs".into());
    }
    transom_verbs::devices().map(drop).map_err(|e| e.to_string())
}

/// Opens a network on every rank, or fails on every rank with the error of the first that could not. `verbs`: whether each
/// rank has a device.
pub(super) fn open(
    settings: &Settings,
    bootstrap: &mut dyn Bootstrap,
    verbs: Vec<std::result::Result<(), String>>,
    without_shm: &str,
) -> Result<Arc<dyn Transport>> {
    let mut no_verbs = verbs.into_iter().enumerate().find_map(|(peer, found)| Some((peer, found.err()?)));
    if no_verbs.is_none() {
        let opened = open_verbs(settings, bootstrap);
        match connect(bootstrap, OF_VERBS, opened)? {
            Ok(transport) => return Ok(transport),
            Err(first) => no_verbs = Some(first),
        }
    }
    let (peer, why) = no_verbs.unwrap_or_default();
    if !settings.ofi {
        let message = match settings.verbs {
            true => format!("rank {peer}: {why}"),
            false => format!("{without_shm}, and TRANSOM_TRANSPORT names no network: verbs or ofi"),
        };
        return Err(Error::new(Class::Transport, "init", message));
    }
    tracing::debug!(peer, why, "no verbs: libfabric");
    let opened = open_ofi(settings, bootstrap);
    connect(bootstrap, OF_OFI, opened)?
        .map_err(|(peer, reason)| Error::new(Class::Transport, "init", format!("rank {peer}: {reason}")))
}

fn open_verbs(settings: &Settings, bootstrap: &dyn Bootstrap) -> Opened {
    let options = transom_verbs::Options {
        ranks: bootstrap.size(),
        rank: bootstrap.rank(),
        device: settings.verbs_device.clone(),
        connect: settings.verbs_connect,
        limits: settings.verbs_limits.clone(),
    };
    Verbs::new(&options).map(|verbs| Arc::new(verbs) as Arc<dyn Transport>).map_err(|e| e.to_string())
}

fn open_ofi(settings: &Settings, bootstrap: &dyn Bootstrap) -> Opened {
    let options = transom_ofi::Options {
        ranks: bootstrap.size(),
        provider: settings.ofi_provider.clone(),
        loopback: one_host(bootstrap),
    };
    Ofi::new(options).map(|ofi| Arc::new(ofi) as Arc<dyn Transport>).map_err(|e| e.to_string())
}

/// Exchanges addresses, and connects to all. If a rank has none: the first such, and why, on every rank.
fn connect(
    bootstrap: &mut dyn Bootstrap,
    exchange: u32,
    opened: Opened,
) -> Result<std::result::Result<Arc<dyn Transport>, (usize, String)>> {
    let card: BusinessCard = opened.as_ref().map(|transport| transport.address()).map_err(Clone::clone);
    let cards = bootstrap.exchange(exchange, &encode(&card)?)?;
    let cards = cards
        .iter()
        .enumerate()
        .map(|(peer, card)| decode(peer, card))
        .collect::<Result<Vec<BusinessCard>>>()?;
    if let Some((peer, reason)) = cards.iter().enumerate().find_map(|(i, c)| Some((i, c.as_ref().err()?))) {
        return Ok(Err((peer, reason.clone())));
    }
    let transport = match opened {
        Ok(transport) => transport,
        Err(reason) => return Ok(Err((bootstrap.rank(), reason))),
    };
    for (peer, address) in cards.iter().enumerate() {
        if let Ok(address) = address {
            transport.connect(peer, address).map_err(|e| Error::transport("init", &e))?;
        }
    }
    Ok(Ok(transport))
}

/// Whether all ranks run on this host: then nothing need listen on an address that others can reach.
fn one_host(bootstrap: &dyn Bootstrap) -> bool {
    bootstrap.size() == 1
        || bootstrap.in_one_process()
        || std::env::var("TRANSOM_HOST_COUNT").is_ok_and(|count| count.trim() == "1")
}
