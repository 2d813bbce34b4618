//! What libfabric offers, and what a job would use of it.

use libfabric::{Hints, Info, Library, flags};
use transom_ofi::{Ofi, Options};
use transom_transport::Transport;

use super::host::{bytes, read};
use super::page::Page;

/// libfabric, where there is one.
pub struct Fabric {
    /// The library.
    pub library: &'static Library,
    /// The provider that a job on several hosts would use, or else one on this host alone; none if neither can.
    pub chosen: Option<String>,
}

/// Prints the section.
pub fn print(page: &mut Page) -> Option<Fabric> {
    let mut facts = vec![("RDMA devices", rdma_devices())];
    let library = match Library::open() {
        Ok(library) => library,
        Err(error) => {
            facts.push(("libfabric", format!("{error}.")));
            facts.push(("TCP", super::tcp::fact()));
            facts.push(("job on several hosts", several(&Err(error.to_string()))));
            page.facts(facts);
            return None;
        }
    };
    facts.push(("libfabric", format!("{} ({})", version(library.version()), path(library).display())));
    let offers = offers(library);
    if let Err(error) = &offers {
        facts.push(("providers", error.clone()));
    }
    facts.push(("TCP", super::tcp::fact()));
    let (one, far) = (choice(true), choice(false));
    facts.push(("job on several hosts", several(&far)));
    facts.push(("libfabric, several hosts", words(&far)));
    facts.push(("libfabric, one host", words(&one)));
    page.facts(facts);
    providers(page, &offers.unwrap_or_default());
    let chosen = far.or(one).ok().map(|provider| name_of(&provider));
    Some(Fabric { library, chosen })
}

/// What jobs on several hosts use, as the runtime chooses it; `fabric` is what libfabric would be.
fn several(fabric: &Result<String, String>) -> String {
    if let Ok(device) = verbs() {
        return device;
    }
    let (ofi, tcp) = (super::settings::names_transport("ofi"), super::settings::names_transport("tcp"));
    let provider = std::env::var("TRANSOM_OFI_PROVIDER").ok();
    match fabric {
        Ok(card) if ofi && tcp && transom_ofi::card(provider.as_deref()).is_ok() => {
            format!("libfabric, {card}, if every host has such a card")
        }
        _ if tcp => words(&super::tcp::choice()),
        _ if ofi => words(fabric),
        _ => "none: TRANSOM_TRANSPORT names no network that is here".into(),
    }
}

/// The device that jobs on several hosts use; or why they use none.
fn verbs() -> Result<String, String> {
    if !super::settings::names_transport("verbs") {
        return Err("TRANSOM_TRANSPORT does not name verbs".into());
    }
    let device = std::env::var("TRANSOM_VERBS_DEVICE").ok();
    // One that makes no sense is told of among the settings.
    let connect = std::env::var("TRANSOM_VERBS_CONNECT").ok().and_then(|way| way.trim().parse().ok());
    let connect = connect.unwrap_or_default();
    let options = transom_verbs::Options { ranks: 2, rank: 0, device, connect, ..Default::default() };
    let verbs = transom_verbs::Verbs::new(&options).map_err(|e| e.to_string())?;
    Ok(format!("verbs, {}, if every host has a device", verbs.capabilities().provider))
}

/// A version as `fi_version` gives it.
fn version(version: u32) -> String {
    format!("{}.{}", version >> 16, version & 0xffff)
}

/// The file behind the name that was opened.
fn path(library: &Library) -> std::path::PathBuf {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mapped = maps.lines().filter_map(|line| line.split_once('/')).map(|(_, path)| format!("/{path}"));
    let mut files = mapped.filter(|path| path.rsplit('/').next().is_some_and(|n| n.starts_with("libfabric")));
    files.next().map_or_else(|| library.path().to_owned(), Into::into)
}

/// Opens the transport as a rank does, which is the only way to know.
pub(crate) fn choice(loopback: bool) -> Result<String, String> {
    let provider = std::env::var("TRANSOM_OFI_PROVIDER").ok();
    Ofi::new(Options { ranks: 2, provider, loopback, patience: Some(transom_ofi::PATIENCE) })
        .map(|ofi| ofi.capabilities().provider.clone())
        .map_err(|e| e.to_string())
}

/// The provider in what [`choice`] says.
pub(crate) fn name_of(choice: &str) -> String {
    choice.split_once(", libfabric").map_or(choice, |(name, _)| name).to_owned()
}

fn words(choice: &Result<String, String>) -> String {
    match choice {
        Ok(provider) => provider.clone(),
        Err(error) => format!("CANNOT COMMUNICATE: {error}"),
    }
}

fn offers(library: &'static Library) -> Result<Vec<Info>, String> {
    let hints = Hints {
        caps: flags::MSG | flags::RMA,
        mode: flags::CONTEXT | flags::CONTEXT2,
        mr_mode: MODES.iter().fold(0, |all, (bit, _)| all | bit),
        threading: None,
        ..Hints::default()
    };
    hints.query(library).map_err(|e| e.to_string())
}

const MODES: [(i32, &str); 5] = [
    (flags::mr::LOCAL, "local"),
    (flags::mr::VIRT_ADDR, "virt_addr"),
    (flags::mr::ALLOCATED, "allocated"),
    (flags::mr::PROV_KEY, "prov_key"),
    (flags::mr::ENDPOINT, "endpoint"),
];

fn providers(page: &mut Page, offers: &[Info]) {
    if offers.is_empty() {
        page.paragraph("\nNo provider has reliable datagrams, messages and remote memory access.");
        return;
    }
    page.paragraph("\nProviders with reliable datagrams, messages and remote memory access:");
    let mut rows: Vec<([String; 4], Vec<String>)> = Vec::new();
    for info in offers {
        let asks: Vec<&str> =
            MODES.iter().filter(|(bit, _)| info.mr_mode() & bit != 0).map(|(_, name)| *name).collect();
        let largest = match info.max_message_size() {
            size if size >= 1 << 60 => "any".into(),
            size => bytes(size as u64),
        };
        let asks = if asks.is_empty() { "nothing".into() } else { asks.join(" ") };
        let row = [info.provider(), info.domain_name(), asks, largest];
        let address = info.source_address().map(|address| address.ip().to_string());
        // Providers offer once for each address, and more often where they differ in what is not shown here.
        match rows.iter_mut().find(|(other, _)| *other == row) {
            Some((_, addresses)) => addresses.extend(address.filter(|a| !addresses.contains(a))),
            None => rows.push((row, address.into_iter().collect())),
        }
    }
    let mut table = page.table();
    table.add_row(["provider", "domain", "registration asks for", "largest", "addresses"]);
    for ([provider, domain, asks, largest], addresses) in rows {
        table.add_row([provider, domain, asks, largest, addresses.join(", ")]);
    }
    page.add(&table);
}

fn rdma_devices() -> String {
    let directory = "/sys/class/infiniband";
    let Ok(entries) = std::fs::read_dir(directory) else {
        return format!("none ({directory} does not exist)");
    };
    let mut devices: Vec<String> = entries
        .flatten()
        .map(|entry| {
            let fact = |name: &str| read(&format!("{}/{name}", entry.path().display())).unwrap_or_default();
            // "4: ACTIVE"
            let state = fact("ports/1/state").split(": ").last().unwrap_or_default().to_lowercase();
            let (link, rate) = (fact("ports/1/link_layer"), fact("ports/1/rate"));
            format!("{} ({link}, {rate}, {state})", entry.file_name().to_string_lossy())
        })
        .collect();
    devices.sort();
    if devices.is_empty() { format!("none (nothing in {directory})") } else { devices.join(", ") }
}
