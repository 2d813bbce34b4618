//! Puts and gets.

use transom::explain::{Kind, Path, Reason};
use transom::{Class, Job, LockKind, NULL_RANK, Result, Sum};

use super::expected::{check, counted, is_mapped, right, way};

const OWN: (Path, Reason) = (Path::Direct, Reason::Loopback);
const NEAR: (Path, Reason) = (Path::Direct, Reason::Mapped);
const FAR: (Path, Reason) = (Path::Transport, Reason::Remote);
/// With the request for the lock, or the end of the epoch.
const WITH_LOCK: (Path, Reason) = (Path::Message, Reason::Epoch);

pub fn transfers(job: &Job) -> Result<()> {
    let window = job.allocate_with::<u64>(64, &counted())?;
    let (right, three) = (right(job), [1, 2, 3]);
    let (path, reason) = way(job, OWN, NEAR, FAR);
    let first = [(Kind::Put, path, reason, 10, 240)];
    window.lock_all(|epoch| {
        for _ in 0..10 {
            epoch.put(right, 0, &three)?;
        }
        // Counts are there while the epoch is open.
        check(&window, &first);
        for _ in 0..4 {
            epoch.get_value(right, 1)?;
        }
        epoch.rput(right, 8, vec![7, 8])?.wait()?;
        epoch.rget(right, 8, 2)?.wait()?;
        epoch.put_value(job.rank(), 20, 5)?;
        epoch.flush_all()
    })?;
    let (notify_path, notify_reason) = way(job, OWN, NEAR, (Path::Message, Reason::Size));
    window.lock_all(|epoch| epoch.put_notify(right, 0, &three, 1))?;
    window.wait_notifications(1, 1)?;
    check(
        &window,
        &[
            (Kind::Put, path, reason, 11, 256),
            (Kind::Get, path, reason, 5, 48),
            (Kind::Put, OWN.0, OWN.1, 1, 8),
            (Kind::PutNotify, notify_path, notify_reason, 1, 24),
        ],
    );
    window.free()
}

/// Another rank reaches it by system calls on the same node.
pub fn of_the_users_memory(job: &Job) -> Result<()> {
    let window = job.create_with(vec![0u64; 8], &counted())?;
    let (path, reason) = way(job, OWN, FAR, FAR);
    window.fence(|epoch| {
        epoch.put_value(right(job), 0, 1)?;
        epoch.put_value(job.rank(), 1, 1)
    })?;
    let rma = window.explicit();
    rma.lock(LockKind::Shared, right(job), transom::Assert::NONE)?;
    rma.put(right(job), 2, &[1, 2])?;
    rma.unlock(right(job))?;
    drop(rma);
    // What is not mapped is locked by its agent, and the put comes with the request. Of a fence of two the put is a part.
    let with_lock = |far: bool| if is_mapped(job) || !far { (path, reason) } else { WITH_LOCK };
    let (fenced, locked) = (with_lock(job.size() == 2), with_lock(job.size() > 1));
    let puts = [(Kind::Put, fenced.0, fenced.1, 1, 8), (Kind::Put, locked.0, locked.1, 1, 16)];
    check(&window, &[puts[0], puts[1], (Kind::Put, OWN.0, OWN.1, 1, 8)]);
    window.free()
}

/// Small operations travel with the request for their target's lock; what comes behind another kind goes its own way.
pub fn in_epochs_of_a_lock(job: &Job) -> Result<()> {
    let window = job.allocate_with::<u64>(1 << 14, &counted())?;
    let right = right(job);
    let data = vec![1; 1 << 14];
    for size in [1, 1 << 14] {
        window.lock(LockKind::Shared, right, |epoch| {
            epoch.put(right, 0, &[1, 2])?;
            epoch.accumulate(right, 2, Sum, &[1])?;
            epoch.put(right, 0, &data[..size])?;
            epoch.flush(right)?;
            epoch.put_value(right, 3, 1)
        })?;
    }
    let (path, reason) = way(job, OWN, NEAR, FAR);
    let (early, early_reason) = way(job, OWN, NEAR, WITH_LOCK);
    let (agent, agent_reason) =
        way(job, (Path::Cpu, OWN.1), (Path::Cpu, NEAR.1), (Path::Agent, Reason::Provider));
    let rows = [
        (Kind::Put, early, early_reason, 3, 16 + 8 + 16),
        (Kind::Put, path, reason, 3, 8 + (8 << 14) + 8),
        (Kind::Accumulate, agent, agent_reason, 2, 16),
    ];
    check(&window, &rows);
    window.free()
}

pub fn what_does_nothing(job: &Job) -> Result<()> {
    let window = job.allocate_with::<u64>(8, &counted())?;
    window.lock_all(|epoch| {
        epoch.put(NULL_RANK, 0, &[1])?;
        epoch.fetch_add(NULL_RANK, 0, 1)?;
        assert_eq!(epoch.put(right(job), 8, &[1]).unwrap_err().class(), Class::RmaRange);
        assert_eq!(epoch.fetch_add(right(job), 8, 1).unwrap_err().class(), Class::RmaRange);
        assert_eq!(epoch.put(job.size(), 0, &[1]).unwrap_err().class(), Class::Rank);
        Ok(())
    })?;
    check(&window, &[]);
    assert_eq!(window.explain().to_string(), "no operations");
    window.free()
}

/// A thread for each target, each with epochs of its own.
pub fn of_threads(job: &Job) -> Result<()> {
    const EPOCHS: u64 = 20;
    const PUTS: u64 = 50;
    let window = job.allocate_with::<u64>(8, &counted())?;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..job.size())
            .map(|target| {
                let window = &window;
                scope.spawn(move || {
                    (0..EPOCHS).try_for_each(|_| {
                        window.lock(LockKind::Shared, target, |epoch| {
                            (0..PUTS).try_for_each(|i| epoch.put_value(target, target, i))
                        })
                    })
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap())
    })?;
    let (each, others) = (EPOCHS * PUTS, job.size() as u64 - 1);
    let (path, reason) = way(job, OWN, NEAR, FAR);
    // Which go with a lock's request depends on when another thread's lock comes.
    let early = window.explain().by_reason(Kind::Put, WITH_LOCK.0, WITH_LOCK.1).operations;
    check(
        &window,
        &[
            (Kind::Put, OWN.0, OWN.1, each, 8 * each),
            (Kind::Put, path, reason, others * each - early, 8 * (others * each - early)),
            (Kind::Put, WITH_LOCK.0, WITH_LOCK.1, early, 8 * early),
        ],
    );
    window.free()
}

pub fn unasked(job: &Job) -> Result<()> {
    let window = job.allocate::<u64>(8)?;
    window.fence(|epoch| epoch.put_value(right(job), 0, 1))?;
    let explanation = window.explain();
    assert!(!explanation.is_counted() && explanation.is_empty());
    assert!(explanation.to_string().contains("transom_explain"));
    assert_eq!(window.info().get("transom_explain"), Some("false"));
    window.free()
}
