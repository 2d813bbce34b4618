//! What is hot: a fanlight (the window above a transom) of glowing bars over a row of embers, on a cold plate.
//!
//! The same everywhere and always: only additions, multiplications, divisions and comparisons of doubles, no functions
//! whose results differ by library.

use std::f64::consts::FRAC_1_SQRT_2;
use std::ops::Range;

use super::Plate;

/// Share of the difference from its neighbours that a cell takes over in a step; stable up to 0.25.
const RATE: f64 = 0.24;

/// The temperature at the beginning and the rate of each cell of some rows. Cells whose temperature is held, among them
/// the plate's edges, have rate 0.
pub(super) fn paint(plate: Plate, rows: Range<usize>) -> (Vec<f64>, Vec<f64>) {
    let mut field = Vec::with_capacity(rows.len() * plate.width);
    let mut rates = Vec::with_capacity(rows.len() * plate.width);
    for y in rows {
        for x in 0..plate.width {
            let edge = x == 0 || y == 0 || x + 1 == plate.width || y + 1 == plate.height;
            let source = if edge { Some(0.0) } else { source(plate, x, y) };
            field.push(source.unwrap_or(0.0));
            rates.push(if source.is_some() { 0.0 } else { RATE });
        }
    }
    (field, rates)
}

/// Cosine and sine of an eighth of the half circle.
const EIGHTH: (f64, f64) = (0.923_879_532_511_286_7, 0.382_683_432_365_089_8);

/// Directions of the bars.
const BARS: [(f64, f64); 7] = [
    (-EIGHTH.0, EIGHTH.1),
    (-FRAC_1_SQRT_2, FRAC_1_SQRT_2),
    (-EIGHTH.1, EIGHTH.0),
    (0.0, 1.0),
    (EIGHTH.1, EIGHTH.0),
    (FRAC_1_SQRT_2, FRAC_1_SQRT_2),
    EIGHTH,
];

/// The temperature that a cell is held at, if it is part of a shape.
fn source(plate: Plate, x: usize, y: usize) -> Option<f64> {
    // The unit is the half of the plate's shorter side (of a wide plate: its height, a little less).
    let (width, height) = (plate.width as f64, plate.height as f64);
    let unit = if width < 1.6 * height { width / 1.6 } else { height } / 1.4;
    let right = (x as f64 + 0.5 - width / 2.0) / unit;
    let up = (height * 0.7 - (y as f64 + 0.5)) / unit;
    fanlight(right, up).or_else(|| embers(right, up))
}

fn fanlight(right: f64, up: f64) -> Option<f64> {
    let distance = right * right + up * up;
    let ring = |radius: f64, half: f64| {
        distance >= (radius - half) * (radius - half) && distance <= (radius + half) * (radius + half)
    };
    if up >= 0.0 && ring(0.8, 0.012) {
        return Some(1.0);
    }
    if up >= 0.0 && (ring(0.22, 0.010) || ring(0.52, 0.004)) {
        return Some(0.9);
    }
    if right.abs() <= 0.812 && up.abs() <= 0.012 {
        return Some(1.0);
    }
    // Bars end before the rings: cells held at less would be dark spots in these.
    let between = distance > 0.27 * 0.27 && distance < 0.75 * 0.75;
    let on_bar = |(east, north): &(f64, f64)| {
        (right * north - up * east).abs() <= 0.006 && right * east + up * north > 0.0
    };
    (up > 0.0 && between && BARS.iter().any(on_bar)).then_some(0.8)
}

fn embers(right: f64, up: f64) -> Option<f64> {
    (-4..=4).find_map(|i| {
        let number = f64::from(i);
        let radius = 0.042 - 0.007 * number.abs();
        let (east, north) = (right - 0.18 * number, up + 0.18);
        (east * east + north * north <= radius * radius).then_some(1.0 - 0.1 * number.abs())
    })
}
