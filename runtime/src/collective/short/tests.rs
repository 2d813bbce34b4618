use std::sync::Arc;

use super::super::raw;
use super::*;

/// Bytes of an element, and of a rank's three.
const WIDTH: usize = 16;
const BYTES: usize = 3 * WIDTH;

/// Concatenates the letters of each element: they tell in which order ranks were combined.
fn join(left: &[u8], right: &mut [u8]) {
    for (left, right) in left.chunks(WIDTH).zip(right.chunks_mut(WIDTH)) {
        let letters = |bytes: &[u8]| bytes.iter().position(|byte| *byte == 0).unwrap_or(WIDTH);
        let (a, b) = (letters(left), letters(right));
        let joined = [&left[..a], &right[..b], &[0; WIDTH]].concat();
        right.copy_from_slice(&joined[..WIDTH]);
    }
}

fn named(rank: usize) -> Vec<u8> {
    let mut data = vec![0; BYTES];
    data.iter_mut().step_by(WIDTH).for_each(|byte| *byte = b'a' + rank as u8);
    data
}

/// Each rank carries out its own form: its bit of `forms` says which.
fn round(job: &crate::Communicator, root: usize, forms: usize) -> Result<()> {
    let (rank, size) = (job.rank(), job.size());
    let is_short = forms >> rank & 1 == 0;
    let combine: raw::Combine = Arc::new(join);
    let all_named: Vec<u8> = (0..size).flat_map(named).collect();
    let joined = joined(size);

    let mut data = named(rank);
    let reduced = if is_short {
        reduce(job, root, &mut data, &join)?;
        (rank == root).then_some(data)
    } else {
        raw::reduce(job, root, data, combine.clone())?
    };
    assert_eq!(reduced, (rank == root).then(|| joined.clone()));

    let mut data = named(rank);
    if is_short {
        allreduce(job, &mut data, &join)?;
    } else {
        data = raw::allreduce(job, data, combine)?;
    }
    assert_eq!(data, joined);

    let mut all = vec![0; all_named.len()];
    if is_short {
        all[BYTES * rank..][..BYTES].copy_from_slice(&named(rank));
        allgather(job, &mut all)?;
    } else {
        all = raw::allgather(job, named(rank))?.concat();
    }
    assert_eq!(all, all_named);

    let gathered = if is_short {
        let mut all = vec![0; all_named.len()];
        gather(job, root, &named(rank), (rank == root).then_some(&mut all[..]))?;
        (rank == root).then_some(all)
    } else {
        raw::gather(job, root, named(rank))?.map(|all| all.concat())
    };
    assert_eq!(gathered, (rank == root).then(|| all_named.clone()));

    let mut own = vec![0; BYTES];
    if is_short {
        scatter(job, root, (rank == root).then_some(&all_named[..]), &mut own)?;
    } else {
        let blocks = (rank == root).then(|| (0..size).map(named).collect());
        own = raw::scatter(job, root, blocks)?;
    }
    assert_eq!(own, named(rank));
    prefixes(job, is_short)?;
    parts(job, is_short)?;
    barrier(&Exchange::new(job.channel(), Kind::Barrier))
}

/// Of ranks below `end`.
fn joined(end: usize) -> Vec<u8> {
    let mut joined = vec![0; BYTES];
    (0..end).for_each(|of| joined.chunks_mut(WIDTH).for_each(|chunk| chunk[of] = b'a' + of as u8));
    joined
}

fn prefixes(job: &crate::Communicator, is_short: bool) -> Result<()> {
    let (rank, combine) = (job.rank(), Arc::new(join) as raw::Combine);
    let mut data = named(rank);
    if is_short {
        scan(job, &mut data, &join)?;
    } else {
        data = raw::scan(job, data, combine.clone())?;
    }
    assert_eq!(data, joined(rank + 1));

    let mut before = vec![9; BYTES];
    if is_short {
        exscan(job, &mut named(rank), &mut before, &join)?;
    } else if let Some(lower) = raw::exscan(job, named(rank), combine)? {
        before = lower;
    }
    assert_eq!(before, if rank == 0 { vec![9; BYTES] } else { joined(rank) });
    Ok(())
}

/// Parts of different lengths, some of them empty.
fn parts(job: &crate::Communicator, is_short: bool) -> Result<()> {
    let (rank, size) = (job.rank(), job.size());
    let of = |rank: usize| vec![rank as u8; 5 * (rank % 3)];
    let all = if is_short {
        let mut all: Vec<_> = (0..size).map(|of| vec![9; 5 * (of % 3)]).collect();
        all[rank] = of(rank);
        allgather_parts(job, &mut all.iter_mut().map(|part| &mut part[..]).collect::<Vec<_>>())?;
        all
    } else {
        raw::allgather(job, of(rank))?
    };
    assert_eq!(all, (0..size).map(of).collect::<Vec<_>>());

    let lengths: Vec<usize> = (0..size).map(|of| WIDTH * (of % 4)).collect();
    let data = named(rank)[..WIDTH].repeat(lengths.iter().sum::<usize>() / WIDTH);
    let expected = joined(size)[..WIDTH].repeat(lengths[rank] / WIDTH);
    let mut result = vec![0; lengths[rank]];
    let mut rest = &data[..];
    let parts: Vec<_> = lengths.iter().map(|len| rest.split_off(..*len).unwrap()).collect();
    if is_short && size <= FEW_RANKS {
        reduce_scatter(job, &parts, &mut result, &join)?;
    } else if rank % 2 == 0 && size <= FEW_RANKS {
        let combine: raw::Combine = Arc::new(join);
        raw::reduce_scatter_into(job, &parts, Some(parts[rank]), &mut result, WIDTH, &combine)?;
    } else {
        result = raw::reduce_scatter(job, data, lengths, Arc::new(join))?;
    }
    assert_eq!(result, expected);
    Ok(())
}

#[test]
fn either_form_of_a_rank_goes_with_either_of_others() {
    for size in 1..=9 {
        let ended = crate::local(size, |job| {
            for forms in [0, usize::MAX, 0b0101_0101, 0b1011_0110, 0b0000_0001] {
                (0..size).try_for_each(|root| round(&job, root, forms))?;
            }
            Ok(())
        });
        ended.unwrap();
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let ended = crate::local(2, |job| {
        assert!(!fits(0, 2) && !fits(LONG_IN_PAGES, 2) && fits(8, 2) && !fits(8, TOGETHER));
        assert!(allgather(&job, &mut []).is_err());
        assert!(gather(&job, 0, &[1; 8], Some(&mut [0; 8])).is_err());
        assert!(gather(&job, 2, &[1; 8], None).is_err());
        assert!(scatter(&job, 0, Some(&[0; 24]), &mut [0; 8]).is_err());
        assert!(gather(&job, 0, &[], None).is_err() && scatter(&job, 0, None, &mut []).is_err());
        assert!(reduce(&job, 7, &mut [0; 8], &join).is_err());
        assert!(reduce(&job, 0, &mut vec![0; LONG_IN_PAGES], &join).is_err());
        assert!(allreduce(&job, &mut [], &join).is_err());
        assert!(scan(&job, &mut [], &join).is_err() && exscan(&job, &mut [], &mut [], &join).is_err());
        assert!(exscan(&job, &mut [0; 8], &mut [0; 16], &join).is_err());
        assert!(allgather_parts(&job, &mut [&mut [0; 8]]).is_err());
        assert!(allgather_parts(&job, &mut [&mut [], &mut vec![0; LONG_IN_PAGES]]).is_err());
        assert!(!parts_fit([16 << 10; 3].into_iter()) && !parts_fit([12 << 10; 3].into_iter()));
        assert!(reduce_scatter(&job, &[&[0; 8], &[0; 8]], &mut [0; 16], &join).is_err());
        assert!(reduce_scatter(&job, &[], &mut [], &join).is_err());
        job.barrier()
    });
    ended.unwrap();
}

#[test]
fn other_lengths_are_told() {
    let ended = crate::local(2, |job| {
        let (mut block, rank) = ([0; 16], job.rank());
        let own = 8 << rank;
        let told = reduce(&job, 0, &mut block[..own], &join);
        assert_eq!(told.is_err(), rank == 0);
        let told = allreduce(&job, &mut block[..own], &join);
        assert!(told.unwrap_err().to_string().contains("all must have as many"));
        let mut all = [0; 32];
        assert!(allgather(&job, &mut all[..2 * own]).is_err());
        let (first, second) = all[..2 * own].split_at_mut(own);
        assert!(allgather_parts(&job, &mut [first, second]).is_err());
        let told = scan(&job, &mut block[..own], &join);
        assert_eq!(told.is_err(), rank == 1);
        assert!(reduce_scatter(&job, &[&[0; 16][..own]; 2], &mut block[..own], &join).is_err());
        job.barrier()
    });
    ended.unwrap();
}
