//! What the program in C writes, line by line. What does not begin with `bench ` is a library's or a launcher's.

use crate::repeat::Sample;
use crate::report::Unit;

/// Samples of a row.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The measurement.
    pub name: String,
    /// Bytes of each transfer.
    pub bytes: usize,
    /// What its figures are given in.
    pub unit: Unit,
    /// Repetitions in a sample.
    pub repeats: u64,
    /// Whether its data was right, if it was looked at.
    pub data: Option<bool>,
    /// What part of the busier rank's work the other did.
    pub fairness: Option<f64>,
    /// The samples.
    pub samples: Vec<Sample>,
}

/// All that it wrote.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Output {
    /// What the library calls itself.
    pub library: Option<String>,
    /// Rows.
    pub lines: Vec<Line>,
    /// Rows that it left out, and why.
    pub without: Vec<(String, String)>,
    /// Whether it came to its end.
    pub complete: bool,
}

/// Reads it. A last line that does not end was cut off, and does not count.
///
/// # Errors
/// A line that is not as it should be.
pub fn parse(text: &str) -> Result<Output, String> {
    let mut output = Output::default();
    for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
        let Some(rest) = line.trim_end_matches('\r').strip_prefix("bench ") else { continue };
        let refused =
            |why: &str| format!("not understood, {why}: {}", line.chars().take(80).collect::<String>());
        if output.complete {
            return Err(refused("after the end"));
        }
        match rest.split_once(' ').unwrap_or((rest, "")) {
            ("end", "") => output.complete = true,
            ("library", name) => output.library = Some(name.trim().to_owned()),
            ("without", rest) => {
                let (name, why) = rest.split_once(' ').ok_or_else(|| refused("no reason"))?;
                output.without.push((name.to_owned(), why.to_owned()));
            }
            (name, fields) => output.lines.push(row(name, fields).map_err(|why| refused(&why))?),
        }
    }
    Ok(output)
}

fn row(name: &str, fields: &str) -> Result<Line, String> {
    let mut fields = fields.split(' ');
    let mut field = |what: &str| fields.next().ok_or_else(|| format!("no {what}"));
    let bytes = number(field("bytes")?)?;
    let (unit, work) = (field("unit")?, field("work")?);
    let work: usize = number(work)?;
    let unit = match unit {
        "time" => Unit::Time,
        "rate" => Unit::Rate(work),
        "bandwidth" => Unit::Bandwidth(work),
        "percent" => Unit::Percent,
        other => return Err(format!("unit {other:?}")),
    };
    let repeats = number(field("repetitions")?)?;
    let data = match field("data")? {
        "right" => Some(true),
        "wrong" => Some(false),
        "-" => None,
        other => return Err(format!("data {other:?}")),
    };
    let fairness = match field("fairness")? {
        "-" => None,
        other => Some(positive(other)?),
    };
    let samples = fields.map(sample).collect::<Result<Vec<_>, _>>()?;
    if samples.is_empty() || work == 0 {
        return Err("no samples".into());
    }
    Ok(Line { name: name.to_owned(), bytes, unit, repeats, data, fairness, samples })
}

fn sample(field: &str) -> Result<Sample, String> {
    let (time, is_disturbed) = field.strip_suffix('*').map_or((field, false), |time| (time, true));
    Ok(Sample { time: positive(time)?, is_disturbed })
}

fn number<T: std::str::FromStr>(field: &str) -> Result<T, String> {
    field.parse().map_err(|_| format!("{field:?} is no number"))
}

fn positive(field: &str) -> Result<f64, String> {
    match number::<f64>(field)? {
        value if value.is_finite() && value >= 0.0 => Ok(value),
        _ => Err(format!("{field} cannot be")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_among_other_lines() {
        let text = "a library says hello\nbench library Some MPI 5\nbench put-latency 8 time 1 52 right - 59.5 60*\n\
                    bench atomic-contention 8 rate 1 1 - 0.25 7e1\nbench without threads-1-put no threads\nbench end\n";
        let output = parse(text).unwrap();
        assert!(output.complete);
        assert_eq!(output.library.as_deref(), Some("Some MPI 5"));
        assert_eq!(output.without, [("threads-1-put".to_owned(), "no threads".to_owned())]);
        let [put, atomic] = &output.lines[..] else { panic!("{output:?}") };
        assert_eq!((put.name.as_str(), put.bytes, put.unit, put.repeats), ("put-latency", 8, Unit::Time, 52));
        assert_eq!((put.data, put.fairness), (Some(true), None));
        let [one, other] =
            [(59.5, false), (60.0, true)].map(|(time, is_disturbed)| Sample { time, is_disturbed });
        assert_eq!(put.samples, [one, other]);
        assert_eq!((atomic.unit, atomic.fairness), (Unit::Rate(1), Some(0.25)));
    }

    #[test]
    fn what_was_cut_off_does_not_count() {
        let output =
            parse("bench put-latency 8 time 1 5 - - 1\nbench put-latency 64 time 1 5 - - 1").unwrap();
        assert_eq!((output.lines.len(), output.complete), (1, false));
        assert_eq!(parse("").unwrap(), Output::default());
    }

    #[test]
    fn nothing_else_is_taken_for_a_row() {
        for line in [
            "bench put-latency",
            "bench put-latency 8 time 1 5 - -",
            "bench put-latency 8 hours 1 5 - - 1",
            "bench put-latency -8 time 1 5 - - 1",
            "bench put-latency 8 rate 0 5 - - 1",
            "bench put-latency 8 time 1 5 maybe - 1",
            "bench put-latency 8 time 1 5 - - nan",
            "bench put-latency 8 time 1 5 - - -1",
            "bench put-latency 8 time 1 5 - - 1 ",
            "bench end\nbench end",
        ] {
            assert!(parse(&format!("{line}\n")).is_err_and(|why| why.contains("not understood")), "{line}");
        }
    }
}
