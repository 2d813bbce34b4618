//! What rank 0 says in the end.

use std::io::{self, Write};

use comfy_table::{CellAlignment, Table, presets};
use transom::Job;

use crate::count::Run;
use crate::table::KINDS;
use crate::words::Input;

/// Words in the table, unless more or fewer are asked for.
const TOP: usize = 20;

/// Letters of a word that the table shows.
const SHOWN: usize = 40;

/// `count<TAB>word` lines of all words, or of the first `top`.
///
/// # Errors
/// Standard output cannot be written.
pub fn print_tsv(out: &mut impl Write, run: &Run, top: Option<usize>) -> io::Result<()> {
    for (word, count) in run.counts.words().take(top.unwrap_or(usize::MAX)) {
        write!(out, "{count}\t")?;
        out.write_all(word)?;
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// The most frequent words, totals, and how fast it was.
///
/// # Errors
/// Standard output cannot be written.
pub fn print_table(
    out: &mut impl Write,
    job: &Job,
    input: &Input,
    run: &Run,
    top: Option<usize>,
) -> io::Result<()> {
    let total = run.counts.total();
    let mut table = table(["", "word", "count", "share"], [0, 2, 3]);
    for (rank, (word, count)) in run.counts.words().take(top.unwrap_or(TOP)).enumerate() {
        let share = format!("{:.2} %", count as f64 / total as f64 * 100.0);
        table.add_row([(rank + 1).to_string(), shown(word), grouped(count), share]);
    }
    if table.row_count() > 0 {
        writeln!(out, "{table}")?;
    }
    let (distinct, files) = (run.counts.distinct() as u64, input.files() as u64);
    writeln!(
        out,
        "{} words, {} different, in {} of {} bytes",
        grouped(total),
        grouped(distinct),
        number(files, "file"),
        grouped(input.bytes())
    )?;
    let seconds = run.time.as_secs_f64();
    writeln!(out, "{} ({}) in {seconds:.3} s", number(job.size() as u64, "rank"), transports(job))?;
    writeln!(out, "{}", operations(run, seconds))?;
    out.flush()
}

/// One-sided operations by kind.
fn operations(run: &Run, seconds: f64) -> Table {
    let mut table = table(["one-sided operation", "count", "per second"], [1, 2, 2]);
    let sum = run.operations.iter().sum();
    let rows = KINDS.iter().copied().zip(run.operations).chain([("together", sum)]);
    for (kind, count) in rows {
        let rate = if seconds > 0.0 { grouped((count as f64 / seconds) as u64) } else { String::new() };
        table.add_row([kind.to_owned(), grouped(count), rate]);
    }
    table
}

/// A table with some columns aligned to the right.
fn table<const N: usize>(header: [&str; N], right: [usize; 3]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_FULL_CONDENSED).set_header(header);
    for column in right {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// A word, shortened to fit.
fn shown(word: &[u8]) -> String {
    let text = String::from_utf8_lossy(&word[..word.len().min(SHOWN)]);
    if word.len() > SHOWN {
        format!("{text}… ({} letters)", grouped(word.len() as u64))
    } else {
        text.into()
    }
}

fn number(count: u64, of: &str) -> String {
    format!("{} {of}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// Digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// What leads from rank 0 to the others.
fn transports(job: &Job) -> String {
    let mut names: Vec<String> = (0..job.size())
        .filter(|rank| *rank != job.rank() || job.size() == 1)
        .filter_map(|rank| job.transport(rank))
        .map(|(name, provider)| format!("{name}: {provider}"))
        .collect();
    names.sort_unstable();
    names.dedup();
    names.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        let groups = [0, 999, 1000, 1_234_567].map(grouped);
        assert_eq!(groups, ["0", "999", "1,000", "1,234,567"]);
        assert_eq!((number(1, "rank").as_str(), number(2, "rank").as_str()), ("1 rank", "2 ranks"));
        assert_eq!(shown(&[b'a'; 41]), format!("{}… (41 letters)", "a".repeat(40)));
    }
}
