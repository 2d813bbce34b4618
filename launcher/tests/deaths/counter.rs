//! The program of the ranks: a counter that goes on without those that die.

use std::path::Path;
use std::time::{Duration, Instant};

use transom::{Communicator, LockKind, Result, Sum, Window};

use super::{JOINED, RANKS, ROLE, random};

/// Value of the role with which an error that is not of a death ends a rank: what it has done of its call nobody knows.
pub const STRICT: &str = "strict";
/// Rounds go on for that long.
const BUSY: Duration = Duration::from_millis(500);
const UPDATES: usize = 40;
/// Behind the counts, what is added to in one piece: who does that holds locks of parts of the window.
static BLOCK: [u64; 1 << 13] = [1; 1 << 13];

fn is_strict() -> bool {
    std::env::var(ROLE).is_ok_and(|role| role == STRICT)
}

/// Calls `body`, which is collective, until it went well at all members that live. Of members that died `living` is without.
fn together<T>(living: &mut Communicator, mut body: impl FnMut(&Communicator) -> Result<T>) -> Result<T> {
    loop {
        let result = body(living);
        if let Err(error) = &result
            && error.dead().is_none()
        {
            eprintln!("not of a death: {error}");
            if is_strict() {
                return result;
            }
        }
        let agreed = living.agree(u64::from(result.is_ok()))?;
        if !agreed.failed.is_empty() {
            *living = living.shrink()?;
        }
        if let Ok(value) = result
            && agreed.flags & 1 == 1
        {
            return Ok(value);
        }
    }
}

/// Counts at random members, in a word for each rank of the job: by atomics, and by get and put under the exclusive lock. Gives what
/// was completed at each member.
fn update(window: &Window<u64>, rank: usize, members: usize) -> Result<Vec<u64>> {
    let mut done = vec![0; members];
    for update in 0..UPDATES {
        let target = random(members as u64) as usize;
        let result = if update % 8 == 7 {
            // Whose sums nobody asks for: of who dies in it a part is there.
            window.lock(LockKind::Shared, target, |epoch| epoch.accumulate(target, RANKS, Sum, &BLOCK))
        } else if update % 2 == 0 {
            window.lock(LockKind::Shared, target, |epoch| epoch.fetch_add(target, rank, 1).map(drop))
        } else {
            window.lock(LockKind::Exclusive, target, |epoch| {
                let count = epoch.get_value(target, rank)?;
                epoch.put_value(target, rank, count + 1)
            })
        };
        match result {
            Ok(()) if update % 8 == 7 => {}
            Ok(()) => done[target] += 1,
            Err(error) if is_strict() && error.dead().is_none() => return Err(error),
            // Only a dead target excuses an error; what it has is lost with it.
            Err(error) => assert_eq!(error.class(), transom::Class::Peer, "{error}"),
        }
    }
    Ok(done)
}

/// A round; gives how many updates of survivors were found.
fn round(living: &mut Communicator, rank: usize) -> Result<u64> {
    let window = together(living, |living| living.allocate::<u64>(RANKS + BLOCK.len()))?;
    // Of one that died since it was made a window has the place still.
    let places: Vec<usize> = (0..RANKS).filter_map(|rank| window.rank_of(rank)).collect();
    let here = window.rank_of(rank).unwrap();
    let mut own = vec![rank as u64];
    own.extend(update(&window, rank, places.len())?);
    // Everybody's updates are complete when all that live have agreed.
    let rows = together(living, |living| living.allgather(&own))?;
    let mut found = 0;
    for row in rows {
        let (origin, done) = (row[0] as usize, row[1 + here]);
        let word = window.lock(LockKind::Shared, here, |epoch| epoch.get_value(here, origin))?;
        assert_eq!(word, done, "what rank {origin} has counted at rank {rank}");
        found += word;
    }
    Ok(found)
}

fn count(job: &transom::Job) -> Result<()> {
    let rank = job.rank();
    let mut living = job.dup()?;
    let joined = std::env::var(JOINED).unwrap();
    let begin = Instant::now();
    std::fs::write(Path::new(&joined).join(format!("{rank}.new")), std::process::id().to_string()).unwrap();
    std::fs::rename(
        Path::new(&joined).join(format!("{rank}.new")),
        Path::new(&joined).join(rank.to_string()),
    )
    .unwrap();
    let (mut rounds, mut found) = (0, 0);
    loop {
        found += round(&mut living, rank)?;
        rounds += 1;
        let enough = u64::from(begin.elapsed() < BUSY);
        let go_on = together(&mut living, |living| living.allreduce(transom::Max, &[enough]))?;
        if go_on == [0] {
            break;
        }
    }
    println!("COUNTED {found} in {rounds} rounds");
    Ok(())
}

/// What a rank does from start to end.
pub fn main() {
    let job = transom::init().unwrap_or_else(|error| {
        eprintln!("not joined: {error}");
        std::process::exit(3);
    });
    let rank = job.rank();
    let fail = |error| {
        eprintln!("rank {rank}: {error}");
        std::process::exit(3);
    };
    // The others may wait for this rank, and not come to the end of the job, where it would wait for them.
    count(&job).unwrap_or_else(fail);
    job.finalize().unwrap_or_else(fail);
    println!("SURVIVED {rank}");
}
