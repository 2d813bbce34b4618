//! Settings from files: which counts, who gets it, and what is said of wrong ones.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod common;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use common::{TRANSOM, fake_ssh, output, start, transom};

/// A user's file and the system's.
struct Files {
    dir: tempfile::TempDir,
}

impl Files {
    fn new(user: &str, system: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("transom.toml"), user).unwrap();
        std::fs::write(dir.path().join("system.toml"), system).unwrap();
        Self { dir }
    }

    fn user(&self) -> PathBuf {
        self.dir.path().join("transom.toml")
    }

    fn system(&self) -> PathBuf {
        self.dir.path().join("system.toml")
    }

    /// Has a command read them, and no setting of this test's own environment.
    fn given<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TRANSOM_")) {
            command.env_remove(name);
        }
        command
            .env("XDG_CONFIG_HOME", self.dir.path())
            .env("TRANSOM_CONFIG", self.system())
            .env("COLUMNS", "80")
    }

    fn config(&self, args: &[&str], variables: &[(&str, &str)]) -> Output {
        let mut command = Command::new(TRANSOM);
        self.given(command.arg("config").args(args)).envs(variables.iter().copied());
        output(&mut command)
    }
}

/// What was printed, on one line.
fn words(out: &[u8]) -> String {
    String::from_utf8_lossy(out).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn what_counts_and_where_it_comes_from() {
    let files =
        Files::new("spin = 7\ntcp_silence = 20\n", "\ntcp_silence = 30\nheap = 4096\ntcp_connect = 3\n");
    let out = files.config(&[], &[("TRANSOM_SPIN", "9"), ("TRANSOM_SPUN", "9")]);
    assert_eq!((out.status.code(), out.stderr.len()), (Some(0), 0));
    let page = String::from_utf8(out.stdout).unwrap();
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    let text = words(page.as_bytes());
    // A path may be broken where the line ends.
    let dense: String = page.split_whitespace().collect();
    for (name, value, place) in [
        ("TRANSOM_SPIN", "9", "environment".to_owned()),
        ("TRANSOM_TCP_SILENCE", "20", format!("{}line2", files.user().display())),
        ("TRANSOM_HEAP", "4096", format!("{}line3", files.system().display())),
    ] {
        assert!(dense.contains(&format!("*{name}{value}({place};default:")), "{name}: {page}");
    }
    for part in [
        "TRANSOM_DEADLINE none (default) [seconds, 0 or more] a blocked call gives up",
        "[number, 0 to 4294967295] hosts that are reached from one",
        "TRANSOM_SPUN is set, and this version has no such setting: misspelt?",
        "transom.toml 2 settings",
    ] {
        assert!(text.contains(part), "{part}: {page}");
    }
    let none = files.config(&[], &[("TRANSOM_CONFIG", "none")]);
    let text = words(&none.stdout);
    assert!(text.contains("none is read") && text.contains("TRANSOM_HEAP the host's memory"), "{text}");
    let wrong = files.config(&[], &[("TRANSOM_SPIN", "soon")]);
    assert_eq!(wrong.status.code(), Some(1));
    assert!(words(&wrong.stdout).contains("soon <- INVALID: not a whole number"));
}

#[test]
fn all_of_one_setting() {
    let files = Files::new("tcp_silence = 20\n", "tcp_silence = 30\n");
    for name in ["tcp_silence", "TRANSOM_TCP_SILENCE"] {
        let out = files.config(&["--explain", name], &[]);
        let (text, code) = (words(&out.stdout), out.status.code());
        assert_eq!(code, Some(0));
        for part in ["seconds, 1 or more", "20 (line 1) <- counts", "30 (line 1) default 10", "environment -"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(text.matches("<- counts").count(), 1, "{text}");
    }
    let unknown = files.config(&["--explain", "tcp_silense"], &[]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(words(&unknown.stderr).contains("--explain tcp_silense: there is no such setting"));
}

/// On all hosts, whose own files count for nothing.
#[test]
fn ranks_get_what_the_files_say() {
    let files = Files::new("spin = 7\ntransport = [\"shm\", \"tcp\"]\n", "spin = 8\nfan_out = 1\n");
    let script = "echo $PMI_RANK $TRANSOM_SPIN $TRANSOM_TRANSPORT $TRANSOM_FAN_OUT";
    let ssh =
        fake_ssh(files.dir.path(), "exec env -i PATH=\"$PATH\" TRANSOM_CONFIG=/no/such/file sh -c \"$2\"");
    for (flags, variables, spin) in
        [(&["--rsh", &*ssh, "--hosts", "h1,h2"][..], vec![], "7"), (&[], vec![("TRANSOM_SPIN", "6")], "6")]
    {
        let mut command = transom(&[flags, &["-n", "2", "sh", "-c", script]].concat());
        let ended = start(files.given(&mut command).envs(variables)).wait();
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        let mut lines: Vec<&str> = ended.stdout.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, [0, 1].map(|rank| format!("{rank} {spin} shm,tcp 1")));
    }
}

/// The launcher's own settings, too.
#[test]
fn the_launcher_does_what_a_file_says() {
    let files = Files::new("", "");
    let ssh = fake_ssh(files.dir.path(), "export HOSTNAME=$1-by-file; exec sh -c \"$2\"");
    std::fs::write(files.system(), format!("rsh = \"{ssh}\"\n")).unwrap();
    let mut command = transom(&["-n", "2", "--hosts", "h1,h2", "sh", "-c", "echo $HOSTNAME"]);
    let ended = start(files.given(&mut command)).wait();
    let mut lines: Vec<&str> = ended.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["h1-by-file", "h2-by-file"], "{}", ended.stderr);
    // So do others that need settings; and they ask other hosts for what this one's files say.
    std::fs::write(files.user(), "atomics = \"cpu\"\n").unwrap();
    let mut info = Command::new(TRANSOM);
    let out = output(files.given(info.args(["info", "--hosts", "h1"])));
    let text = words(&out.stdout);
    assert!(out.status.success() && text.contains("* TRANSOM_ATOMICS cpu (default: auto)"), "{text}");
}

#[test]
fn wrong_files_are_refused() {
    let table = [
        ("spin = 7\nspun = 7\n", "transom.toml line 2: spun: there is no such setting"),
        ("spin = \"7\"\n", "transom.toml line 1: spin: is a string, and has to be a whole number"),
        (
            "\n\ntcp_silence = 0\n",
            "transom.toml line 3: tcp_silence: \"0\": the least is 1 (seconds, 1 or more)",
        ),
        ("atomics = \"gpu\"\n", "transom.toml line 1: atomics: \"gpu\": not auto, cpu or nic"),
        ("spin = 7\nspin 8\n", "transom.toml line 2: "),
    ];
    for (text, said) in table {
        refused(&Files::new(text, ""), said);
    }
    let missing = Files::new("", "");
    std::fs::remove_file(missing.system()).unwrap();
    refused(&missing, "system.toml: No such file or directory");
    let folder = Files::new("", "");
    std::fs::remove_file(folder.user()).unwrap();
    std::fs::create_dir(folder.user()).unwrap();
    refused(&folder, "transom.toml: Is a directory");
}

/// The environment of one user, kept by another, as sudo may do it.
#[test]
fn a_home_that_cannot_be_searched_has_no_file() {
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: another user needs root");
        return;
    }
    let files = Files::new("spun = 7\n", "");
    let private = Permissions::from_mode(0o700);
    std::fs::set_permissions(files.dir.path(), private).unwrap();
    let mut command = Command::new(TRANSOM);
    let command = files.given(command.arg("config")).env("TRANSOM_CONFIG", "/dev/null");
    assert_eq!(output(command).status.code(), Some(2));
    let out = output(command.uid(65534).gid(65534).current_dir("/"));
    assert!(out.status.success(), "{}", words(&out.stderr));
    assert!(words(&out.stdout).contains("transom.toml not there"), "{}", words(&out.stdout));
}

/// By all commands that read them, before anything is started.
fn refused(files: &Files, said: &str) {
    let mark = files.dir.path().join("started");
    let touch: &Path = &mark;
    for args in [
        &["run", "-n", "1", "touch", touch.to_str().unwrap()][..],
        &["config"],
        &["info"],
        &["bench", "--list"],
    ] {
        let mut command = Command::new(TRANSOM);
        let out = output(files.given(command.args(args)));
        let stderr = words(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {stderr}");
        assert!(stderr.contains(said) && stderr.matches("transom: ").count() == 1, "{args:?}: {stderr}");
        assert!(out.stdout.is_empty() && !mark.exists(), "{args:?}");
    }
}
