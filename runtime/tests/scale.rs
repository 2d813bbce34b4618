//! Large numbers: windows, regions, bytes.
//!
//! Each test runs this executable again as a child, with a transport and a time limit.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "common/child.rs"]
#[expect(dead_code, reason = "only the way with settings is used here")]
mod child;
#[path = "common/resident.rs"]
mod resident;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use resident::resident;
use transom::{Class, Job, LockKind, Result, Sum, WindowOptions};

const GIB: usize = 1 << 30;

/// What a test may take, and before that, in seconds, any wait within it.
const LIMITS: (Duration, &str) = (Duration::from_secs(180), "100");
/// The same of much memory: what a machine has never had takes minutes to come where the host of virtual machines is busy.
const LIMITS_OF_LARGE: (Duration, &str) = (Duration::from_secs(600), "500");

/// Tests that need half a machine's memory, one at a time.
static LARGE: Mutex<()> = Mutex::new(());

/// `name, ranks, program, settings;` makes one test over each transport.
macro_rules! tests {
    ($($name:ident, $ranks:literal, $program:ident, $settings:expr;)*) => {
        tests! { @over shm $($name, $ranks, $program, $settings;)* }
        tests! { @over ofi $($name, $ranks, $program, $settings;)* }
    };
    (@over $transport:ident $($name:ident, $ranks:literal, $program:ident, $settings:expr;)*) => {
        mod $transport { $(
            #[test]
            fn $name() {
                let transport = stringify!($transport);
                let test = concat!(stringify!($transport), "::", stringify!($name));
                super::run(transport, test, $ranks, super::$program, $settings);
            }
        )* }
    };
}

tests! {
    two_thousand_windows_at_once, 3, two_thousand_windows, &[];
    windows_come_and_go_in_flat_memory, 2, come_and_go, &[];
    ten_thousand_attached_regions, 2, attached_regions, &[];
    eight_gib_window_and_a_put_of_more_than_four, 2, large_window, &[];
    registration_that_fails_at_one_rank_fails_at_all, 4, failing_registration, &[("TRANSOM_FAULT", "register:2")];
}

fn run(
    transport: &str,
    test: &str,
    ranks: usize,
    program: fn(&Job) -> Result<()>,
    settings: &[(&str, &str)],
) {
    if test.contains("eight_gib") && std::env::var_os("TRANSOM_TEST_SHORT").is_some() {
        return eprintln!("skipped: TRANSOM_TEST_SHORT");
    }
    let is_large = test.contains("eight_gib");
    let (limit, deadline) = if is_large { LIMITS_OF_LARGE } else { LIMITS };
    let _large = is_large.then(|| LARGE.lock().unwrap_or_else(PoisonError::into_inner));
    let settings = [&[("TRANSOM_TRANSPORT", transport), ("TRANSOM_DEADLINE", deadline)], settings].concat();
    child::run_with(&settings, test, limit, || drop(transom::local(ranks, |job| program(&job)).unwrap()));
}

fn two_thousand_windows(job: &Job) -> Result<()> {
    let right = (job.rank() + 1) % job.size();
    let windows = (0..2000).map(|_| job.allocate::<u64>(16)).collect::<Result<Vec<_>>>()?;
    for (i, window) in windows.iter().enumerate() {
        window.lock(LockKind::Shared, right, |epoch| {
            epoch.accumulate(right, i % 16, Sum, &[i as u64])?;
            epoch.fetch_add(right, i % 16, 1).map(drop)
        })?;
    }
    job.barrier()?;
    for (i, window) in windows.into_iter().enumerate() {
        assert_eq!(window.local().get(i % 16)?, i as u64 + 1);
        window.free()?;
    }
    Ok(())
}

fn come_and_go(job: &Job) -> Result<()> {
    let rounds: usize =
        std::env::var("TRANSOM_TEST_ROUNDS").ok().and_then(|r| r.parse().ok()).unwrap_or(100_000);
    let mut memory = Vec::new();
    for round in 0..rounds {
        if round.is_multiple_of(rounds / 5) {
            memory.push(resident());
        }
        let window = match round % 3 {
            0 => job.allocate::<u64>(512)?,
            1 => job.create(vec![0u64; 512])?,
            _ => job.dynamic::<u64>()?,
        };
        if round.is_multiple_of(100) && round % 3 < 2 {
            window.fence(|epoch| epoch.put_value((job.rank() + 1) % job.size(), 3, 4))?;
        }
        window.free()?;
    }
    memory.push(resident());
    if job.rank() == 0 {
        eprintln!("{rounds} windows: KiB resident after each fifth: {memory:?}");
        // Pools, libfabric's above all, fill at first. A leak of a window's size would go on.
        let (then, now) = (memory[3], memory[5]);
        assert!(now < then + 4096, "memory grows: {memory:?} KiB");
    }
    Ok(())
}

fn attached_regions(job: &Job) -> Result<()> {
    const REGIONS: usize = 10_000;
    let window = job.dynamic::<u32>()?;
    let mine = (0..REGIONS).map(|i| window.attach(vec![i as u32; 3])).collect::<Result<Vec<_>>>()?;
    let all = job.allgather(&mine)?;
    let other = 1 - job.rank();
    window.lock_all(|epoch| {
        for (i, address) in all[other].iter().enumerate() {
            assert_eq!(epoch.get_value(other, *address + 8)?, i as u32);
            epoch.put_value(other, *address, 7)?;
        }
        epoch.flush(other)
    })?;
    job.barrier()?;
    for (i, address) in mine.iter().enumerate() {
        assert_eq!(window.detach(*address)?, [7, i as u32, i as u32]);
    }
    job.barrier()?;
    let gone = window.lock_all(|epoch| epoch.get_value(other, all[other][0]));
    assert_eq!(gone.unwrap_err().class(), Class::RmaRange);
    window.free()
}

fn large_window(job: &Job) -> Result<()> {
    let free = std::fs::read_to_string("/proc/meminfo").unwrap();
    let free = free.lines().find_map(|line| line.strip_prefix("MemAvailable:")).unwrap();
    let free: usize = free.trim().trim_end_matches("kB").trim().parse().unwrap();
    let (window_bytes, put_bytes) = (8 * GIB, 4 * GIB + (64 << 20));
    // Both windows are checked against free memory, and the origin's buffer comes to that.
    if free < 2 * (window_bytes >> 10) + (5 << 20) {
        eprintln!("skipped: {free} KiB are free, 21 GiB are needed");
        return Ok(());
    }
    let window = job.allocate_with::<u64>(window_bytes / 8, &WindowOptions::default())?;
    assert_eq!(window.len_at(1 - job.rank()), Some(window_bytes / 8));
    if job.rank() == 0 {
        const VALUE: u64 = 0x0102_0304_0506_0708;
        let ends = [0, 4 * GIB / 8, put_bytes / 8 - 1];
        // Only what is looked at takes memory here.
        let mut data = vec![0u64; put_bytes / 8];
        ends.iter().for_each(|at| data[*at] = VALUE);
        let first = (window_bytes - put_bytes) / 8;
        window.lock(LockKind::Exclusive, 1, |epoch| epoch.put(1, first, &data))?;
        window.lock(LockKind::Shared, 1, |epoch| {
            assert_eq!(epoch.get_value(1, first - 1)?, 0);
            for at in ends {
                assert_eq!(epoch.get_value(1, first + at)?, VALUE);
            }
            assert_eq!(epoch.fetch_add(1, window_bytes / 8 - 1, 1)?, VALUE);
            Ok(())
        })?;
    }
    window.free()
}

fn failing_registration(job: &Job) -> Result<()> {
    let texts = [job.allocate::<u64>(4).map(drop), job.create(vec![0u8; 5]).map(drop)];
    for error in texts {
        let error = error.unwrap_err();
        assert_eq!(error.class(), Class::NoMemory);
        assert!(
            error.message().contains("rank 2") && error.message().contains("registration refused"),
            "{error}"
        );
        let all = job.allgather(error.message().as_bytes())?;
        assert!(all.iter().all(|text| *text == all[0]), "ranks have different errors");
    }
    // What needs no registration goes on.
    job.barrier()
}
