//! `transom info` says what is there, what is not and how to get it, and never fails over what a host lacks.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod common;

use std::process::Command;

use common::{TRANSOM, fake_ssh, output};

/// A page of `transom info`, which must succeed.
fn info(change: impl FnOnce(&mut Command)) -> String {
    let mut command = Command::new(TRANSOM);
    command.arg("info").env_remove("TRANSOM_RSH").env("COLUMNS", "80");
    change(&mut command);
    let out = output(&mut command);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// The line that begins so, without blanks.
fn row(page: &str, name: &str) -> Vec<String> {
    let lines = page.lines().map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    let mut found = lines.filter(|words| words.first().is_some_and(|word| word == name));
    found.next().unwrap_or_else(|| panic!("no line {name}:\n{page}"))
}

#[test]
fn everything_of_this_host() {
    let page = info(|_| {});
    for words in
        ["processors", "memory files", "cross-memory attach", "RDMA devices", "libfabric", "TRANSOM_SPIN"]
    {
        assert!(page.contains(words), "{words}:\n{page}");
    }
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    // The name, ten types (eight for what is for integers only), two paths.
    for (operation, cells) in
        [("sum", 13), ("prod", 13), ("min", 13), ("bxor", 11), ("noop", 13), ("cswap", 11)]
    {
        assert_eq!(row(&page, operation).len(), cells, "{page}");
    }
    assert_eq!(row(&page, "replace")[11], "cpu");
}

#[test]
fn without_libfabric_it_says_how_to_get_it() {
    let page = info(|command| {
        command.env("TRANSOM_LIBFABRIC", "/nonexistent");
    });
    let text = page.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["/nonexistent: cannot open", "apt install libfabric1", "module load", "TCP of the kernel"] {
        assert!(text.contains(words), "{words}:\n{page}");
    }
    let sum = row(&page, "sum");
    assert_eq!(sum[1..11], ["-"; 10]);
    assert_eq!(sum[11..], ["cpu", "agent"]);
    let page = info(|command| {
        command.envs([("TRANSOM_LIBFABRIC", "/nonexistent"), ("TRANSOM_TRANSPORT", "shm,ofi")]);
    });
    assert_eq!(row(&page, "sum")[11..], ["cpu", "none"]);
}

#[test]
fn settings_with_their_values() {
    let page = info(|command| {
        command.envs([("TRANSOM_SPIN", "soon"), ("TRANSOM_DEADLINE", "7"), ("TRANSOM_TRANSPROT", "ofi")]);
    });
    assert!(
        page.contains("* TRANSOM_SPIN") && page.contains("soon <- INVALID: not a whole number"),
        "{page}"
    );
    assert!(page.contains("* TRANSOM_DEADLINE") && page.contains("7  (default: none)"), "{page}");
    assert!(page.contains("TRANSOM_TRANSPROT is set, and this version has no such setting"), "{page}");
    let page = info(|command| {
        command.env("TRANSOM_TRANSPORT", "ofi");
    });
    assert!(row(&page, "sum")[11] != "cpu", "{page}");
}

#[test]
fn a_provider_that_is_not_there() {
    let page = info(|command| {
        command.args(["--atomics", "nothing-like-it"]);
    });
    assert!(page.contains("Provider nothing-like-it: "), "{page}");
    assert_eq!(row(&page, "sum")[1..11], ["-"; 10]);
}

#[test]
fn other_hosts_one_after_the_other() {
    let dir = tempfile::tempdir().unwrap();
    // Like ssh, it brings nothing of this side's environment along, and its shell parses the line.
    let ssh = fake_ssh(dir.path(), "exec env -i PATH=\"$PATH\" NAME=$1 sh -c \"$2\"");
    let page = info(|command| {
        command.args(["--rsh", &ssh, "--hosts", "h1,h2"]).env("TRANSOM_LIBFABRIC", "/it's not; \"there\"");
    });
    let second = page.find("===== h2 =====").unwrap();
    assert!(page.find("===== h1 =====").unwrap() < second);
    for part in [&page[..second], &page[second..]] {
        assert!(part.contains("* TRANSOM_LIBFABRIC") && part.contains("/it's not; \"there\""), "{part}");
        assert_eq!(row(part, "sum").len(), 13);
    }
}

#[test]
fn a_host_that_cannot_be_asked() {
    let dir = tempfile::tempdir().unwrap();
    let ssh = fake_ssh(dir.path(), "[ $1 = h1 ] && { echo no route >&2; exit 255; }; exec sh -c \"$2\"");
    let mut command = Command::new(TRANSOM);
    let out = output(command.args(["info", "--rsh", &ssh, "--hosts", "h1,h2"]));
    assert_eq!(out.status.code(), Some(1));
    let (stdout, stderr) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(stderr.contains("no route") && stderr.contains("host h1: "), "{stderr}");
    assert_eq!(row(&stdout, "sum").len(), 13);
    for (flags, words) in [(["--hosts", ""], "no host"), (["--hostfile", "/no/such"], "/no/such")] {
        let out = output(Command::new(TRANSOM).arg("info").args(flags));
        assert_eq!(out.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&out.stderr).contains(words));
    }
}
