use std::time::Duration;

use transom::waits::Held;

use super::*;
use crate::hang::stacks::{Place, Sight, Unseen};
use crate::hang::{Load, Report, Summary, print};

fn rank(rank: u32) -> RankView {
    RankView {
        rank,
        host: String::new(),
        pid: 1000 + rank as i32,
        state: State::Sleeps,
        sleeps_in: None,
        joined: true,
        answered: true,
        left: false,
        joining: false,
        held: Vec::new(),
        waits: Vec::new(),
        places: Vec::new(),
        load: Load::default(),
    }
}

fn waits(number: u32, subject: Subject, on: &[u32]) -> RankView {
    let (call, what) = ("call".to_owned(), "something".to_owned());
    let wait = Wait { thread: 1, call, what, since_ms: 0, on: on.to_vec(), subject };
    RankView { waits: vec![(wait, Duration::from_secs(1))], ..rank(number) }
}

fn lock(owner: u32, exclusive: bool, ticket: Option<u32>) -> Subject {
    Subject::Lock { owner, window: 7, exclusive, ticket }
}

fn holding(view: RankView, owner: u32, exclusive: bool) -> RankView {
    RankView { held: vec![Held { owner, window: 7, exclusive }], ..view }
}

fn blamed(ranks: &[RankView]) -> Vec<Vec<u32>> {
    find(ranks).verdicts.into_iter().map(|verdict| verdict.ranks).collect()
}

#[test]
fn a_cycle_is_found_once_from_wherever_it_is_entered() {
    // 0 and 1 wait for a cycle of 2, 3 and 4.
    let on = [&[1][..], &[3], &[3], &[4], &[2]];
    let ranks: Vec<_> = on.iter().zip(0..).map(|(on, rank)| waits(rank, Subject::Receive, on)).collect();
    assert_eq!(blamed(&ranks), [[2, 3, 4]]);
    let one = [waits(0, Subject::Receive, &[0])];
    assert_eq!(blamed(&one), [[0]], "a rank that waits for itself waits for nobody that could end it");
}

#[test]
fn a_path_ends_at_who_does_not_wait() {
    let ranks = [waits(0, Subject::Receive, &[1]), waits(1, Subject::Send, &[2]), rank(2), rank(3)];
    let finding = find(&ranks);
    assert_eq!(finding.verdicts.len(), 1);
    let verdict = &finding.verdicts[0];
    assert!(
        verdict.ranks == [2] && verdict.text.starts_with("rank 2 does not receive what rank 1 sends"),
        "{verdict:?}"
    );
    let stopped = RankView { state: State::Stopped, ..waits(2, Subject::Receive, &[0]) };
    let ranks = [ranks[0].clone(), ranks[1].clone(), stopped];
    let verdict = &find(&ranks).verdicts[0];
    assert!(
        verdict.ranks == [2] && verdict.text.contains("is stopped (process 1002)"),
        "no cycle: {verdict:?}"
    );
}

#[test]
fn locks_are_held_by_those_who_exclude() {
    // Readers do not keep a reader waiting.
    let reader = waits(0, lock(5, false, None), &[]);
    let ranks =
        [reader.clone(), holding(rank(1), 5, false), holding(rank(2), 5, true), holding(rank(3), 4, true)];
    assert_eq!(blamed(&ranks), [[2]]);
    let writer = waits(0, lock(5, true, None), &[]);
    assert_eq!(
        find(&[writer, ranks[1].clone(), ranks[2].clone()]).on[&0],
        BTreeMap::from([(1, Why::Holds), (2, Why::Holds)])
    );
    // A reader behind a writer that waits for readers.
    let ahead = holding(waits(1, lock(5, true, Some(u32::MAX)), &[]), 9, true);
    let ranks = [waits(0, lock(5, false, Some(1)), &[]), ahead, holding(rank(2), 5, false)];
    assert_eq!(
        find(&ranks).on,
        BTreeMap::from([(0, BTreeMap::from([(1, Why::Ahead)])), (1, BTreeMap::from([(2, Why::Holds)]))])
    );
    assert_eq!(blamed(&ranks), [[2]]);
    // Who cannot answer may hold it.
    let silent = RankView { answered: false, state: State::Stopped, ..rank(3) };
    let asked = find(&[waits(0, lock(3, true, None), &[]), rank(1), silent.clone()]);
    assert_eq!(asked.on[&0], BTreeMap::from([(3, Why::Grants)]));
    let finding = find(&[reader, rank(1), silent]);
    assert!(
        finding.verdicts[0].ranks == [3] && finding.verdicts[0].text.ends_with("it seems"),
        "{finding:?}"
    );
}

#[test]
fn who_is_missing_from_a_collective() {
    let inside = Subject::Collective { context: 3, sequence: 9 };
    let other = Subject::Collective { context: 4, sequence: 9 };
    let ranks = [waits(0, inside, &[1]), waits(1, inside, &[2, 3]), waits(2, inside, &[3]), rank(3)];
    let finding = find(&ranks);
    assert_eq!(finding.absent, BTreeMap::from([((3, 9), BTreeSet::from([3]))]));
    assert_eq!(finding.verdicts.len(), 1);
    assert!(finding.verdicts[0].text.starts_with("rank 3 is missing from call, where ranks 0-2 wait"));
    let finding = find(&[waits(0, inside, &[1]), waits(1, other, &[0])]);
    assert!(
        finding.verdicts[0].text.starts_with("ranks 0 and 1 are in different collectives"),
        "{finding:?}"
    );
    let finding = find(&[waits(0, inside, &[1]), waits(1, inside, &[0])]);
    let text = &finding.verdicts[0].text;
    assert!(text.starts_with("ranks 0 and 1 are in the same collective"), "{finding:?}");
}

#[test]
fn ranks_that_join_wait_for_those_who_do_not() {
    let joining = |number| RankView { joining: true, ..rank(number) };
    let ranks = [joining(0), joining(1), RankView { joined: false, ..rank(2) }];
    let finding = find(&ranks);
    assert!(finding.verdicts[0].text.starts_with("rank 2 has not called init, for which ranks 0 and 1 wait"));
    // One of which nothing was heard, and nobody.
    assert_eq!(blamed(&[waits(0, Subject::Receive, &[8])]), [[8]]);
    assert!(blamed(&[rank(0), rank(1)]).is_empty() && blamed(&[]).is_empty());
    let open = find(&[waits(0, Subject::Receive, &[])]);
    assert!(open.verdicts[0].text.contains("no rank is known"), "{open:?}");
}

#[test]
fn many_ranks_are_worked_out_in_time() {
    // A fence of 2000 ranks, each of which waits for two, and one is missing.
    let inside = Subject::Collective { context: 1, sequence: 1 };
    let ranks: Vec<_> = (0..2000)
        .map(|r| if r == 77 { rank(77) } else { waits(r, inside, &[(r + 1) % 2000, (r + 1024) % 2000]) })
        .collect();
    let finding = find(&ranks);
    assert_eq!(finding.absent[&(1, 1)], BTreeSet::from([77]));
    assert_eq!(finding.verdicts.last().map(|verdict| verdict.ranks.clone()), Some(vec![77]));
}

#[test]
fn why_a_line_is_not_known_is_said() {
    let place = Place { function: "f".into(), file: "/x/y.c".into(), line: Some(7) };
    let sights = [Ok(place), Err(Unseen::Runs), Err(Unseen::Forbidden), Err(Unseen::Forbidden)];
    let view = |(place, rank): (_, u32)| {
        let places = vec![Sight { thread: 1, place }];
        RankView { places, ..waits(rank, Subject::Receive, &[(rank + 1) % 4]) }
    };
    let ranks: Vec<_> = sights.into_iter().zip(0..).map(view).collect();
    let (finding, hosts) = (find(&ranks), vec!["a".to_owned()]);
    let summary = Summary { job: 1, ranks: 4, hosts, program: "p".into(), age: Duration::ZERO };
    let text = print::report(&Report { summary, ranks, silent: Vec::new() }, &finding);
    for line in [
        "0     sleeps   1.0 s  call: something, in f at y.c:7",
        "1     sleeps   1.0 s  call: something (no line: it is running)",
        "2-3   sleeps   1.0 s  call: something",
        "no lines of ranks 2 and 3: the kernel forbids reading their stacks",
    ] {
        assert!(text.lines().any(|found| found.trim() == line), "{line:?} is not in\n{text}");
    }
}
