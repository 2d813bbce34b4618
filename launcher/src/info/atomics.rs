//! What a provider does of each operation on each type, and which way Transom takes.

use std::sync::Arc;

use libfabric::{AtomicKind, AtomicOp, Datatype, Domain, Hints, flags};
use transom::{DataType, ReduceOp, reduce_valid, swap_valid};

use super::fabric::Fabric;
use super::page::Page;

/// A row of the table.
#[derive(Debug, Clone, Copy)]
enum Row {
    Reduce(ReduceOp),
    CompareSwap,
}

/// Which way Transom takes to ranks of the same node, and to others.
#[derive(Debug, Clone, Copy)]
struct Paths {
    same_node: &'static str,
    elsewhere: &'static str,
}

/// Prints the section, with a table for each provider that was named, or for the one that a job would use.
pub fn print(page: &mut Page, fabric: Option<&Fabric>, shared: bool, named: &[String]) {
    let tcp = super::settings::names_transport("tcp") && super::tcp::choice().is_ok();
    let to_all = tcp || fabric.is_some_and(|fabric| fabric.chosen.is_some());
    let elsewhere = if to_all { "agent" } else { "none" };
    let paths = Paths { same_node: if shared { "cpu" } else { elsewhere }, elsewhere };
    page.paragraph(
        "Over libfabric and TCP, and on one node, Transom's path is the same for every operation and type. cpu: on the same \
         node the origin's own atomic instruction on the mapped window. agent: elsewhere, and for windows of user \
         memory, the target's progress thread, with the same instruction. What the provider could do is not used: \
         most do it in software, too. Longer operands are done element by element.",
    );
    let chosen: Vec<&String> = match fabric {
        Some(fabric) if named.is_empty() => fabric.chosen.iter().collect(),
        _ => named.iter().collect(),
    };
    if chosen.is_empty() {
        page.paragraph("\nNo provider to ask:");
        table(page, paths, None);
    }
    for provider in chosen {
        match fabric.ok_or_else(|| "no libfabric".to_owned()).and_then(|fabric| open(fabric, provider)) {
            Ok(domain) => {
                page.paragraph(&format!("\nWhat provider {provider} could do: {}", by(provider)));
                table(page, paths, Some(&domain));
                page.paragraph(&limits(&domain));
            }
            Err(why) => {
                page.paragraph(&format!("\nProvider {provider}: {why}"));
                table(page, paths, None);
            }
        }
    }
}

/// Who does a provider's atomics, as far as that is known. libfabric has no call that tells.
fn by(provider: &str) -> &'static str {
    let layer = provider.rsplit(';').next().unwrap_or(provider);
    match layer {
        "ofi_rxm" | "ofi_rxd" => {
            "in software, by the target's CPU, when the target makes progress (also where the \
                                  core provider has a card that could)"
        }
        "sockets" => "in software, by a thread of the provider at the target",
        "shm" | "sm2" => "in software, by the CPU of one of the two ranks",
        "psm2" | "psm3" => "in software, by the target's CPU when it makes progress",
        "tcp" | "net" | "udp" => "none that can be relied on",
        "cxi" => "by the network card (by its documentation; not tried)",
        "verbs" => "by the network card, for 64 bits: fetch-and-add and compare-and-swap",
        _ => "who does them, card or software, is not known here: see its manual page",
    }
}

fn open(fabric: &Fabric, provider: &str) -> Result<Arc<Domain>, String> {
    let hints = Hints {
        provider: Some(provider.to_owned()),
        caps: flags::MSG | flags::RMA | flags::ATOMIC,
        mode: flags::CONTEXT | flags::CONTEXT2,
        mr_mode: flags::mr::COMMON,
        ..Hints::default()
    };
    let found = hints.query(fabric.library).map_err(|e| e.to_string())?;
    let info = found.iter().find(|info| info.provider() == provider);
    let info = info.ok_or_else(|| "offers no atomics beside messages and remote memory access".to_owned())?;
    let opened = libfabric::Fabric::open(info).and_then(|fabric| Domain::open(&fabric, info));
    opened.map_err(|e| format!("cannot be asked: {e}"))
}

fn table(page: &mut Page, paths: Paths, domain: Option<&Domain>) {
    let mut table = page.table();
    let mut heading = vec![String::new()];
    let types = || DataType::ALL.into_iter().filter_map(|ty| Some((ty, datatype(ty)?)));
    heading.extend(types().map(|(ty, _)| format!("{ty:?}").to_lowercase()));
    heading.extend(["same node".into(), "other".into()]);
    table.add_row(heading);
    let rows = ReduceOp::ALL.into_iter().filter_map(|op| Some((Row::Reduce(op), operation(op)?)));
    for (row, op) in rows.chain([(Row::CompareSwap, AtomicOp::Cswap)]) {
        let name = match row {
            Row::Reduce(op) => format!("{op:?}").to_lowercase(),
            Row::CompareSwap => "cswap".into(),
        };
        let mut cells = vec![name];
        cells.extend(types().map(|(ty, name)| cell(row, op, ty, name, domain)));
        cells.extend([paths.same_node.into(), paths.elsewhere.into()]);
        table.add_row(cells);
    }
    page.add(&table);
    page.paragraph(
        "p plain, f fetching, c comparing: the provider could; - it could not (or there is none); blank: the MPI \
         standard has no such operation.",
    );
}

fn cell(row: Row, op: AtomicOp, ty: DataType, name: Datatype, domain: Option<&Domain>) -> String {
    let kinds: &[_] = match row {
        Row::Reduce(op) if !reduce_valid(op, ty) => return String::new(),
        Row::CompareSwap if !swap_valid(ty) => return String::new(),
        Row::Reduce(ReduceOp::NoOp) => &[(AtomicKind::Fetch, 'f')],
        Row::Reduce(_) => &[(AtomicKind::Plain, 'p'), (AtomicKind::Fetch, 'f')],
        Row::CompareSwap => &[(AtomicKind::Compare, 'c')],
    };
    let can = |kind| domain.is_some_and(|domain| domain.query_atomic(name, op, kind).is_some());
    let text: String = kinds.iter().filter(|(kind, _)| can(*kind)).map(|(_, letter)| letter).collect();
    if text.is_empty() { "-".into() } else { text }
}

fn limits(domain: &Domain) -> String {
    let most = |op, kind| {
        let limits = domain.query_atomic(Datatype::Uint64, op, kind)?;
        Some(limits.count * limits.size)
    };
    let text = |limit: Option<usize>| limit.map_or_else(|| "none".into(), |bytes| format!("{bytes} bytes"));
    format!(
        "Most operands of one call (u64): plain sum {}, fetching {}, compare-and-swap {}.",
        text(most(AtomicOp::Sum, AtomicKind::Plain)),
        text(most(AtomicOp::Sum, AtomicKind::Fetch)),
        text(most(AtomicOp::Cswap, AtomicKind::Compare)),
    )
}

/// libfabric's name; it has none for values with an index.
pub(super) fn operation(op: ReduceOp) -> Option<AtomicOp> {
    Some(match op {
        ReduceOp::Sum => AtomicOp::Sum,
        ReduceOp::Prod => AtomicOp::Prod,
        ReduceOp::Min => AtomicOp::Min,
        ReduceOp::Max => AtomicOp::Max,
        ReduceOp::Land => AtomicOp::Land,
        ReduceOp::Lor => AtomicOp::Lor,
        ReduceOp::Lxor => AtomicOp::Lxor,
        ReduceOp::Band => AtomicOp::Band,
        ReduceOp::Bor => AtomicOp::Bor,
        ReduceOp::Bxor => AtomicOp::Bxor,
        ReduceOp::Replace => AtomicOp::Write,
        ReduceOp::NoOp => AtomicOp::Read,
        ReduceOp::MinLoc | ReduceOp::MaxLoc => return None,
    })
}

/// The types that the table is about: numbers, which all libfabric names.
pub(super) fn datatype(ty: DataType) -> Option<Datatype> {
    Some(match ty {
        DataType::I8 => Datatype::Int8,
        DataType::I16 => Datatype::Int16,
        DataType::I32 => Datatype::Int32,
        DataType::I64 => Datatype::Int64,
        DataType::U8 => Datatype::Uint8,
        DataType::U16 => Datatype::Uint16,
        DataType::U32 => Datatype::Uint32,
        DataType::U64 => Datatype::Uint64,
        DataType::F32 => Datatype::Float,
        DataType::F64 => Datatype::Double,
        _ => return None,
    })
}
