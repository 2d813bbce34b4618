//! Operations on mapped windows beside what the core does without a runtime. Rank 0 measures, rank 1 waits in a barrier.

#![forbid(unsafe_code)]

use std::hint::black_box;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput};
use transom::{Job, LockKind, Result};
use transom_benches::limit::memory::Memory;

const SIZES: [usize; 4] = [4 << 10, 64 << 10, 1 << 20, 4 << 20];

type Group<'a> = BenchmarkGroup<'a, WallTime>;

/// One benchmark of an operation that has succeeded once.
fn bench<R>(group: &mut Group<'_>, name: &str, mut operation: impl FnMut() -> Result<R>) -> Result<()> {
    operation()?;
    group.bench_function(name, |bencher| bencher.iter(&mut operation));
    Ok(())
}

/// The limits of words.
fn limits(group: &mut Group<'_>, memory: &Memory) {
    group.bench_function("limit: store", |b| b.iter(|| memory.store()));
    group.bench_function("limit: store + locked instruction", |b| b.iter(|| memory.store_and_fence()));
    group.bench_function("limit: lock xadd", |b| b.iter(|| memory.add()));
}

fn words(job: &Job, criterion: &mut Criterion, memory: &Memory) -> Result<()> {
    let mut group = criterion.benchmark_group("word");
    limits(&mut group, memory);
    let window = job.allocate::<u64>(8)?;
    window.lock_all(|epoch| {
        bench(&mut group, "put, flush", || {
            epoch.put_value(1, 0, black_box(1))?;
            epoch.flush(1)
        })?;
        bench(&mut group, "get, flush", || {
            let value = epoch.get_value(1, 0)?;
            epoch.flush(1).map(|()| value)
        })?;
        bench(&mut group, "fetch_add", || epoch.fetch_add(1, 0, black_box(1)))?;
        bench(&mut group, "compare_and_swap", || epoch.compare_and_swap(1, 0, black_box(1), black_box(1)))
    })?;
    bench(&mut group, "exclusive lock, put, unlock", || {
        window.lock(LockKind::Exclusive, 1, |epoch| epoch.put_value(1, 0, black_box(1)))
    })?;
    group.finish();
    window.free()
}

fn bandwidth(job: &Job, criterion: &mut Criterion, memory: &mut Memory) -> Result<()> {
    let most = SIZES[SIZES.len() - 1];
    let window = job.allocate::<u8>(most)?;
    let data = vec![1u8; most];
    for bytes in SIZES {
        let mut group = criterion.benchmark_group(format!("put, flush {} KiB", bytes >> 10));
        group.throughput(Throughput::Bytes(bytes as u64));
        group.bench_function("limit: memcpy", |b| b.iter(|| memory.copy(0, bytes)));
        window.lock_all(|epoch| {
            bench(&mut group, "put, flush", || {
                epoch.put(1, 0, &data[..bytes])?;
                epoch.flush(1)
            })
        })?;
        group.finish();
    }
    window.free()
}

/// Rank 1 only takes part in what is collective.
fn passive(job: &Job) -> Result<()> {
    job.allocate::<u64>(8)?.free()?;
    job.allocate::<u8>(SIZES[SIZES.len() - 1])?.free()
}

fn active(job: &Job) -> Result<()> {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .sample_size(40)
        .configure_from_args();
    match Memory::new(SIZES[SIZES.len() - 1], 0) {
        Ok(mut memory) => {
            words(job, &mut criterion, &memory)?;
            bandwidth(job, &mut criterion, &mut memory)?;
        }
        Err(error) => eprintln!("no memory to compare with: {error}"),
    }
    criterion.final_summary();
    Ok(())
}

fn main() -> Result<()> {
    transom::local(2, |job| if job.rank() == 0 { active(&job) } else { passive(&job) }).map(drop)
}
