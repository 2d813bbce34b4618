//! Statistics of samples: ranks, not means, since what disturbs a computer only ever makes it slower.

/// In order of size.
pub fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

/// The value below which the part `q` of sorted values lies (nearest rank); NaN of none.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied().unwrap_or(f64::NAN)
}

/// The middle of values in any order; NaN of none.
pub fn median(values: &[f64]) -> f64 {
    let sorted = sorted(values.to_vec());
    match sorted.len() {
        0 => f64::NAN,
        n if n.is_multiple_of(2) => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
        n => sorted[n / 2],
    }
}

/// The mean of values; NaN of none.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// How far values are from their median, in the middle, as a part of it: the scaled median absolute deviation, which for a normal
/// distribution is the standard deviation.
pub fn spread(values: &[f64]) -> f64 {
    let centre = median(values);
    let deviations: Vec<f64> = values.iter().map(|value| (value - centre).abs()).collect();
    1.4826 * median(&deviations) / centre.abs()
}

/// The Hodges-Lehmann estimate of how many times as long `new` takes as `old`: the median of all ratios.
pub fn shift(old: &[f64], new: &[f64]) -> f64 {
    let ratios: Vec<f64> = new.iter().flat_map(|n| old.iter().map(move |o| n / o)).collect();
    median(&ratios)
}

/// The two-sided probability that samples of one distribution differ as much as these (Mann and Whitney 1947): exact, up to ties,
/// for samples of up to 40 values together, else by the normal approximation.
pub fn mann_whitney(old: &[f64], new: &[f64]) -> f64 {
    let (m, n) = (old.len(), new.len());
    if m == 0 || n == 0 {
        return 1.0;
    }
    let wins = |o: &f64| {
        let won = |v: &f64| if v > o { 1.0 } else { f64::from(u8::from(v == o)) / 2.0 };
        new.iter().map(won).sum::<f64>()
    };
    let u: f64 = old.iter().map(wins).sum();
    let least = u.min((m * n) as f64 - u);
    if m + n <= 40 { exact(m, n, least) } else { normal(m, n, least) }
}

/// Twice the part of all orders of m + n values in which U is at most `u`.
fn exact(m: usize, n: usize, u: f64) -> f64 {
    // orders[i][s]: ways to choose i of the values so far whose sum of ranks, less the least possible, is s.
    let most = m * n;
    let mut orders = vec![vec![0.0_f64; most + 1]; m + 1];
    orders[0][0] = 1.0;
    for value in 0..m + n {
        for chosen in (1..=m.min(value + 1)).rev() {
            // The value's rank less that of the place it takes among the chosen.
            let rank = value + 1 - chosen;
            for sum in (rank..=most).rev() {
                orders[chosen][sum] += orders[chosen - 1][sum - rank];
            }
        }
    }
    let all: f64 = orders[m].iter().sum();
    let extreme: f64 = orders[m].iter().take(u.floor() as usize + 1).sum();
    (2.0 * extreme / all).min(1.0)
}

fn normal(m: usize, n: usize, u: f64) -> f64 {
    let (m, n) = (m as f64, n as f64);
    let deviation = (m * n * (m + n + 1.0) / 12.0).sqrt();
    let z = ((m * n / 2.0 - u - 0.5) / deviation).max(0.0);
    complementary_error(z / std::f64::consts::SQRT_2)
}

/// 1 - erf(x) for x ≥ 0 (Abramowitz and Stegun 7.1.26), to 1.5e-7.
fn complementary_error(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let coefficients = [1.061_405_429, -1.453_152_027, 1.421_413_741, -0.284_496_736, 0.254_829_592];
    let polynomial = coefficients.iter().fold(0.0, |sum, c| sum * t + c) * t;
    polynomial * (-x * x).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_by_nearest_rank() {
        let values = sorted((1..=1000).rev().map(f64::from).collect());
        let found = [0.0, 0.5, 0.99, 0.999, 1.0].map(|q| quantile(&values, q));
        assert_eq!(found, [1.0, 500.0, 990.0, 999.0, 1000.0]);
        assert!(quantile(&[], 0.5).is_nan());
    }

    #[test]
    fn centres() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!((spread(&[9.0, 10.0, 11.0]) - 0.148_26).abs() < 1e-9);
        assert_eq!(shift(&[1.0, 2.0], &[2.0, 4.0]), 2.0);
    }

    /// Values of tables of the test (Mann and Whitney 1947): for 4 and 4, U = 1 has 2 of 70 orders on one side.
    #[test]
    fn exact_probabilities() {
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
        close(mann_whitney(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]), 0.1);
        close(mann_whitney(&[1.0, 2.0, 3.0, 5.0], &[4.0, 6.0, 7.0, 8.0]), 4.0 / 70.0);
        let (low, high): (Vec<f64>, Vec<f64>) =
            ((0..8).map(f64::from).collect(), (8..16).map(f64::from).collect());
        close(mann_whitney(&low, &high), 2.0 / 12870.0);
        close(mann_whitney(&high, &low), 2.0 / 12870.0);
        close(mann_whitney(&low, &low), 1.0);
        close(mann_whitney(&[], &low), 1.0);
    }

    #[test]
    fn the_approximation_agrees() {
        for u in [100.0, 140.0, 199.0] {
            let (exact, normal) = (exact(20, 20, u), normal(20, 20, u));
            assert!((exact - normal).abs() < 0.004, "{exact} {normal}");
        }
    }
}
