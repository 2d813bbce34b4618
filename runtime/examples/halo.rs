//! Heat in a rod: each rank has a part of its cells, and before each step puts its outermost cells beside those of its neighbours. The
//! window holds the neighbours' cells, for odd and for even steps, so that one fence a step is enough.

use transom::{NULL_RANK, Result};

const CELLS: usize = 960;
const STEPS: usize = 2000;
const HOT: f64 = 100.0;
const COLD: f64 = 0.0;
const RATE: f64 = 0.25;

fn main() -> std::process::ExitCode {
    transom::run(|job| -> Result<()> {
        let (rank, size) = (job.rank(), job.size());
        let first = |rank: usize| CELLS * rank / size;
        let own = first(rank + 1) - first(rank);
        let left = rank.checked_sub(1).unwrap_or(NULL_RANK);
        let right = if rank + 1 < size { rank + 1 } else { NULL_RANK };

        // The cells of the left and the right neighbour; beyond the rod it is hot or cold for ever.
        let halos = job.allocate::<f64>(4)?;
        let (from_left, from_right) = (if rank == 0 { HOT } else { COLD }, COLD);
        halos.local().write(0, &[from_left, from_right, from_left, from_right])?;
        let mut now = vec![COLD; own];
        for step in 0..STEPS {
            let at = step % 2 * 2;
            halos.fence(|epoch| {
                epoch.put_value(left, at + 1, now[0])?;
                epoch.put_value(right, at, now[own - 1])
            })?;
            let mut halo = [0.0; 2];
            halos.local().read(at, &mut halo)?;
            let cell = |i: usize| match i {
                0 => halo[0],
                i if i > own => halo[1],
                i => now[i - 1],
            };
            now = (1..=own).map(|i| cell(i) + RATE * (cell(i - 1) - 2.0 * cell(i) + cell(i + 1))).collect();
        }

        // Rank 0 looks at some cells, wherever they are.
        let field = job.create(now)?;
        field.lock_all(|epoch| {
            for cell in (0..100).step_by(20).filter(|_| rank == 0) {
                let owner = (0..size).rfind(|rank| first(*rank) <= cell).unwrap_or(0);
                println!("cell {cell:2}: {:10.6}", epoch.get_value(owner, cell - first(owner))?);
            }
            Ok(())
        })?;
        field.free()?;
        halos.free()
    })
}
