//! What cannot be done is refused: with a line that says what and why, exit code 2, and nothing started.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod common;

use common::{fake_ssh, run, start, transom};

#[test]
fn bad_command_lines() {
    let dir = tempfile::tempdir().unwrap();
    let hostfile = dir.path().join("hosts");
    std::fs::write(&hostfile, "a\nb slots=many\n").unwrap();
    let hostfile = hostfile.to_str().unwrap();
    let mark = dir.path().join("started");
    let touch = mark.to_str().unwrap();
    let table: &[(&[&str], &str)] = &[
        (&["-n", "0"], "'0'"),
        (&["-n=-3"], "-3"),
        (&["-n", "four"], "'four'"),
        (&["-n", "1000001"], "1000001"),
        (&["-n", "99999999999999999999"], "99999999999999999999"),
        (&["--hosts", ""], "--hosts: no host"),
        (&["--hosts", "a,,b"], "has no host name"),
        (&["--hosts", "a:0"], "\"a:0\""),
        (&["--hosts", "a:x"], "\"a:x\""),
        (&["--hosts=-oProxyCommand=sh"], "is no host name"),
        (&["--hosts", "a b"], "is no host name"),
        (&["--hosts", "localhost:2", "-n", "3"], "3 ranks do not fit into the 2 slots"),
        (&["--hosts", "a", "--hostfile", hostfile], "cannot be used with"),
        (&["--hostfile", "/no/such/file"], "/no/such/file: No such file"),
        (&["--hostfile", "/"], "directory"),
        (&["--hostfile", hostfile], "line 2"),
        (&["--hostfile", "/dev/null"], "no host in it"),
        (&["--timeout", "0"], "must be more than 0"),
        (&["--timeout=-1"], "must be more than 0"),
        (&["--timeout", "NaN"], "must be more than 0"),
        (&["--timeout", "soon"], "not a number of seconds"),
        (&["--connect-timeout", "1e99"], "must be more than 0 and at most"),
        (&["--bind", "moon"], "'moon'"),
        (&["--map-by", "moon"], "'moon'"),
        (&["--map-by", "numa", "--bind", "none"], "--bind none that none is"),
        (&["-N", "0"], "'0'"),
        (&["-N", "3", "--hosts", "localhost:2"], "host localhost has 2 slots, and 3 ranks are asked for"),
        (&["-x", "=1"], "-x =1: no name"),
        (&["-x", "NO_SUCH_VARIABLE"], "-x NO_SUCH_VARIABLE=VALUE sets it"),
        (&["-x", "PMI_RANK=3"], "the launcher's own"),
        (&["--wdir", "/dev/null"], "working directory /dev/null"),
        (&["--stdin", "some"], "neither a rank, all, nor none"),
        (&["--stdin", "4", "-n", "4"], "--stdin 4: the job's ranks are 0 to 3"),
        (&["--output-dir", "/dev/null/x"], "--output-dir: /dev/null/x"),
        (&["--output-dir", "/tmp", "--tag"], "cannot be used with"),
        (&["--no-such-flag"], "--no-such-flag"),
        (&["--rsh", " ", "--hosts", "a"], "--rsh: no command"),
        (&["--rsh", "/no/such/command", "--hosts", "a"], "/no/such/command"),
    ];
    for (flags, words) in table {
        let ended = run(&[flags, &["touch", touch][..]].concat());
        assert_eq!(ended.code, 2, "{flags:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(words), "{flags:?}: {}", ended.stderr);
        assert!(ended.stdout.is_empty() && !mark.exists(), "{flags:?}");
    }
    let several: &[(&[&str], &str)] = &[
        (&["touch", touch, ":", "-n", "2", "true"], "give the first its number of ranks"),
        (&["-n", "1", "touch", touch, ":", "-n", "0", "true"], "no number of ranks"),
        (&["-n", "1", "touch", touch, ":", "-n"], "no number of ranks"),
        (&["-n", "1", "touch", touch, ":", "-n", "1"], "no program behind it"),
        (&["-n", "1", "touch", touch, ":", "-n", "1", "-x", "A=1", "true"], "before the first program"),
        (&["-n", "1000000", "touch", touch, ":", "-n1", "true"], "1000001 ranks"),
    ];
    for (args, words) in several {
        let ended = run(args);
        assert!(ended.code == 2 && ended.stderr.contains(words), "{args:?}: {}", ended.stderr);
        assert!(!mark.exists(), "{args:?}");
    }
    let missing = run(&["-n", "2"]);
    assert!(missing.code == 2 && missing.stderr.contains("PROGRAM"), "{}", missing.stderr);
}

#[test]
fn help_and_version_are_no_errors() {
    for args in [&["--help"][..], &["--version"], &["run", "--help"], &["help"]] {
        let out = common::output(std::process::Command::new(common::TRANSOM).args(args));
        assert!(out.status.success() && !out.stdout.is_empty() && out.stderr.is_empty(), "{args:?}");
    }
    let out = common::output(std::process::Command::new(common::TRANSOM).arg("info"));
    assert!(out.status.success() && String::from_utf8_lossy(&out.stdout).contains("processors"));
}

#[test]
fn closed_streams_are_no_reason_to_panic() {
    for (args, code) in
        [("run nothing-like-it", 127), ("run -n 0 true", 2), ("run sh -c 'exit 3'", 3), ("info", 0)]
    {
        for streams in ["2>&-", ">&- 2>&-", "2>/dev/full", "<&- >/dev/full 2>/dev/full"] {
            let script = format!("{} {args} {streams}", common::TRANSOM);
            let out = common::output(std::process::Command::new("sh").args(["-c", &script]));
            assert_eq!(out.status.code(), Some(code), "{script}");
        }
    }
}

#[test]
fn hosts_that_cannot_be_reached() {
    let dir = tempfile::tempdir().unwrap();
    let mark = dir.path().join("started");
    let touch = mark.to_str().unwrap();
    let table = [
        ("[ $1 = h1 ] && exec sh -c \"$2\"; echo no route >&2; exit 255", "exited with code 255"),
        ("[ $1 = h1 ] && exec sh -c \"$2\"; exit 0", "host h2: "),
        ("[ $1 = h1 ] && exec sh -c \"$2\"; exit 127", "is transom installed there"),
        ("[ $1 = h1 ] && exec sh -c \"$2\"; kill -9 $$", "SIGKILL"),
        ("[ $1 = h1 ] && exec sh -c \"$2\"; sleep 100", "did not answer within 0.5 s"),
        ("[ $1 = h1 ] && exec sh -c \"$2\"; exec yes", "no agent answers"),
        ("[ $1 = h1 ] && exec sh -c \"$2\"; printf '\\0transom-agent 1\\n'; exec yes", "host h2: "),
    ];
    for (script, words) in table {
        let ssh = fake_ssh(dir.path(), script);
        let flags =
            ["-n", "2", "--rsh", &ssh, "--hosts", "h1,h2", "--connect-timeout", "0.5", "touch", touch];
        let ended = start(&mut transom(&flags)).wait();
        assert_eq!(ended.code, 2, "{script}: {}", ended.stderr);
        assert!(ended.stderr.contains("h2") && ended.stderr.contains(words), "{script}: {}", ended.stderr);
        assert!(!mark.exists(), "{script}");
    }
}

#[test]
fn a_directory_that_the_other_host_does_not_have() {
    let dir = tempfile::tempdir().unwrap();
    let ssh = fake_ssh(dir.path(), "[ $1 = h1 ] || rmdir \"$GONE\"; exec sh -c \"$2\"");
    let gone = dir.path().join("gone");
    std::fs::create_dir(&gone).unwrap();
    let mut command = transom(&["-n", "2", "--rsh", &ssh, "--hosts", "h1,h2", "true"]);
    let ended = start(command.current_dir(&gone).env("GONE", &gone)).wait();
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(ended.stderr.contains("working directory") && ended.stderr.contains("/gone"), "{}", ended.stderr);
}
