//! Elements that no CPU atomic covers, replaced by recognisable ones: nobody sees parts of two, and every value is fetched
//! once, or is there in the end.

use transom::*;
use zerocopy::IntoBytes;

use super::values::{number, pattern};
use super::{Memory, count, is_slow, window};

fn rounds() -> u32 {
    if is_slow() { 10 } else { 250 }
}

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
    }
    job.barrier()?;
    // Of this rank's numbers: those written less those fetched.
    let mut balance = 0_u64;
    let (mut data, mut old) = (vec![0u8; ty.size()], vec![0u8; ty.size()]);
    let seen = |old: &[u8]| number(ty, old).unwrap_or_else(|| panic!("{ty:?} at {start} is torn: {old:x?}"));
    window.lock_all(|epoch| {
        for round in 0..rounds() {
            let written = 1 + round * job.size() as u32 + job.rank() as u32;
            pattern(ty, written * 0x1_0101, &mut data);
            epoch.get_accumulate_as(target, start, ReduceOp::Replace, &data, one, &mut old, one, one)?;
            balance = balance.wrapping_add(u64::from(written * 0x1_0101)).wrapping_sub(u64::from(seen(&old)));
            epoch.get_accumulate_as(target, start, ReduceOp::NoOp, &data, one, &mut old, one, one)?;
            seen(&old);
        }
        Ok(())
    })?;
    count(rounds() as usize);
    let balance = job.allreduce(Sum, &[balance])?[0];
    if job.rank() == target {
        let memory = window.local().to_vec()?;
        let last = seen(&memory.as_bytes()[start..start + ty.size()]);
        assert_eq!(balance, u64::from(last), "{ty:?} at {start}");
    }
    job.barrier()
}
