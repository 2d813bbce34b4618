//! Fences with every set of assertions.

use transom::{Assert, Class, Job, Result, Window};

use super::class;
use super::each::each;

const STORE_PUT: [Assert; 2] = [Assert::NOSTORE, Assert::NOPUT];

/// Every set of assertions made of `some`.
fn subsets(some: &[Assert]) -> Vec<Assert> {
    let pick = |bits: usize| {
        let picked = some.iter().enumerate().filter(|(i, _)| bits & (1 << i) != 0);
        picked.fold(Assert::NONE, |set, (_, assert)| set | *assert)
    };
    (0..1 << some.len()).map(pick).collect()
}

/// Calls with each of the sixteen sets, before and after which the program does what the set allows.
pub fn as_calls(job: &Job) -> Result<()> {
    let all = [Assert::NOSTORE, Assert::NOPUT, Assert::NOPRECEDE, Assert::NOSUCCEED];
    each(job, 3, |window| {
        for (value, assert) in (1..).zip(subsets(&all)) {
            one_fence(job, window, assert, value)?;
            job.barrier()?;
        }
        Ok(())
    })
}

fn one_fence(job: &Job, window: &Window<u64>, assert: Assert, value: u64) -> Result<()> {
    let (precede, succeed) = (!assert.has(Assert::NOPRECEDE), !assert.has(Assert::NOSUCCEED));
    let right = (job.rank() + 1) % job.size();
    let rma = window.explicit();
    if precede {
        rma.fence(Assert::NOPRECEDE)?;
        rma.put(right, 0, &[value])?;
    } else if !assert.has(Assert::NOSTORE) {
        window.local().set(1, value)?;
    }
    rma.fence(assert)?;
    if precede {
        assert_eq!(window.local().get(0)?, value, "{assert}");
    }
    if !succeed {
        assert_eq!(class(rma.put(right, 0, &[value])), Class::RmaSync);
        return Ok(());
    }
    let mut got = [0; 2];
    rma.get(right, 1, &mut got[1..])?;
    if !assert.has(Assert::NOPUT) {
        // Elsewhere: the owner may be loading what was put before.
        rma.put(right, 2, &[value])?;
    }
    rma.fence(Assert::NOSUCCEED)?;
    if !precede && !assert.has(Assert::NOSTORE) {
        assert_eq!(got[1], value, "{assert}");
    }
    if !assert.has(Assert::NOPUT) {
        assert_eq!(window.local().get(2)?, value, "{assert}");
    }
    Ok(())
}

/// Scopes with each set for the fence before them, and each for the one after them.
pub fn as_scopes(job: &Job) -> Result<()> {
    let befores = subsets(&[STORE_PUT.as_slice(), &[Assert::NOPRECEDE]].concat());
    let afters = subsets(&[STORE_PUT.as_slice(), &[Assert::NOSUCCEED]].concat());
    let right = (job.rank() + 1) % job.size();
    each(job, 1, |window| {
        let mut value = 0;
        for before in &befores {
            for after in &afters {
                let put = !before.has(Assert::NOPUT);
                value += u64::from(put);
                window.fence_with(*before, *after, |epoch| {
                    if put { epoch.put_value(right, 0, value) } else { epoch.get_value(right, 0).map(drop) }
                })?;
                assert_eq!(window.local().get(0)?, value, "{before}, {after}");
                job.barrier()?;
            }
        }
        Ok(())
    })
}

/// Assertions that a call does not know, or that do not hold, are errors; the epochs stay as they were.
pub fn wrong_assertions(job: &Job) -> Result<()> {
    let me = job.rank();
    let five = [Assert::NOCHECK, Assert::NOSTORE, Assert::NOPUT, Assert::NOPRECEDE, Assert::NOSUCCEED];
    each(job, 1, |window| {
        let rma = window.explicit();
        rma.fence(Assert::NOPRECEDE)?;
        for assert in five {
            let refused = |known: &[Assert], call: Result<()>| {
                let error = call.unwrap_err();
                assert!(!known.contains(&assert) && error.class() == Class::Assert, "{error}");
                assert!(error.message().contains(&assert.to_string()), "{error}");
            };
            if assert == Assert::NOCHECK {
                refused(&[], rma.fence(assert | Assert::NOSTORE));
                refused(&[], window.fence_with(assert, Assert::NONE, |_| Ok(())));
                refused(&[], window.fence_with(Assert::NONE, assert, |_| Ok(())));
                continue;
            }
            refused(&[], rma.start(&[me], assert));
            refused(&[], rma.lock(transom::LockKind::Shared, me, assert));
            refused(&[], rma.lock_all(assert));
            if !STORE_PUT.contains(&assert) {
                refused(&[], rma.post(&[me], assert));
            }
            rma.put(me, 0, &[1])?;
        }
        assert_eq!(class(rma.fence(Assert::NOPRECEDE)), Class::Assert, "operations precede");
        rma.fence(Assert::NOSUCCEED)?;
        let scope = |before, after| class(window.fence_with(before, after, |_| Ok(())));
        assert_eq!(scope(Assert::NOSUCCEED, Assert::NONE), Class::Assert);
        assert_eq!(scope(Assert::NONE, Assert::NOPRECEDE), Class::Assert);
        window.fence(|epoch| epoch.put_value(me, 0, 2))?;
        assert_eq!(window.local().get(0)?, 2);
        Ok(())
    })
}

/// NOPRECEDE and NOSUCCEED are for all ranks or for none: two that differ are told.
pub fn assertions_that_differ(job: &Job) -> Result<()> {
    for assert in [Assert::NOPRECEDE, Assert::NOSUCCEED] {
        let window = job.allocate::<u64>(1)?;
        let rma = window.explicit();
        let own = if job.rank() == 0 { assert } else { Assert::NONE };
        let fenced = rma.fence(own);
        let error = fenced.unwrap_err();
        assert_eq!(error.class(), Class::Collective, "{error}");
        assert!(error.message().contains("fence with NO"), "{error}");
        drop(rma);
        drop(window);
        job.barrier()?;
    }
    Ok(())
}

/// A rank that frees the window while another fences: both are told.
pub fn a_free_meets_a_fence(job: &Job) -> Result<()> {
    let window = job.allocate::<u64>(1)?;
    window.explicit().fence(Assert::NOSUCCEED)?;
    let met = if job.rank() == 0 {
        let fenced = window.explicit().fence(Assert::NONE);
        drop(window);
        fenced
    } else {
        window.free()
    };
    let error = met.unwrap_err();
    assert_eq!(error.class(), Class::Collective, "{error}");
    let other = if job.rank() == 0 { "is in free" } else { "is in fence" };
    assert!(error.message().contains(other), "{error}");
    job.barrier()
}

/// A window whose ranks have not agreed to free it leaves no signals to the next.
pub fn windows_that_are_dropped(job: &Job) -> Result<()> {
    let (rank, right) = (job.rank(), (job.rank() + 1) % job.size());
    for round in 1..=4 {
        let window = job.allocate::<u64>(1)?;
        let rma = window.explicit();
        for value in 1..=round {
            rma.fence(Assert::NONE)?;
            rma.put(right, 0, &[value])?;
            rma.fence(Assert::NOSUCCEED)?;
            assert_eq!(window.local().get(0)?, value);
            // One complete more than is waited for, where there are others.
            rma.post(&[rank], Assert::NONE)?;
            rma.start(&[rank, right][..1 + usize::from(right > rank)], Assert::NONE)?;
            rma.complete()?;
            rma.wait()?;
        }
        drop(rma);
        drop(window);
        job.barrier()?;
    }
    Ok(())
}
