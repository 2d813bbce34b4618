//! Over verbs: how bytes move by their number, and which atomics are the device's.

use std::time::Duration;

use transom::explain::{Kind, Path, Reason};
use transom::{Datatype, Job, Layout, Max, Result, Sum, WindowOptions};
use transom_transport::AtomicScope;

use crate::tests::child;

pub fn run(test: &str) {
    child::run("verbs", test, Duration::from_secs(100), || {
        transom::local(2, |job| counted(&job)).unwrap();
    });
}

fn counted(job: &Job) -> Result<()> {
    let other = 1 - job.rank();
    let options = WindowOptions::default().with("transom_explain", "true");
    let words = job.allocate_with::<i64>(1 << 17, &options)?;
    let halves = job.allocate_with::<i32>(4, &options)?;
    words.lock_all(|epoch| {
        epoch.put_value(other, 0, 1)?;
        epoch.put(other, 8, &[2; 512])?;
        epoch.put(other, 0, &[3; 1 << 17])?;
        epoch.flush(other)?;
        epoch.get_value(other, 0).map(drop)?;
        epoch.fetch_add(other, 1, 1).map(drop)?;
        // The owner's own updates take the same path.
        epoch.fetch_add(job.rank(), 1, 1).map(drop)?;
        epoch.compare_and_swap(other, 2, 0, 1).map(drop)?;
        epoch.accumulate(other, 3, Max, &[5; 10])
    })?;
    let number = Datatype::of::<i64>();
    let (column, scattered) = (Datatype::vector(100, 1, 3, &number)?, Datatype::vector(100, 1, 2, &number)?);
    let (data, dense) = ([4i64; 300], Layout::new(100, &number));
    words.lock_all(|epoch| {
        // One run there, a hundred pieces here; and a hundred runs there.
        epoch.put_as(other, 0, &data, Layout::new(1, &column), dense)?;
        epoch.put_as(other, 200, &data[..100], dense, Layout::new(1, &scattered))
    })?;
    halves.lock_all(|epoch| epoch.accumulate(other, 0, Sum, &[1]))?;
    let counted = words.explain();
    let device = device();
    let puts = [
        (Kind::Put, Path::Inline, 1),
        (Kind::Put, Path::Bounce, 1),
        (Kind::Put, Path::ZeroCopy, 1),
        (Kind::Put, Path::List, u64::from(device.lists)),
        (Kind::Put, Path::Packed, 2 - u64::from(device.lists)),
    ];
    let updates = match device.atomics {
        true => [
            (Kind::FetchAndOp, Path::Hardware, 2),
            (Kind::CompareAndSwap, Path::Hardware, 1),
            (Kind::Accumulate, Path::Assisted, 1),
            (Kind::FetchAndOp, Path::Agent, 0),
        ],
        // The owner's own are its CPU's then.
        false => [
            (Kind::FetchAndOp, Path::Agent, 1),
            (Kind::CompareAndSwap, Path::Agent, 1),
            (Kind::Accumulate, Path::Agent, 1),
            (Kind::FetchAndOp, Path::Cpu, 1),
        ],
    };
    for (kind, path, operations) in puts.into_iter().chain(updates) {
        assert_eq!(counted.by_path(kind, path).operations, operations, "{kind:?} {path:?}\n{counted}");
    }
    let narrow = halves.explain();
    let reason = if device.atomics { Reason::Type } else { Reason::Provider };
    assert_eq!(narrow.by_reason(Kind::Accumulate, Path::Agent, reason).operations, 1, "{narrow}");
    job.barrier()?;
    words.free()?;
    halves.free()
}

/// What the device has.
struct Device {
    atomics: bool,
    /// Soft-iWARP alone takes no lists.
    lists: bool,
}

fn device() -> Device {
    let names = std::env::var("TRANSOM_VERBS_DEVICE").unwrap();
    let report = transom_verbs::describe(names.split(',').next().unwrap()).unwrap();
    Device { atomics: report.atomics != AtomicScope::None, lists: report.link != "iWARP" }
}
