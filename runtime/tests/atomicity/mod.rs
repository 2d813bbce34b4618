//! Updates of the same elements by all ranks at once: programs of ranks.

pub mod large;
pub mod mixed;
pub mod torn;
mod values;

use std::sync::atomic::{AtomicUsize, Ordering};

use transom::{ComplexLongDouble, Job, Result, Window, WindowOptions};

/// Ranks that the programs are for.
pub const RANKS: usize = 4;

/// Aligned for every type; displacements count bytes.
type Memory = Window<ComplexLongDouble>;

static DONE: AtomicUsize = AtomicUsize::new(0);

fn count(updates: usize) {
    DONE.fetch_add(updates, Ordering::Relaxed);
}

/// Updates of elements by the ranks of this process so far.
pub fn done() -> usize {
    DONE.load(Ordering::Relaxed)
}

/// Whether the transport is shared memory, over which many updates take no time.
fn is_fast() -> bool {
    std::env::var("TRANSOM_TRANSPORT").as_deref() == Ok("shm")
}

/// Whether each update may be an operation of an emulated device.
fn is_slow() -> bool {
    std::env::var("TRANSOM_TRANSPORT").is_ok_and(|transports| transports.contains("verbs"))
}

/// A window of so many bytes, allocated or of the user's memory.
fn window(job: &Job, created: bool, bytes: usize) -> Result<Memory> {
    let len = bytes.div_ceil(size_of::<ComplexLongDouble>());
    if created {
        job.create_with(vec![ComplexLongDouble::default(); len], &WindowOptions::unit(1))
    } else {
        job.allocate_with(len, &WindowOptions::unit(1))
    }
}
