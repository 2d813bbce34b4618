//! Limits of libfabric that its users ran into.

use libfabric::{Hints, Info, Library, flags};

use super::limits::{Level, Limit};
use super::network::kernel_has_devices;
use crate::facts;

/// Completion queue entries of verbs;ofi_rxm for each peer that it expects: two queues of 128 work requests.
const ENTRIES: u64 = 256;
/// Peers that it expects unless `FI_UNIVERSE_SIZE` says otherwise (fabric(7)).
const UNIVERSE: u64 = 256;
/// Versions in which one-sided communication broke, where that is known.
const BROKEN: [(u32, u32, &str, &str); 1] =
    [(2, 3, "cxi", "one-sided communication hangs with cxi of SHS 14.0 (mpich#7830)")];

/// What can be said before a provider is opened; nothing without libfabric.
pub fn limits() -> Vec<Limit> {
    let Ok(library) = Library::open() else { return Vec::new() };
    let everything = Hints { caps: flags::MSG | flags::RMA, threading: None, ..Hints::default() };
    let any_type = Hints { endpoint_type: None, threading: None, ..Hints::default() };
    let mut names: Vec<String> = [everything, any_type]
        .iter()
        .flat_map(|hints| hints.query(library).unwrap_or_default())
        .map(|info: Info| info.provider())
        .collect();
    names.sort();
    names.dedup();
    let mut limits = vec![version(library.version(), &names)];
    limits.extend(vanished(&names));
    limits.extend(universe(&names));
    limits
}

fn version(version: u32, names: &[String]) -> Limit {
    let (major, minor) = (version >> 16, version & 0xffff);
    let known = BROKEN.iter().find(|(a, b, provider, _)| {
        (*a, *b) == (major, minor) && names.iter().any(|name| name.contains(provider))
    });
    Limit {
        name: "libfabric's version".into(),
        here: format!("{major}.{minor}"),
        level: if known.is_some() { Level::Low } else { Level::Enough },
        wanted: match known {
            Some((.., what)) => format!("another one: {what}"),
            None => "one without known defects in the providers that are here".into(),
        },
        advice:
            "Run `transom doctor --provider NAME --rounds 10000`; TRANSOM_LIBFABRIC names another library"
                .into(),
    }
}

/// A device, and no provider for it.
fn vanished(names: &[String]) -> Option<Limit> {
    let here = names.iter().any(|name| name.starts_with("verbs"));
    if !kernel_has_devices() {
        return None;
    }
    let (lockable, _) = facts::lockable();
    let advice = if lockable == u64::MAX {
        "libfabric's verbs provider needs librdmacm, and an address on the device's interface. Transom's own verbs do not"
    } else {
        "Locked memory is limited, which makes the provider vanish without a word: see above"
    };
    Some(Limit {
        name: "provider verbs".into(),
        here: if here { "offered" } else { "not offered" }.into(),
        level: if here { Level::Enough } else { Level::Low },
        wanted: "offered where there is a device".into(),
        advice: advice.into(),
    })
}

/// What its completion queue would need, and what the devices have.
fn universe(names: &[String]) -> Option<Limit> {
    if !names.iter().any(|name| name == "verbs;ofi_rxm") {
        return None;
    }
    let set = std::env::var("FI_UNIVERSE_SIZE").ok().and_then(|text| text.parse().ok());
    let wanted = set.unwrap_or(UNIVERSE).saturating_mul(ENTRIES);
    let devices = transom_verbs::devices().unwrap_or_default();
    let reports = devices.iter().filter_map(|name| transom_verbs::describe(name).ok());
    let here: u64 = reports.map(|report| report.max_cqe.into()).min()?;
    Some(Limit {
        name: "queue of verbs;ofi_rxm".into(),
        here: here.to_string(),
        level: if here < wanted { Level::Low } else { Level::Enough },
        wanted: format!("{wanted} entries, {ENTRIES} for each of FI_UNIVERSE_SIZE peers"),
        advice: format!(
            "FI_UNIVERSE_SIZE={}, else it fails with `fi_enable: Invalid argument` (libfabric#10692); or use Transom's verbs",
            (here / ENTRIES).max(1)
        ),
    })
}
