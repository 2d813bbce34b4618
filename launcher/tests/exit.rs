//! How a job ends: the exit code, the one line that says why, and nothing left behind.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod common;

use std::time::{Duration, Instant};

use common::{run, run_sh, start, transom};
use nix::sys::signal::Signal;

#[test]
fn all_well_is_silent() {
    let ended = run(&["-n", "4", "true"]);
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (0, "", ""));
}

#[test]
fn the_first_failure_is_reported() {
    let table = [
        ("exit 3", 3, "exited with code 3;"),
        ("exit 255", 255, "exited with code 255;"),
        ("kill -KILL $$", 137, "was killed by signal 9 (SIGKILL);"),
        ("kill -TERM $$", 143, "was killed by signal 15 (SIGTERM);"),
        ("ulimit -c 0; kill -SEGV $$", 139, "was killed by signal 11 (SIGSEGV);"),
        ("kill -40 $$", 168, "was killed by signal 40;"),
    ];
    for (end, code, words) in table {
        let ended = run_sh(4, &[], &format!("[ $PMI_RANK != 2 ] || {{ {end}; }}; sleep 100"));
        assert_eq!(ended.code, code, "{end}: {}", ended.stderr);
        let line = ended.stderr.trim_end();
        assert!(line.starts_with("transom: rank 2 (pid ") && !line.contains('\n'), "{line}");
        assert!(line.contains(words) && line.ends_with("; the other 3 ranks were ended"), "{line}");
    }
}

#[test]
fn a_failure_after_others_ended_well() {
    let ended = run_sh(3, &[], "[ $PMI_RANK != 2 ] || { sleep 0.3; exit 9; }");
    assert!(ended.code == 9 && ended.stderr.trim_end().ends_with("exited with code 9"), "{}", ended.stderr);
}

/// A program refuses its arguments at all ranks; the one that says so is not always the first to end.
#[test]
fn ranks_that_fail_together_are_all_heard() {
    let dir = tempfile::tempdir().unwrap();
    let begun = dir.path().join("begun");
    let begun = begun.to_str().unwrap();
    // A while of nothing but the shell itself: processes take long to start on a busy machine.
    let second = format!(
        "until [ -e {begun} ]; do :; done; i=0; until [ $i = 5000 ]; do i=$((i + 1)); done; echo usage; exit 1"
    );
    let ended = run_sh(2, &[], &format!("[ $PMI_RANK = 1 ] || {{ {second}; }}; : >{begun}; exit 1"));
    assert_eq!((ended.code, ended.stdout.as_str()), (1, "usage\n"), "{}", ended.stderr);
    assert!(ended.stderr.trim_end().ends_with("exited with code 1"), "{}", ended.stderr);
}

#[test]
fn ranks_may_clean_up_but_not_stay() {
    let begin = Instant::now();
    let ended = run_sh(
        2,
        &[],
        "[ $PMI_RANK = 0 ] && { sleep 0.2; exit 1; }; trap 'echo bye' TERM; while :; do sleep 0.05; done",
    );
    assert_eq!((ended.code, ended.stdout.contains("bye")), (1, true), "{}", ended.stderr);
    assert!(begin.elapsed() < Duration::from_secs(25));
}

#[test]
fn programs_that_cannot_run() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str, mode| {
        let path = dir.path().join(name);
        common::executable(&path, text);
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let plain = file("plain", "text", 0o644);
    let lost = file("lost", "#!/no/such/interpreter\n", 0o755);
    let table =
        [("no-such-program", 127), ("./no-such-program", 127), ("/", 126), (&plain, 126), (&lost, 127)];
    for (program, code) in table {
        let ended = run(&["-n", "3", program]);
        assert_eq!(ended.code, code, "{program}: {}", ended.stderr);
        assert!(ended.stderr.contains(program.trim_start_matches("./")), "{program}: {}", ended.stderr);
    }
}

#[test]
fn time_limit() {
    let begin = Instant::now();
    let ended = run_sh(3, &["--timeout", "2.5"], "[ $PMI_RANK = 1 ] || sleep 100");
    assert_eq!(ended.code, 124);
    assert!(ended.stderr.contains("after 2.5 s") && ended.stderr.contains("ranks 0, 2"), "{}", ended.stderr);
    assert!(begin.elapsed() < Duration::from_secs(25), "{:?}", begin.elapsed());
    assert_eq!(run(&["--timeout", "20", "true"]).code, 0);
}

#[test]
fn signals_reach_the_ranks() {
    for (signal, name) in [(Signal::SIGUSR1, "USR1"), (Signal::SIGUSR2, "USR2"), (Signal::SIGHUP, "HUP")] {
        let script = format!("trap 'echo got; exit 0' {name}; echo ready; while :; do sleep 0.02; done");
        let job = start(&mut transom(&["-n", "2", "sh", "-c", &script]));
        job.wait_for(2, "sleep 0.02");
        job.signal(signal);
        let ended = job.wait();
        assert_eq!((ended.code, ended.stdout.matches("got").count()), (0, 2), "{name}: {}", ended.stderr);
    }
}

#[test]
fn interrupt_ends_the_job() {
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let job = start(&mut transom(&["-n", "3", "sleep", "100"]));
        job.wait_for(3, "sleep 100");
        let begin = Instant::now();
        job.signal(signal);
        let ended = job.wait();
        assert_eq!(ended.code, code, "{}", ended.stderr);
        assert!(ended.stderr.contains(&format!("({signal})")), "{}", ended.stderr);
        assert!(begin.elapsed() < Duration::from_secs(25), "{:?}", begin.elapsed());
    }
}

#[test]
fn those_who_ignore_an_interrupt_are_killed() {
    // A trap, not an ignored signal, so that it shows when it has come: of two that are pending at once one is lost.
    let dir = tempfile::tempdir().unwrap();
    let stubborn = format!("trap ': >{}/$PMI_RANK' INT; while :; do sleep 0.02; done", dir.path().display());
    for (times, least, most) in [(1, 1900, 10_000), (2, 0, 1900)] {
        let job = start(&mut transom(&["-n", "2", "sh", "-c", &stubborn]));
        job.wait_for(2, "sleep 0.02");
        let mut begin = Instant::now();
        job.signal(Signal::SIGINT);
        if times == 2 {
            while !(0..2).all(|rank| dir.path().join(rank.to_string()).exists()) {
                assert!(begin.elapsed() < Duration::from_secs(20), "no interrupt came");
                std::thread::sleep(Duration::from_millis(1));
            }
            begin = Instant::now();
            job.signal(Signal::SIGINT);
        }
        assert_eq!(job.wait().code, 130);
        let took = begin.elapsed().as_millis();
        assert!((least..most).contains(&took), "{times} interrupts: {took} ms");
        (0..2).for_each(|rank| std::fs::remove_file(dir.path().join(rank.to_string())).unwrap());
    }
}

#[test]
fn background_jobs_of_a_shell_keep_ignoring_interrupts() {
    let script = format!("{} run -n 1 sleep 0.5 & p=$!; sleep 0.2; kill -INT $p; wait $p", common::TRANSOM);
    let out = common::output(std::process::Command::new("sh").args(["-c", &script]));
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
}
