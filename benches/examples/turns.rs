//! `turns OPERATION BATCHES`: rank 0 of two in this process does one thing at rank 1 again and again, in batches of
//! [`TURNS`], for programs that count the instructions of each batch (`ci/instructions-verbs.sh`).

use std::cell::RefCell;

use transom::{Assert, Epoch, Explicit, Result, Sum, Window};

/// How often a batch does it.
const TURNS: u64 = 100;

/// An operation, so many batches of it.
type Loop = fn(&Window<u64>, u64) -> Result<()>;

const OPERATIONS: [(&str, Loop); 6] = [
    ("put", |window, batches| {
        by_calls(window, batches, |epochs, turn| {
            epochs.put(1, 0, &[turn])?;
            epochs.flush(1)
        })
    }),
    ("get", |window, batches| {
        by_calls(window, batches, |epochs, _| {
            epochs.get(1, 0, &mut [0])?;
            epochs.flush(1)
        })
    }),
    ("fetch_and_op", |window, batches| {
        by_calls(window, batches, |epochs, _| epochs.fetch_op(1, 1, Sum, 1).map(drop))
    }),
    ("compare_and_swap", |window, batches| {
        by_calls(window, batches, |epochs, turn| epochs.compare_and_swap(1, 2, turn, turn + 1).map(drop))
    }),
    ("put_borrowed", |window, batches| {
        let data = [1];
        in_scope(window, batches, (0..).map(|_| &data), |epoch, data| epoch.put(1, 0, data))
    }),
    ("get_borrowed", |window, batches| {
        let mut data: Vec<u64> = (0..batches * TURNS).collect();
        in_scope(window, batches, data.chunks_mut(1), |epoch, data| epoch.get(1, 0, data))
    }),
];

/// Operations by calls.
fn by_calls(
    window: &Window<u64>,
    batches: u64,
    operation: impl Fn(&Explicit<'_, u64>, u64) -> Result<()>,
) -> Result<()> {
    let epochs = window.explicit();
    epochs.lock_all(Assert::NONE)?;
    for first in (0..batches).map(|batch| batch * TURNS) {
        batch(&mut || (first..first + TURNS).try_for_each(|turn| operation(&epochs, turn)))?;
    }
    epochs.unlock_all()
}

/// Operations on borrowed buffers, as the C interface has them too, each followed by a flush.
fn in_scope<'env, D>(
    window: &Window<u64>,
    batches: u64,
    data: impl Iterator<Item = D>,
    operation: impl Fn(&Epoch<'_, 'env, u64>, D) -> Result<()>,
) -> Result<()> {
    let data = RefCell::new(data);
    window.lock_all(|epoch| {
        let mut data = data.borrow_mut();
        for _ in 0..batches {
            batch(&mut || {
                data.by_ref().take(TURNS as usize).try_for_each(|data| {
                    operation(epoch, data)?;
                    epoch.flush(1)
                })
            })?;
        }
        Ok(())
    })
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, name, batches] = &arguments[..] else { return Err("turns OPERATION BATCHES".into()) };
    let batches = batches.parse()?;
    let found = OPERATIONS.iter().find(|(known, _)| known == name);
    let (_, operation) = found.ok_or_else(|| format!("no operation {name}"))?;
    transom::local(2, |job| {
        let window = job.allocate::<u64>(8)?;
        if job.rank() == 0 {
            operation(&window, batches)?;
        }
        job.barrier()?;
        window.free()
    })?;
    Ok(())
}

/// What is counted: instructions of the thread that is here, without those of progress threads and the other rank.
#[inline(never)]
fn batch(turns: &mut dyn FnMut() -> Result<()>) -> Result<()> {
    turns()
}
