//! `turns OPERATION TURNS`: rank 0 of two in this process does one thing at rank 1 again and again, for programs that count
//! its instructions (`ci/instructions-verbs.sh`).

use transom::{Assert, Epoch, Explicit, Result, Sum, Window};

/// How often.
type Turns = std::ops::Range<u64>;

/// An operation, so often.
type Loop = fn(&Window<u64>, Turns) -> Result<()>;

const OPERATIONS: [(&str, Loop); 6] = [
    ("put", |window, turns| {
        by_calls(window, turns, |epochs, turn| {
            epochs.put(1, 0, &[turn])?;
            epochs.flush(1)
        })
    }),
    ("get", |window, turns| {
        by_calls(window, turns, |epochs, _| {
            epochs.get(1, 0, &mut [0])?;
            epochs.flush(1)
        })
    }),
    ("fetch_and_op", |window, turns| {
        by_calls(window, turns, |epochs, _| epochs.fetch_op(1, 1, Sum, 1).map(drop))
    }),
    ("compare_and_swap", |window, turns| {
        by_calls(window, turns, |epochs, turn| epochs.compare_and_swap(1, 2, turn, turn + 1).map(drop))
    }),
    ("put_borrowed", |window, turns| {
        let data = [1];
        in_scope(window, turns.map(|_| &data), |epoch, data| epoch.put(1, 0, data))
    }),
    ("get_borrowed", |window, turns| {
        let mut data: Vec<u64> = turns.collect();
        in_scope(window, data.chunks_mut(1), |epoch, data| epoch.get(1, 0, data))
    }),
];

/// Operations by calls.
fn by_calls(
    window: &Window<u64>,
    turns: Turns,
    operation: impl Fn(&Explicit<'_, u64>, u64) -> Result<()>,
) -> Result<()> {
    let epochs = window.explicit();
    epochs.lock_all(Assert::NONE)?;
    for turn in turns {
        operation(&epochs, turn)?;
    }
    epochs.unlock_all()
}

/// Operations on borrowed buffers, as the C interface has them too, each followed by a flush.
fn in_scope<'env, D>(
    window: &Window<u64>,
    data: impl Iterator<Item = D>,
    operation: impl Fn(&Epoch<'_, 'env, u64>, D) -> Result<()>,
) -> Result<()> {
    window.lock_all(|epoch| {
        for data in data {
            operation(epoch, data)?;
            epoch.flush(1)?;
        }
        Ok(())
    })
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, name, turns] = &arguments[..] else { return Err("turns OPERATION TURNS".into()) };
    let turns = 0..turns.parse()?;
    let found = OPERATIONS.iter().find(|(known, _)| known == name);
    let (_, operation) = found.ok_or_else(|| format!("no operation {name}"))?;
    transom::local(2, |job| {
        let window = job.allocate::<u64>(8)?;
        if job.rank() == 0 {
            rank_0(&window, *operation, turns.clone())?;
        }
        job.barrier()?;
        window.free()
    })?;
    Ok(())
}

/// What is counted: instructions of the thread that is here, without those of progress threads and the other rank.
#[inline(never)]
fn rank_0(window: &Window<u64>, operation: Loop, turns: Turns) -> Result<()> {
    operation(window, turns)
}
