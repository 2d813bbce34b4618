//! The transport between nodes: verbs where every rank has a device, else libfabric where it drives a network card at every
//! rank, else TCP. All ranks come to the same answer.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use transom_ofi::Ofi;
use transom_tcp::Tcp;
use transom_transport::Transport;
use transom_verbs::Verbs;

use super::connect::{decode, encode};
use crate::bootstrap::Bootstrap;
use crate::settings::Settings;
use crate::{Class, Error, Result};

/// What a rank publishes of a transport.
#[derive(Debug, Serialize, Deserialize)]
struct BusinessCard {
    /// The transport's address, or why the rank cannot have it.
    address: std::result::Result<Vec<u8>, String>,
    /// Whether the rank has a network card that libfabric drives, as far as that was asked.
    has_card: bool,
}

/// What a rank opened, or why it could not.
type Opened = std::result::Result<Arc<dyn Transport>, String>;

/// The bootstrap's exchanges of addresses.
const OF_VERBS: u32 = 1;
const OF_OFI: u32 = 2;
const OF_TCP: u32 = 3;

/// Whether this host has an RDMA device that may be used; or why not.
pub(super) fn verbs_available(settings: &Settings) -> std::result::Result<(), String> {
    if !settings.verbs {
        return Err("TRANSOM_TRANSPORT does not name verbs".into());
    }
    // Who asked for verbs alone is told the library's reason.
    if (settings.tcp || settings.ofi) && !transom_verbs::may_have_devices() {
        return Err("no RDMA device".into());
    }
    transom_verbs::devices().map(drop).map_err(|e| e.to_string())
}

/// Opens a network on every rank, or fails on every rank with the error of the first that could not. `verbs`: whether each
/// rank has a device.
pub(super) fn open(
    settings: &Settings,
    bootstrap: &mut dyn Bootstrap,
    verbs: Vec<std::result::Result<(), String>>,
    (loopback, without_shm): (std::result::Result<(), String>, &str),
) -> Result<Arc<dyn Transport>> {
    let mut no_verbs = verbs.into_iter().enumerate().find_map(|(peer, found)| Some((peer, found.err()?)));
    if no_verbs.is_none() {
        let opened = open_verbs(settings, bootstrap);
        match connect(bootstrap, OF_VERBS, opened, Ok(()))?.transport {
            Ok(transport) => return Ok(transport),
            Err(first) => no_verbs = Some(first),
        }
    }
    let (peer, why) = no_verbs.unwrap_or_default();
    let apart = loopback.as_ref().err().map(|apart| format!("; {apart}")).unwrap_or_default();
    let failed = |(peer, reason)| {
        let message = format!("rank {peer}: {reason}{apart}; {without_shm}");
        Error::new(Class::Transport, "init", message)
    };
    let loopback = loopback.is_ok();
    if settings.tcp {
        tracing::debug!(peer, why, "no verbs");
        let card =
            if settings.ofi { card_available(settings, loopback) } else { Err("not asked for".into()) };
        let opened = open_tcp(settings, bootstrap, loopback);
        let connected = connect(bootstrap, OF_TCP, opened, card)?;
        if !connected.all_have_cards {
            return connected.transport.map_err(failed);
        }
    } else if !settings.ofi {
        let message = match settings.verbs {
            true => format!("rank {peer}: {why}"),
            false => format!("{without_shm}, and TRANSOM_TRANSPORT names no network: verbs, ofi or tcp"),
        };
        return Err(Error::new(Class::Transport, "init", message));
    }
    let opened = open_ofi(settings, bootstrap, loopback);
    connect(bootstrap, OF_OFI, opened, Ok(()))?.transport.map_err(failed)
}

/// Whether libfabric drives a network card here, which is then better than TCP; or why not.
fn card_available(settings: &Settings, loopback: bool) -> std::result::Result<(), String> {
    if loopback {
        return Err("all ranks are on one host".into());
    }
    if !transom_ofi::may_have_card(settings.ofi_provider.as_deref()) {
        return Err("no device of one".into());
    }
    transom_ofi::card(settings.ofi_provider.as_deref()).map(drop).map_err(|e| e.to_string())
}

fn open_tcp(settings: &Settings, bootstrap: &dyn Bootstrap, loopback: bool) -> Opened {
    let options = transom_tcp::Options {
        rank: bootstrap.rank(),
        ranks: bootstrap.size(),
        loopback,
        interface: settings.tcp_interface.clone(),
        connect_timeout: settings.tcp_connect,
        peer_timeout: settings.tcp_silence,
    };
    Tcp::new(&options).map(|tcp| Arc::new(tcp) as Arc<dyn Transport>).map_err(|e| e.to_string())
}

fn open_verbs(settings: &Settings, bootstrap: &dyn Bootstrap) -> Opened {
    let options = transom_verbs::Options {
        ranks: bootstrap.size(),
        rank: bootstrap.rank(),
        device: settings.verbs_device.clone(),
        connect: settings.verbs_connect,
        silence: settings.verbs_silence,
        limits: settings.verbs_limits.clone(),
    };
    Verbs::new(&options).map(|verbs| Arc::new(verbs) as Arc<dyn Transport>).map_err(|e| e.to_string())
}

fn open_ofi(settings: &Settings, bootstrap: &dyn Bootstrap, loopback: bool) -> Opened {
    let options = transom_ofi::Options {
        ranks: bootstrap.size(),
        provider: settings.ofi_provider.clone(),
        loopback,
        patience: settings.ofi_silence,
    };
    Ofi::new(options).map(|ofi| Arc::new(ofi) as Arc<dyn Transport>).map_err(|e| e.to_string())
}

/// What an exchange has come to, the same at all ranks.
struct Connected {
    /// The transport, connected to all; or the first rank that has none, and why.
    transport: std::result::Result<Arc<dyn Transport>, (usize, String)>,
    /// Every rank has a network card that libfabric drives: then nothing is connected.
    all_have_cards: bool,
}

/// Exchanges addresses and whether `card` says that there is a network card, and connects to all.
fn connect(
    bootstrap: &mut dyn Bootstrap,
    exchange: u32,
    opened: Opened,
    card: std::result::Result<(), String>,
) -> Result<Connected> {
    let own = BusinessCard {
        address: opened.as_ref().map(|transport| transport.address()).map_err(Clone::clone),
        has_card: card.is_ok(),
    };
    if let Err(why) = card {
        tracing::debug!(why, "no network card of libfabric's");
    }
    let cards = bootstrap.exchange(exchange, &encode(&own)?)?;
    let cards = cards
        .iter()
        .enumerate()
        .map(|(peer, card)| decode(peer, card))
        .collect::<Result<Vec<BusinessCard>>>()?;
    let all_have_cards = exchange == OF_TCP && cards.iter().all(|card| card.has_card);
    let without = cards.iter().enumerate().find_map(|(peer, c)| Some((peer, c.address.clone().err()?)));
    let transport = match (without, opened) {
        (Some(first), _) => Err(first),
        (None, Err(reason)) => Err((bootstrap.rank(), reason)),
        (None, Ok(transport)) => Ok(transport),
    };
    if let Ok(transport) = &transport
        && !all_have_cards
    {
        for (peer, card) in cards.iter().enumerate() {
            if let Ok(address) = &card.address {
                transport.connect(peer, address).map_err(|e| Error::transport("init", &e))?;
            }
        }
    }
    Ok(Connected { transport, all_have_cards })
}
