//! What the device does itself, and what is a message to the target.

use std::time::Instant;

use transom::explain::{Kind, Path};
use transom::{Job, Result, WindowOptions};

fn counted() -> WindowOptions {
    WindowOptions::default().with("transom_explain", "true")
}

/// Atomics on words are the device's own, whoever updates them.
pub fn atomics_are_the_devices(job: &Job) -> Result<()> {
    const TIMES: u64 = 20;
    let window = job.allocate_with::<u64>(1, &counted())?;
    window.lock_all(|epoch| {
        (0..job.size())
            .try_for_each(|target| (0..TIMES).try_for_each(|_| epoch.fetch_add(target, 0, 1).map(drop)))
    })?;
    let by_device = window.explain().by_path(Kind::FetchAndOp, Path::Hardware).operations;
    assert_eq!(by_device, TIMES * job.size() as u64, "{}", window.explain());
    job.barrier()?;
    assert_eq!(window.local().get(0)?, TIMES * job.size() as u64);
    window.free()
}

/// Large gets are work requests of the transport, straight into the caller's buffer, and no messages. How long they take is
/// printed beside the time of a message of the same length.
pub fn gets_are_no_messages(job: &Job) -> Result<()> {
    const LEN: usize = 1 << 20;
    const TIMES: u32 = 10;
    let (left, right) = ((job.rank() + job.size() - 1) % job.size(), (job.rank() + 1) % job.size());
    let mapped = job.transport(right).is_some_and(|(name, _)| name == "shm");
    let window = job.allocate_with::<u8>(LEN, &counted())?;
    window.local().write(0, &vec![job.rank() as u8; LEN])?;
    job.barrier()?;
    let start = Instant::now();
    let mut data = vec![0xff; LEN];
    for _ in 0..TIMES {
        window.lock_all(|epoch| epoch.get(right, 0, &mut data))?;
    }
    let got = start.elapsed() / TIMES;
    assert!(data.iter().all(|byte| *byte == right as u8));
    let counted = window.explain();
    let none = [Path::Message, Path::Packed].map(|path| counted.by_path(Kind::Get, path).operations);
    assert_eq!(none, [0, 0], "{counted}");
    let direct = counted.by_path(Kind::Get, Path::Direct).operations;
    assert_eq!(direct, if mapped { u64::from(TIMES) } else { 0 }, "{counted}");
    job.barrier()?;
    let start = Instant::now();
    for _ in 0..TIMES {
        let sent = job.isend(left, 1, data.clone());
        drop(job.recv::<u8>(right, 1)?);
        sent.wait()?;
    }
    eprintln!("get of 1 MiB {got:?}, message {:?}", start.elapsed() / TIMES);
    job.barrier()?;
    window.free()
}
