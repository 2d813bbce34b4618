//! Cost models: least-squares fits of the functions that foMPI's authors published, beside their constants.
//!
//! R. Gerstenberger, M. Besta, T. Hoefler: Enabling Highly-Scalable Remote Memory Access Programming with MPI-3 One Sided. SC13; the
//! constants as in Communications of the ACM 61(10), October 2018, p. 111: a Cray XE6 with Gemini.

use super::row::Row;
use crate::operation::Sync;

/// What a cost grows with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variable {
    /// Bytes.
    Bytes,
    /// The logarithm of the number of ranks, to base 2.
    LogRanks,
    /// Nothing.
    Constant,
}

/// A function that is fitted, and to what.
struct Function {
    name: &'static str,
    row: &'static str,
    of: Variable,
    fompi: &'static str,
}

const fn function(name: &'static str, row: &'static str, of: Variable, fompi: &'static str) -> Function {
    Function { name, row, of, fompi }
}

/// foMPI gives lock and unlock apart; here, as there is no lock without a use of it, they are together.
const FUNCTIONS: [Function; 14] = [
    function("put, flush", "put-latency", Variable::Bytes, ""),
    function("get", "get-latency", Variable::Bytes, ""),
    function("accumulate, flush", "accumulate-latency", Variable::Bytes, ""),
    function("compare_and_swap", "compare-and-swap-latency", Variable::Constant, ""),
    function("fence", "fence", Variable::LogRanks, "2.9 µs · log2(p)"),
    function(
        "post, start, put, complete, wait; k = 1",
        "pscw",
        Variable::LogRanks,
        "post + complete 0.7 µs · k, start 0.7 µs, wait 1.8 µs",
    ),
    function(
        "post, start, put, complete, wait; k = 4",
        "pscw-neighbours",
        Variable::LogRanks,
        "post + complete 0.7 µs · k, start 0.7 µs, wait 1.8 µs",
    ),
    function("barrier", "barrier", Variable::LogRanks, ""),
    function("exclusive lock, unlock", "lock-unlock", Variable::Constant, "5.4 µs + 4.0 µs"),
    function("shared lock, unlock", "lock-shared", Variable::Constant, "2.7 µs + 0.4 µs"),
    function("lock_all, put, unlock_all", "lock-all", Variable::Constant, "2.7 µs + 0.4 µs, without the put"),
    function("flush", "flush", Variable::Constant, "76 ns"),
    function("put of 8 B with notification", "put-notify", Variable::Constant, ""),
    function("sync", "win-sync", Variable::Constant, "17 ns"),
];

/// A function with the constants that were found.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// What costs so much.
    pub name: &'static str,
    /// The part that is always there, in nanoseconds.
    pub constant: f64,
    /// The factor of the variable, in nanoseconds, if there is a variable.
    pub slope: Option<f64>,
    /// `s` or `log2 p`.
    pub variable: &'static str,
    /// Root mean square of the relative residuals.
    pub residual: f64,
    /// How many rows it is of.
    pub points: usize,
    /// What it predicts for 10^3 and 10^6 ranks, in nanoseconds.
    pub predicted: Option<[f64; 2]>,
    /// foMPI's, as published.
    pub fompi: &'static str,
}

/// The functions that the rows are enough for.
pub fn fits(rows: &[Row], cores: usize) -> Vec<Fit> {
    // Of several libraries there is a table instead.
    let rows = if rows.iter().any(|row| !row.library.is_empty()) { &[] } else { rows };
    FUNCTIONS.iter().filter_map(|function| fit(function, rows, cores)).collect()
}

fn fit(function: &Function, rows: &[Row], cores: usize) -> Option<Fit> {
    let rows = rows.iter().filter(|row| row.head.name == function.row && !row.rounds.is_empty());
    let mut rows: Vec<&Row> = rows.filter(|row| is_by_flush(row)).collect();
    if function.of == Variable::LogRanks {
        // Where more ranks than cores take turns, it is the scheduler that grows.
        rows.retain(|row| row.head.ranks <= cores.max(2));
    }
    let points: Vec<(f64, f64)> = rows.iter().map(|row| (function.of.value(row), row.median())).collect();
    let (constant, slope) = match (function.of, points.len()) {
        (_, 0) => return None,
        (Variable::Constant, _) | (_, 1) => (points[0].1, None),
        _ => line(&points).map(|(a, b)| (a, Some(b)))?,
    };
    let model = |x: f64| constant + slope.unwrap_or_default() * x;
    let squares: f64 = points.iter().map(|(x, y)| (model(*x) / y - 1.0).powi(2)).sum();
    let grows = slope.filter(|_| function.of == Variable::LogRanks && points.len() > 2);
    Some(Fit {
        name: function.name,
        constant,
        slope,
        variable: function.of.name(),
        residual: (squares / points.len() as f64).sqrt(),
        points: points.len(),
        predicted: grows.map(|_| [1e3_f64, 1e6].map(|ranks| model(ranks.log2()))),
        fompi: function.fompi,
    })
}

impl Variable {
    fn value(self, row: &Row) -> f64 {
        match self {
            Self::Bytes => row.head.bytes as f64,
            Self::LogRanks => (row.head.ranks as f64).log2(),
            Self::Constant => 0.0,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Bytes => "s",
            Self::LogRanks => "log2(p)",
            Self::Constant => "",
        }
    }
}

/// Whether it is completed as the functions have it.
fn is_by_flush(row: &Row) -> bool {
    row.head.sync.is_empty() || row.head.sync == Sync::Flush.name()
}

/// a and b of a + b·x with the least squares of relative residuals: else the longest transfers would decide what the shortest cost.
fn line(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let sum = |of: fn(f64, f64) -> f64| points.iter().map(|(x, y)| of(*x, *y) / (y * y)).sum::<f64>();
    let (w, x, y, xx, xy) =
        (sum(|_, _| 1.0), sum(|x, _| x), sum(|_, y| y), sum(|x, _| x * x), sum(|x, y| x * y));
    let determinant = w * xx - x * x;
    // All at one place have no line.
    let found = ((y * xx - x * xy) / determinant, (w * xy - x * y) / determinant);
    (determinant.abs() > 1e-12 * w * xx && found.0.is_finite() && found.1.is_finite()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::files::tests::row;

    #[test]
    fn constants_are_found_again() {
        let rows: Vec<Row> = [8, 64, 4096, 1 << 20]
            .map(|bytes| row(bytes, vec![vec![1000.0 + 0.16 * bytes as f64]; 3]))
            .into();
        let fit = &fits(&rows, 4)[0];
        assert!((fit.constant - 1000.0).abs() < 1e-6 && (fit.slope.unwrap() - 0.16).abs() < 1e-9, "{fit:?}");
        assert!(fit.residual < 1e-9 && fit.predicted.is_none());
    }

    #[test]
    fn predictions_by_the_number_of_ranks() {
        let of = |ranks: usize| {
            let mut row = row(0, vec![vec![2900.0 * (ranks as f64).log2()]]);
            row.head.name = "fence".into();
            row.head.ranks = ranks;
            row
        };
        let fits = fits(&[2, 4, 8, 16].map(of), 8);
        assert_eq!((fits[0].points, fits[0].variable), (3, "log2(p)"));
        let predicted = fits[0].predicted.unwrap();
        assert!((predicted[1] - 2900.0 * 1e6_f64.log2()).abs() < 1.0, "{predicted:?}");
    }

    #[test]
    fn one_point_is_a_constant() {
        let fits = fits(&[row(8, vec![vec![7.0]])], 2);
        assert_eq!((fits[0].constant, fits[0].slope), (7.0, None));
        assert_eq!(line(&[(1.0, 2.0), (1.0, 3.0)]), None);
    }
}
