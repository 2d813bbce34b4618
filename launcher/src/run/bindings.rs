//! `--report-bindings`: where each rank runs, as the agents have told.

use crate::frames::{Bound, Unit};
use crate::info::page::Page;

/// What agents have told of where ranks are to run.
#[derive(Debug, Default)]
pub(super) struct Bindings {
    ranks: Vec<(String, Bound)>,
    complaints: Vec<String>,
}

impl Bindings {
    /// What the agent of a host says.
    pub(super) fn add(&mut self, host: &str, ranks: Vec<Bound>, complaint: Option<String>) {
        self.ranks.extend(ranks.into_iter().map(|bound| (host.to_owned(), bound)));
        self.complaints.extend(complaint.map(|complaint| format!("host {host}: {complaint}")));
    }

    /// Tells the user, once all agents have.
    pub(super) fn tell(&mut self) {
        for complaint in self.complaints.drain(..) {
            crate::tell(&complaint);
        }
        if !self.ranks.is_empty() {
            crate::say(&table(std::mem::take(&mut self.ranks)));
        }
    }
}

/// A row for each rank. Cores have the kernel's numbers, which are those of their socket.
fn table(mut ranks: Vec<(String, Bound)>) -> String {
    ranks.sort_by_key(|(_, bound)| bound.rank);
    let mut page = Page::new();
    let mut table = page.table();
    table.add_row(["rank", "host", "bound to", "processors", "core", "socket", "numa"]);
    for (host, Bound { rank, unit, cpus, names: [core, socket, node] }) in ranks {
        let unit = match unit {
            Unit::Core => "core",
            Unit::Thread => "thread",
            Unit::Socket => "socket",
            Unit::Numa => "numa",
            Unit::None => "nothing",
        };
        table.add_row([rank.to_string(), host, unit.to_owned(), cpus, core, socket, node]);
    }
    page.add(&table);
    page.text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_in_the_order_of_ranks() {
        let bound =
            |rank, unit, cpus: &str| Bound { rank, unit, cpus: cpus.into(), names: ["-"; 3].map(Into::into) };
        let mut bindings = Bindings::default();
        bindings.add("b", vec![bound(2, Unit::Thread, "4")], None);
        bindings.add(
            "a",
            vec![bound(0, Unit::Core, "0,8"), bound(10, Unit::None, "0-15")],
            Some("so".into()),
        );
        assert_eq!(bindings.complaints, ["host a: so"]);
        let text = table(bindings.ranks);
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(
            rows[1..],
            [
                ["0", "a", "core", "0,8", "-", "-", "-"],
                ["2", "b", "thread", "4", "-", "-", "-"],
                ["10", "a", "nothing", "0-15", "-", "-", "-"]
            ]
        );
    }
}
