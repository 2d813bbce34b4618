//! One step of all ranks.

use transom::{Job, NULL_RANK, Result, Window};

use super::Plate;

/// The rows next to this rank's, which its neighbours put here: two for odd steps, two for even ones, so that a fast
/// neighbour does not overwrite what a slow rank still reads.
#[derive(Debug)]
pub(super) struct Halos {
    window: Window<f64>,
    width: usize,
    above: usize,
    below: usize,
}

/// Places of the rows in a pair.
const ABOVE: usize = 0;
const BELOW: usize = 1;

impl Halos {
    /// Collective.
    pub fn new(job: &Job, plate: Plate) -> Result<Self> {
        let rows = plate.rows(job.rank(), job.size());
        let owner = |row: Option<usize>| {
            let row = row.filter(|row| *row < plate.height && !rows.is_empty());
            row.map_or(NULL_RANK, |row| plate.owner(row, job.size()))
        };
        let (above, below) = (owner(rows.start.checked_sub(1)), owner(Some(rows.end)));
        let window = job.allocate(if rows.is_empty() { 0 } else { 4 * plate.width })?;
        Ok(Self { window, width: plate.width, above, below })
    }

    /// Where a row is in the window in a step.
    fn place(&self, number: u64, which: usize) -> usize {
        ((number % 2) as usize * 2 + which) * self.width
    }

    /// The row that a neighbour put; zeros beyond the plate.
    fn row(&self, number: u64, which: usize) -> Result<Vec<f64>> {
        let mut row = vec![0.0; self.width];
        self.window.local().read(self.place(number, which), &mut row)?;
        Ok(row)
    }

    /// Collective.
    pub fn free(self) -> Result<()> {
        self.window.free()
    }
}

/// Computes `next` from `field`. Collective.
pub(super) fn step(halos: &Halos, number: u64, rates: &[f64], field: &[f64], next: &mut [f64]) -> Result<()> {
    let width = halos.width;
    let rows = field.len() / width;
    halos.window.fence(|epoch| {
        if rows > 0 {
            // What is this rank's first row is below the rows of the rank above.
            epoch.put(halos.above, halos.place(number, BELOW), &field[..width])?;
            epoch.put(halos.below, halos.place(number, ABOVE), &field[(rows - 1) * width..])?;
        }
        for y in 1..rows.saturating_sub(1) {
            let above = &field[(y - 1) * width..y * width];
            let below = &field[(y + 1) * width..(y + 2) * width];
            row(
                above,
                cells(field, y, width),
                below,
                cells(rates, y, width),
                &mut next[y * width..][..width],
            );
        }
        Ok(())
    })?;
    if rows == 0 {
        return Ok(());
    }
    let (above, below) = (halos.row(number, ABOVE)?, halos.row(number, BELOW)?);
    let last = rows - 1;
    let second = if last == 0 { &below } else { cells(field, 1, width) };
    row(&above, cells(field, 0, width), second, cells(rates, 0, width), &mut next[..width]);
    if last > 0 {
        let before = cells(field, last - 1, width);
        row(before, cells(field, last, width), &below, cells(rates, last, width), &mut next[last * width..]);
    }
    Ok(())
}

fn cells(field: &[f64], y: usize, width: usize) -> &[f64] {
    &field[y * width..(y + 1) * width]
}

/// One row. Cells at the left and right edge are held.
fn row(above: &[f64], here: &[f64], below: &[f64], rates: &[f64], next: &mut [f64]) {
    let width = here.len();
    next[0] = here[0];
    next[width - 1] = here[width - 1];
    if width < 3 {
        return;
    }
    let (left, right) = (&here[..width - 2], &here[2..]);
    let inner = 1..width - 1;
    let (above, below) = (&above[inner.clone()], &below[inner.clone()]);
    let (here, rates) = (&here[inner.clone()], &rates[inner.clone()]);
    for (x, next) in next[inner].iter_mut().enumerate() {
        let around = (above[x] + below[x]) + (left[x] + right[x]);
        *next = here[x] + rates[x] * (around - 4.0 * here[x]);
    }
}
