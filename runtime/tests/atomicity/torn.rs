//! Elements that no CPU atomic covers, replaced by recognisable ones: nobody sees parts of two, and every value is fetched
//! once, or is there in the end.

use std::sync::atomic::{AtomicU64, Ordering};

use transom::*;
use zerocopy::IntoBytes;

use crate::values::{number, pattern};
use crate::{Memory, count, window};

const ROUNDS: u32 = 250;
const TYPES: [DataType; 9] = [
    DataType::U64,
    DataType::F64,
    DataType::F80,
    DataType::C64,
    DataType::C80,
    DataType::F64I32,
    DataType::I64I32,
    DataType::F80I32,
    DataType::WideChar,
];

/// Of all ranks' numbers: those written less those fetched.
static BALANCE: AtomicU64 = AtomicU64::new(0);

pub fn run(job: &Job) -> Result<()> {
    for created in [false, true] {
        let window = window(job, created, 128)?;
        for start in [0, 5, 15] {
            TYPES.iter().try_for_each(|ty| exchange(job, &window, start, *ty))?;
        }
        window.free()?;
    }
    Ok(())
}

fn exchange(job: &Job, window: &Memory, start: usize, ty: DataType) -> Result<()> {
    let (target, row) = (1, Datatype::basic(ty));
    let one = Layout::new(1, &row);
    if job.rank() == target {
        let zeros = vec![0u8; ty.size()];
        window.lock_all(|epoch| epoch.accumulate_as(target, start, ReduceOp::Replace, &zeros, one, one))?;
        BALANCE.store(0, Ordering::SeqCst);
    }
    job.barrier()?;
    let (mut data, mut old) = (vec![0u8; ty.size()], vec![0u8; ty.size()]);
    let seen = |old: &[u8]| number(ty, old).unwrap_or_else(|| panic!("{ty:?} at {start} is torn: {old:x?}"));
    window.lock_all(|epoch| {
        for round in 0..ROUNDS {
            let written = 1 + round * job.size() as u32 + job.rank() as u32;
            pattern(ty, written * 0x1_0101, &mut data);
            epoch.get_accumulate_as(target, start, ReduceOp::Replace, &data, one, &mut old, one, one)?;
            let balance = u64::from(written * 0x1_0101).wrapping_sub(u64::from(seen(&old)));
            BALANCE.fetch_add(balance, Ordering::SeqCst);
            epoch.get_accumulate_as(target, start, ReduceOp::NoOp, &data, one, &mut old, one, one)?;
            seen(&old);
        }
        Ok(())
    })?;
    count(ROUNDS as usize);
    job.barrier()?;
    if job.rank() == target {
        let memory = window.local().to_vec()?;
        let last = seen(&memory.as_bytes()[start..start + ty.size()]);
        assert_eq!(BALANCE.load(Ordering::SeqCst), u64::from(last), "{ty:?} at {start}");
    }
    job.barrier()
}
