//! Which rows a measurement has: by sizes, numbers of ranks, and pairs.

use transom::Job;

use super::attach::Attach;
use super::bidirectional::{Bidirectional, Rate};
use super::contention::Contention;
use super::cycle::{Cycle, First};
use super::exchange::AllToAllPuts;
use super::halo::Halo;
use super::matrix::Link;
use super::message::Messages;
use super::overlap::Overlap;
use super::pair::PairOperation;
use super::random_access::{BATCH, RandomAccess, TABLE};
use super::start_up::StartUp;
use super::threads::{self, Threads};
use super::{Measure, call, collective};
use crate::machine;
use crate::operation::{Operation, Sync, Verb, WORD};
use crate::pair::Target;
use crate::report::Unit;
use crate::suite::catalogue::{Entry, Message, What};
use crate::suite::row::Head;
use crate::suite::sizes::show;
use crate::suite::stage::Stage;

/// Small operations before they are completed, where their rate is measured.
pub const RATE: usize = 1000;
/// What a matrix's bandwidth is measured by.
pub const LINK: usize = 1 << 20;
/// The shortest put that a computation can overlap.
const OVERLAPPED: usize = 1 << 10;
/// The least that is attached: what is registered is whole pages.
const PAGE: usize = 4 << 10;
/// Memory of a rank for blocks of all ranks.
const BLOCKS: usize = 64 << 20;
/// Ranks of which all pairs are measured; of more, one of each host.
const MATRIX: usize = 16;

type Rows = Vec<Box<dyn Measure>>;

/// The rows of a measurement. Collective.
///
/// # Errors
/// No memory, or no such windows here.
pub fn plan(stage: &Stage<'_>, entry: &Entry, hosts: &[String]) -> anyhow::Result<Rows> {
    let (job, kind) = (stage.job, stage.options.window);
    let head = |bytes, unit| head(stage, entry, bytes, unit);
    let whole = |bytes, unit| Head { ranks: job.size(), sync: String::new(), ..head(bytes, unit) };
    let sizes = if entry.what.is_of_a_word() { vec![WORD] } else { stage.options.sizes() };
    let sizes = sizes.into_iter().filter(|bytes| entry.what.has(*bytes, job.size()));
    Ok(match entry.what {
        What::Latency(verb) => sizes.map(|bytes| latency(stage, entry, verb, bytes)).collect(),
        What::Bandwidth(verb) => sizes.map(|bytes| bandwidth(stage, entry, verb, bytes)).collect(),
        What::Bidirectional => sizes.map(|bytes| bidirectional(stage, entry, bytes)).collect(),
        What::Rate(verb) => rate(stage, entry, verb),
        What::Threads => threads(stage, &head(WORD, Unit::Rate(threads::BATCH)))?,
        What::Call(call) => {
            vec![Box::new(call::Calls { head: Head { sync: String::new(), ..head(0, Unit::Time) }, call })]
        }
        What::Collective(call) => {
            let mut rows: Rows = Vec::new();
            for ranks in collective::RANKS.into_iter().filter(|ranks| *ranks <= job.size()) {
                let head = Head { ranks, window: String::new(), ..whole(0, Unit::Time) };
                rows.push(Box::new(collective::Calls::new(job, head, call)?));
            }
            rows
        }
        What::Passive(verb, bytes, sync) => {
            let head = Head { sync: sync.name().into(), ..head(bytes, Unit::Time) };
            let operation = Operation::new(verb, bytes).by(sync);
            let fits = bytes <= stage.extent.window;
            let row: Box<dyn Measure> = Box::new(PairOperation { head, operation, target: Target::Computes });
            if fits { vec![row] } else { Vec::new() }
        }
        What::LockContention => vec![Box::new(Contention::new(whole(WORD, Unit::Rate(1)), true))],
        What::AtomicContention => vec![Box::new(Contention::new(whole(WORD, Unit::Rate(1)), false))],
        What::Overlap => {
            let mut rows: Rows = Vec::new();
            for bytes in sizes {
                let head = Head { sync: Sync::Flush.name().into(), ..head(bytes, Unit::Percent) };
                rows.push(Box::new(Overlap::new(stage, head, kind)?));
            }
            rows
        }
        What::WindowCycle => vec![Box::new(Cycle { head: whole(super::cycle::WORDS * WORD, Unit::Time) })],
        What::First => vec![Box::new(First { head: head(WORD, Unit::Time) })],
        What::Attach => {
            let mut rows: Rows = Vec::new();
            for bytes in sizes {
                let head = Head { window: "dynamic".into(), ranks: 1, ..whole(bytes, Unit::Time) };
                rows.push(Box::new(Attach::new(job, head)?));
            }
            rows
        }
        What::StartUp => start_up(job, Head { window: String::new(), ..whole(0, Unit::Time) })?,
        What::RandomAccess => {
            let table = stage.options.table;
            let window =
                table.map_or("allocated".into(), |bytes| format!("allocated, {} a rank", show(bytes)));
            let head = Head { window, ..whole(WORD, Unit::Rate(BATCH * job.size())) };
            vec![Box::new(RandomAccess::new(job, head, table.unwrap_or(TABLE))?)]
        }
        What::Halo => {
            let mut rows: Rows = Vec::new();
            for bytes in sizes {
                let sync = stage.options.sync;
                let head = Head { sync: Halo::named(sync).into(), ..whole(bytes, Unit::Time) };
                rows.push(Box::new(Halo::new(job, head, kind, sync)?));
            }
            rows
        }
        What::AllToAllPuts => {
            let mut rows: Rows = Vec::new();
            for bytes in sizes {
                rows.push(Box::new(AllToAllPuts::new(job, whole(bytes, Unit::Time), kind)?));
            }
            rows
        }
        What::Message(message) => {
            let head = |bytes| {
                let ranks = if message == Message::PingPong { 2 } else { job.size() };
                Head { window: String::new(), ranks, ..whole(bytes, Unit::Time) }
            };
            let row = |bytes| -> Box<dyn Measure> { Box::new(Messages::new(job, head(bytes), message)) };
            sizes.map(row).collect()
        }
        What::MatrixLatency => {
            matrix(stage, hosts, Operation::new(Verb::Put, WORD), |_| whole(WORD, Unit::Time))
        }
        What::MatrixBandwidth => {
            let bytes = LINK.min(stage.extent.window);
            matrix(stage, hosts, burst(stage, Verb::Put, bytes), |moved| whole(bytes, Unit::Bandwidth(moved)))
        }
    })
}

impl What {
    /// Whether it is measured for transfers of so many bytes, among so many ranks.
    fn has(self, bytes: usize, ranks: usize) -> bool {
        match self {
            Self::Latency(verb) | Self::Bandwidth(verb) => verb.moves(bytes),
            Self::Overlap => bytes >= OVERLAPPED,
            Self::Attach => bytes >= PAGE,
            Self::Message(Message::AllReduce | Message::NonblockingAllReduce) => bytes.is_multiple_of(WORD),
            Self::Message(Message::AllToAll) | Self::AllToAllPuts => bytes.saturating_mul(ranks) <= BLOCKS,
            Self::Halo => bytes <= BLOCKS / 8,
            _ => true,
        }
    }

    /// Whether sizes make no difference to it, since it is about one word.
    pub fn is_of_a_word(self) -> bool {
        matches!(self, Self::Latency(verb) if verb.is_of_a_word())
    }
}

fn head(stage: &Stage<'_>, entry: &Entry, bytes: usize, unit: Unit) -> Head {
    Head {
        name: entry.name.into(),
        group: entry.group.into(),
        window: stage.options.window.name().into(),
        sync: stage.options.sync.name().into(),
        bytes,
        ranks: 2,
        pair: None,
        unit,
    }
}

fn latency(stage: &Stage<'_>, entry: &Entry, verb: Verb, bytes: usize) -> Box<dyn Measure> {
    let operation = Operation::new(verb, bytes).by(stage.options.sync);
    let head = head(stage, entry, bytes, Unit::Time);
    Box::new(PairOperation { head, operation, target: Target::Waits })
}

/// Operations that are completed together.
fn burst(stage: &Stage<'_>, verb: Verb, bytes: usize) -> Operation {
    Operation::new(verb, bytes).times(stage.options.burst(bytes), stage.extent.spread)
}

fn bandwidth(stage: &Stage<'_>, entry: &Entry, verb: Verb, bytes: usize) -> Box<dyn Measure> {
    let operation = burst(stage, verb, bytes).by(stage.options.sync);
    let head = head(stage, entry, bytes, Unit::Bandwidth(operation.moved()));
    Box::new(PairOperation { head, operation, target: Target::Waits })
}

fn bidirectional(stage: &Stage<'_>, entry: &Entry, bytes: usize) -> Box<dyn Measure> {
    let operation = burst(stage, Verb::Put, bytes);
    let head = head(stage, entry, bytes, Unit::Bandwidth(2 * operation.moved()));
    Box::new(Bidirectional { head: Head { sync: Sync::Flush.name().into(), ..head }, operation })
}

fn rate(stage: &Stage<'_>, entry: &Entry, verb: Verb) -> Rows {
    let pairs = stage.options.pairs.map_or(stage.job.size() / 2, |pairs| pairs as usize);
    let operation = Operation::new(verb, WORD).times(RATE, stage.extent.spread);
    let head = head(stage, entry, WORD, Unit::Rate(RATE * pairs));
    let head = Head { ranks: 2 * pairs, sync: Sync::Flush.name().into(), ..head };
    vec![Box::new(Rate { head, operation, pairs })]
}

/// Powers of two, as rank 0 has cores if nobody says how many. Collective.
fn threads(stage: &Stage<'_>, head: &Head) -> anyhow::Result<Rows> {
    let mut most =
        [stage.options.threads.map_or_else(machine::cores, |threads| threads as usize).max(1) as u64];
    stage.job.broadcast(0, &mut most)?;
    let mut rows: Rows = Vec::new();
    for count in (0..).map(|power| 1 << power).take_while(|count| *count <= most[0]) {
        let sync = format!("flush, {count} thread{}", if count == 1 { "" } else { "s" });
        let head = Head { sync, ..head.clone() };
        rows.push(Box::new(Threads::new(stage.two.as_ref(), head, stage.options.window, count as usize)?));
    }
    Ok(rows)
}

/// None where rank 0 finds no launcher. Collective.
fn start_up(job: &Job, head: Head) -> anyhow::Result<Rows> {
    let launcher = if job.rank() == 0 { StartUp::launcher() } else { None };
    let mut found = [u8::from(launcher.is_some())];
    job.broadcast(0, &mut found)?;
    Ok(if found == [1] { vec![Box::new(StartUp::new(head, launcher))] } else { Vec::new() })
}

/// `head` is given what the operation moves.
fn matrix(stage: &Stage<'_>, hosts: &[String], operation: Operation, head: impl Fn(usize) -> Head) -> Rows {
    let head = head(operation.moved());
    let chosen = representatives(stage.job, hosts);
    let pairs = chosen.iter().flat_map(|from| chosen.iter().map(move |to| (*from, *to)));
    let row = |ranks: (usize, usize)| -> Box<dyn Measure> {
        let head = Head { pair: Some(ranks), sync: Sync::Flush.name().into(), ..head.clone() };
        Box::new(Link { head, operation, ranks })
    };
    pairs.filter(|(from, to)| from != to).map(row).collect()
}

/// All ranks, or of many the first of each host.
fn representatives(job: &Job, hosts: &[String]) -> Vec<usize> {
    let is_first = |rank: &usize| hosts.iter().position(|host| *host == hosts[*rank]) == Some(*rank);
    let firsts: Vec<usize> = (0..job.size()).filter(is_first).collect();
    if job.size() <= MATRIX || firsts.len() < 2 { (0..job.size().min(MATRIX)).collect() } else { firsts }
}
