//! RDMA devices, as Transom's own verbs see them, and which way accumulates go there.

use transom::explain::Path;
use transom::{DataType, ReduceOp, reduce_valid, swap_valid};
use transom_transport::AtomicScope;
use transom_verbs::DeviceReport;

use super::host::bytes;
use super::page::Page;

/// Prints the section. What the atomics of usable devices exclude; nothing without one.
pub fn print(page: &mut Page) -> Option<AtomicScope> {
    let names = match transom_verbs::devices() {
        Ok(names) => names,
        Err(error) => {
            page.facts(vec![("devices", error.to_string())]);
            return None;
        }
    };
    let mut reports = Vec::new();
    for name in &names {
        match transom_verbs::describe(name) {
            Ok(report) => {
                page.facts(facts(&report));
                reports.push(report);
            }
            Err(error) => page.facts(vec![(format!("device {name}"), error.to_string())]),
        }
    }
    // A job uses them all in the way that the least of them can.
    reports.iter().filter(|report| report.unusable.is_none()).map(|report| report.atomics).min()
}

/// Prints the way of each operation on each type.
pub fn atomics(page: &mut Page, scope: AtomicScope) {
    page.paragraph(
        "\nWho updates an element of a window whose ranks are on several nodes, where all have such devices, the owner \
         and its neighbours included. hw: the card's fetch-and-add or compare-and-swap. cas: a loop of the card's \
         compare-and-swap on the element's 8 bytes. agent: CPUs of the target's node, the progress thread for others.",
    );
    table(page, scope);
}

fn facts(report: &DeviceReport) -> Vec<(String, String)> {
    let state = match (&report.unusable, report.active) {
        (None, _) => "up, usable".to_owned(),
        (Some(why), true) => format!("up, NOT USABLE: {why}"),
        (Some(why), false) => format!("down: {why}"),
    };
    let atomics = match report.atomics {
        AtomicScope::None => "no atomics",
        AtomicScope::Device => "atomics exclude each other, not the CPU's",
        AtomicScope::System => "atomics exclude each other and the CPU's",
    };
    let reach = format!(
        "{}, {}, packets of {}",
        report.link,
        report.gid.as_deref().unwrap_or("no global identifier"),
        bytes(report.mtu.into())
    );
    let connects = format!(
        "connects by {}; a put is complete when {}",
        report.connects,
        match report.acknowledges {
            true => "the target's device has acknowledged it",
            false => "a read behind it has come back",
        }
    );
    let limits = format!(
        "{} queue pairs of {} requests, {} completions, {} regions, messages of {}, {} reads and atomics at a time",
        report.max_qp,
        report.max_qp_wr,
        report.max_cqe,
        report.max_mr,
        bytes(report.max_message),
        report.max_rd_atomic,
    );
    vec![(
        format!("device {}", report.name),
        format!("{state}; firmware {}\n{reach}\n{connects}\n{limits}\n{atomics}", report.firmware),
    )]
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
enum Row {
    Reduce(ReduceOp),
    CompareSwap,
}

fn table(page: &mut Page, scope: AtomicScope) {
    let mut table = page.table();
    let types = || DataType::ALL.into_iter().filter(|ty| super::atomics::datatype(*ty).is_some());
    let mut heading = vec![String::new()];
    heading.extend(types().map(|ty| format!("{ty:?}").to_lowercase()));
    table.add_row(heading);
    let rows = ReduceOp::ALL.into_iter().filter(|op| super::atomics::operation(*op).is_some());
    for row in rows.map(Row::Reduce).chain([Row::CompareSwap]) {
        let name = match row {
            Row::Reduce(op) => format!("{op:?}").to_lowercase(),
            Row::CompareSwap => "cswap".into(),
        };
        let cells = types().map(|ty| match row {
            Row::Reduce(op) if !reduce_valid(op, ty) => "",
            Row::CompareSwap if !swap_valid(ty) => "",
            _ => path(row, ty, scope),
        });
        table.add_row(std::iter::once(name).chain(cells.map(str::to_owned)));
    }
    page.add(&table);
}

/// Which way an operation on one aligned element goes: a card updates 8 bytes at a time, so smaller elements would drag
/// their neighbours along.
fn path(row: Row, ty: DataType, scope: AtomicScope) -> &'static str {
    let op = match row {
        Row::CompareSwap => None,
        Row::Reduce(op) => Some(op),
    };
    match transom::device_path(op, ty, false) {
        _ if scope == AtomicScope::None => "agent",
        Path::Hardware => "hw",
        Path::Assisted => "cas",
        _ => "agent",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_elements_of_eight_bytes_are_the_cards() {
        let sum = Row::Reduce(ReduceOp::Sum);
        assert_eq!(path(sum, DataType::U64, AtomicScope::Device), "hw");
        assert_eq!(path(sum, DataType::F64, AtomicScope::Device), "agent");
        assert_eq!(path(Row::Reduce(ReduceOp::Max), DataType::I64, AtomicScope::System), "cas");
        assert_eq!(path(Row::CompareSwap, DataType::I64, AtomicScope::Device), "hw");
        assert_eq!(path(sum, DataType::U32, AtomicScope::System), "agent");
        assert_eq!(path(sum, DataType::U64, AtomicScope::None), "agent");
    }
}
