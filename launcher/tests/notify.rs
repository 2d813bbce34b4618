//! `--on-failure notify`: the launcher's part. What ranks make of it is tried in `survivors`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;

use common::{run, run_sh};

const NOTIFY: &[&str] = &["--on-failure", "notify"];

#[test]
fn a_rank_that_is_killed_does_not_end_the_others() {
    let script = "[ $PMI_RANK = 1 ] && kill -9 $$; sleep 0.7; echo done $TRANSOM_ON_FAILURE";
    let ended = run_sh(3, NOTIFY, script);
    assert_eq!((ended.code, ended.stdout.as_str()), (137, "done notify\ndone notify\n"));
    let (start, end) = (
        "transom: rank 1 (pid ",
        "was killed by signal 9 (SIGKILL); the other 2 ranks went on (--on-failure notify)\n",
    );
    assert!(ended.stderr.starts_with(start) && ended.stderr.ends_with(end), "{}", ended.stderr);
}

#[test]
fn all_that_die_are_named() {
    let ended = run_sh(2, NOTIFY, "sleep 0.$PMI_RANK; kill -15 $$");
    assert_eq!(ended.code, 143);
    let named =
        ["rank 0 (pid ", "; rank 1 (pid ", "signal 15 (SIGTERM); none was left (--on-failure notify)"];
    assert!(named.iter().all(|text| ended.stderr.contains(text)), "{}", ended.stderr);
}

#[test]
fn who_owes_nothing_and_fails_ends_nobody_either() {
    let ended = run_sh(2, NOTIFY, "[ $PMI_RANK = 1 ] && exit 3; sleep 1; echo done");
    assert_eq!((ended.code, ended.stdout.as_str()), (3, "done\n"));
    assert!(ended.stderr.contains("exited with code 3"), "{}", ended.stderr);
}

#[test]
fn without_it_the_others_end() {
    let ended = run_sh(2, &[], "[ $PMI_RANK = 1 ] && kill -9 $$; sleep 20; echo done");
    assert_eq!((ended.code, ended.stdout.as_str()), (137, ""));
    let ended = run_sh(1, &[], "echo set=$TRANSOM_ON_FAILURE");
    assert_eq!(ended.stdout, "set=\n");
}

#[test]
fn other_words_are_refused() {
    let ended = run(&["--on-failure", "ignore", "true"]);
    assert!(ended.code == 2 && ended.stderr.contains("possible values: end, notify"), "{}", ended.stderr);
}
