//! Batch systems, played by their variables, files and commands: a job is on the hosts and has the ranks of the batch job.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Ended, TRANSOM, output, start, transom};

/// Variables of batch systems, which the one that this test itself may be in must not have.
const MARKS: [&str; 12] = [
    "SLURM_JOB_ID",
    "FLUX_URI",
    "FLUX_ENCLOSING_ID",
    "LSB_JOBID",
    "LSB_DJOB_HOSTFILE",
    "LSB_MCPU_HOSTS",
    "LSB_HOSTS",
    "PBS_JOBID",
    "JOB_ID",
    "PE_HOSTFILE",
    "K_MPI_JOB_ROLE",
    "TRANSOM_ALLOCATION",
];
const SHOW: [&str; 3] = ["sh", "-c", "echo $PMI_RANK/$PMI_SIZE $HOSTNAME"];

/// A folder of commands that are in front of PATH, and of files.
struct Site {
    dir: tempfile::TempDir,
}

impl Site {
    fn new() -> Self {
        let site = Self { dir: tempfile::tempdir().unwrap() };
        // Behind its options ssh has the host and one command line; what it starts knows by whom and where.
        site.command("ssh", "while [ \"${1#-}\" != \"$1\" ]; do [ \"$1\" != -o ] || shift; shift; done; HOSTNAME=ssh:$1 exec sh -c \"$2\"");
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn command(&self, name: &str, script: &str) {
        common::executable(&self.path(name), &format!("#!/bin/sh\n{script}\n"));
    }

    fn file(&self, name: &str, text: &str) -> String {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name).to_str().unwrap().to_owned()
    }

    fn given<'a>(&self, command: &'a mut Command, variables: &[(&str, &str)]) -> &'a mut Command {
        for name in MARKS {
            command.env_remove(name);
        }
        let path = format!("{}:{}", self.dir.path().display(), std::env::var("PATH").unwrap());
        command.envs([("PATH", &*path), ("HOSTNAME", "here")]).envs(variables.iter().copied())
    }

    fn run(&self, args: &[&str], variables: &[(&str, &str)]) -> Ended {
        start(self.given(&mut transom(args), variables)).wait()
    }

    /// What each rank shows, in the order of ranks.
    fn ranks(&self, args: &[&str], variables: &[(&str, &str)]) -> String {
        let ended = self.run(&[args, &SHOW].concat(), variables);
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{}", ended.stdout);
        let mut lines: Vec<&str> = ended.stdout.lines().collect();
        lines.sort_unstable();
        lines.join(", ")
    }

    fn info(&self, variables: &[(&str, &str)]) -> String {
        let mut command = Command::new(TRANSOM);
        self.given(command.arg("info").env("COLUMNS", "160"), variables);
        let page = String::from_utf8(output(&mut command).stdout).unwrap();
        let line = page.lines().find(|line| line.trim_start().starts_with("allocation")).unwrap_or_default();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

#[test]
fn pbs() {
    let site = Site::new();
    let own = nix::unistd::gethostname().unwrap().into_string().unwrap();
    let file = site.file("nodes", &format!("{own}\nn2\nn2\n"));
    let job = [("PBS_JOBID", "1.server"), ("PBS_NODEFILE", &*file)];
    assert_eq!(site.ranks(&[], &job), "0/3 here, 1/3 ssh:n2, 2/3 ssh:n2");
    assert_eq!(site.ranks(&["-N", "1"], &job), "0/2 here, 1/2 ssh:n2");
    // More ranks than slots: all of its hosts, evenly.
    assert_eq!(site.ranks(&["-n", "4"], &job), "0/4 here, 1/4 here, 2/4 ssh:n2, 3/4 ssh:n2");
    assert_eq!(site.ranks(&["--hosts", "n7"], &job), "0/1 ssh:n7");
    assert_eq!(
        site.ranks(&["-n", "2"], &[&job[..], &[("TRANSOM_ALLOCATION", "none")]].concat()),
        "0/2 here, 1/2 here"
    );
    assert_eq!(site.info(&job), format!("allocation PBS: 2 hosts, 3 slots (PBS_NODEFILE={file})"));
    // Another way that the user wants is used for each host.
    site.command("other", "HOSTNAME=other:$1 exec sh -c \"$2\"");
    let other = site.path("other").to_str().unwrap().to_owned();
    assert_eq!(site.ranks(&["--rsh", &other, "-N", "1"], &job), format!("0/2 other:{own}, 1/2 other:n2"));
}

#[test]
fn lsf() {
    let site = Site::new();
    site.command("blaunch", "host=$1; shift; HOSTNAME=blaunch:$host exec \"$@\"");
    let file = site.file("hosts", "n1\nn1\nn2\n");
    let job = [("LSB_JOBID", "7"), ("LSB_MCPU_HOSTS", "n3 1 n4 1"), ("LSB_HOSTS", "n5")];
    assert_eq!(
        site.ranks(&[], &[&job[..], &[("LSB_DJOB_HOSTFILE", &file)]].concat()),
        "0/3 blaunch:n1, 1/3 blaunch:n1, 2/3 blaunch:n2"
    );
    assert_eq!(site.ranks(&[], &job), "0/2 blaunch:n3, 1/2 blaunch:n4");
    assert_eq!(site.ranks(&[], &[job[0], job[2]]), "0/1 blaunch:n5");
    assert_eq!(site.info(&job), "allocation LSF: 2 hosts, 2 slots (LSB_MCPU_HOSTS)");
    // Of the hosts that are named, LSF's own command reaches those of the job.
    assert_eq!(site.ranks(&["--hosts", "n4,n9", "-n", "2"], &job), "0/2 blaunch:n4, 1/2 ssh:n9");
    // More hosts than one reaches otherwise: LSF has only the first one start anything.
    let all: Vec<String> = (0..6).map(|host| format!("n{host} 1")).collect();
    let many = [job[0], ("LSB_MCPU_HOSTS", &*all.join(" "))];
    let ranks = site.ranks(&["--fan-out", "2"], &many);
    assert_eq!(ranks.matches("blaunch:").count(), 6, "{ranks}");
}

#[test]
fn grid_engine() {
    let site = Site::new();
    site.command(
        "qrsh",
        "[ \"$1\" = -inherit ] || exit 9; host=$2; shift 2; HOSTNAME=qrsh:$host exec \"$@\"",
    );
    let file = site.file("pe", "n1.lan 2 all.q@n1.lan UNDEFINED\nn2.lan 1 all.q@n2.lan 0,0\n");
    let job = [("JOB_ID", "3"), ("PE_HOSTFILE", &*file)];
    assert_eq!(site.ranks(&[], &job), "0/3 qrsh:n1.lan, 1/3 qrsh:n1.lan, 2/3 qrsh:n2.lan");
    assert_eq!(site.info(&job), format!("allocation Grid Engine: 2 hosts, 3 slots (PE_HOSTFILE={file})"));
    site.command("qrsh", "echo no such task >&2; exit 1");
    let refused = site.run(&["true"], &job);
    // Whichever is heard of first.
    let wanted = ["n1.lan", "n2.lan"].map(|host| {
        format!(
            "cannot start on host {host}: qrsh -inherit exited with code 1; `qrsh -inherit {host} true` must work, \
             or give another way (--rsh ssh); nothing was started"
        )
    });
    let is_named = wanted.iter().any(|wanted| refused.stderr.contains(wanted));
    assert!(is_named && refused.code == 2, "{}: {}", refused.code, refused.stderr);
}

#[test]
fn flux() {
    let site = Site::new();
    let resources =
        r#"{"version": 1, "execution": {"R_lite": [{"rank": "0-1", "children": {"core": "0-1"}}]}}"#;
    let hosts = "case \"$*\" in 'hostlist --expand instance') echo n1 n2;; *) ";
    site.command("flux", &format!("{hosts} echo '{resources}';; esac"));
    let job = [("FLUX_URI", "local:///x"), ("FLUX_ENCLOSING_ID", "ƒ1")];
    assert_eq!(site.ranks(&[], &job), "0/4 ssh:n1, 1/4 ssh:n1, 2/4 ssh:n2, 3/4 ssh:n2");
    assert_eq!(site.info(&job), "allocation Flux: 2 hosts, 4 slots (flux hostlist --expand instance)");
    // Without its resources the hosts count, and -n or -N says how many ranks there are.
    site.command("flux", &format!("{hosts} exit 1;; esac"));
    assert_eq!(site.ranks(&["-N", "1"], &job), "0/2 ssh:n1, 1/2 ssh:n2");
    site.command("flux", "echo 'flux_open: no broker' >&2; exit 3");
    let ended = site.run(&["true"], &job);
    let wanted = "transom: Flux job: `flux hostlist --expand instance`: flux_open: no broker (exit status: 3); give --hosts or \
                  --hostfile, or set TRANSOM_ALLOCATION=none to do without Flux\n";
    assert_eq!((ended.code, ended.stderr.as_str()), (2, wanted));
}

#[test]
fn kubernetes() {
    let site = Site::new();
    // As the operator writes it for Open MPI, and for MPICH and Intel MPI.
    let slots = site.file("open", "w0.job.ns.svc slots=2\nw1.job.ns.svc slots=1\n");
    let colons = site.file("mpich", "w0.job.ns.svc:1\nw1.job.ns.svc:1\n");
    let launcher = ("K_MPI_JOB_ROLE", "launcher");
    let open = [launcher, ("OMPI_MCA_orte_default_hostfile", &*slots)];
    assert_eq!(site.ranks(&[], &open), "0/3 ssh:w0.job.ns.svc, 1/3 ssh:w0.job.ns.svc, 2/3 ssh:w1.job.ns.svc");
    for name in ["HYDRA_HOST_FILE", "I_MPI_HYDRA_HOST_FILE"] {
        let ranks = site.ranks(&[], &[launcher, (name, &colons)]);
        assert_eq!(ranks, "0/2 ssh:w0.job.ns.svc, 1/2 ssh:w1.job.ns.svc");
    }
    let worker = [("K_MPI_JOB_ROLE", "worker"), ("HYDRA_HOST_FILE", &*colons)];
    assert_eq!(site.ranks(&[], &worker), "0/1 here");
}

#[test]
fn what_cannot_be_used() {
    let site = Site::new();
    let file = site.file("nodes", "n1\nn2;reboot\n");
    let file_of = |name: &str| site.path(name).to_str().unwrap().to_owned();
    let (none, dir) = (file_of("none"), site.dir.path().to_str().unwrap().to_owned());
    let binary = file_of("binary");
    std::fs::write(Path::new(&binary), [0xff, 0xfe, 0, 1]).unwrap();
    let pbs = |file| vec![("PBS_JOBID", "1"), ("PBS_NODEFILE", file)];
    let without = "; give --hosts or --hostfile, or set TRANSOM_ALLOCATION=none to do without PBS\n";
    for (job, wanted) in [
        (pbs(&file), format!("transom: PBS job: PBS_NODEFILE={file} line 2: \"n2;reboot\" is no host name{without}")),
        (pbs(&none), format!("transom: PBS job: PBS_NODEFILE={none}: No such file or directory (os error 2){without}")),
        (pbs(&dir), format!("transom: PBS job: PBS_NODEFILE={dir}: Is a directory (os error 21){without}")),
        (pbs(&binary), format!("transom: PBS job: PBS_NODEFILE={binary}: stream did not contain valid UTF-8{without}")),
        (
            vec![("TRANSOM_ALLOCATION", "lsf")],
            "transom: TRANSOM_ALLOCATION=lsf: this command is in no job of LSF (LSB_JOBID, and LSB_DJOB_HOSTFILE, \
             LSB_MCPU_HOSTS or LSB_HOSTS not set)\n"
                .to_owned(),
        ),
        (
            vec![("TRANSOM_ALLOCATION", "torque")],
            "transom: TRANSOM_ALLOCATION=\"torque\" is none of auto, none, slurm, flux, lsf, pbs, sge, kubernetes\n".to_owned(),
        ),
    ] {
        let ended = site.run(&["true"], &job);
        assert_eq!((ended.code, ended.stderr), (2, wanted));
        // Who names hosts has no use for it.
        assert_eq!(site.ranks(&["--hosts", "n1"], &job), "0/1 ssh:n1");
    }
    // A job of one system that was submitted from within another's: the setting says which.
    let nodes = site.file("nodes", "n1\n");
    let both = [pbs(&nodes), vec![("LSB_JOBID", "7"), ("LSB_HOSTS", "n2")]].concat();
    assert_eq!(site.ranks(&[], &both), "0/1 ssh:n2");
    assert_eq!(site.ranks(&[], &[&both[..], &[("TRANSOM_ALLOCATION", "pbs")]].concat()), "0/1 ssh:n1");
}

/// Components of a heterogeneous job of Slurm are one job, whose agents are started within each.
#[test]
fn slurm_of_components() {
    let site = Site::new();
    site.command("scontrol", "case $3 in 'n[2-3]') echo n2; echo n3;; n*) echo $3;; esac");
    site.command(
        "srun",
        "group=none; while [ \"$1\" != -- ]; do case $1 in --nodelist) host=$2;; --het-group=*) group=${1#*=};; esac; shift; done; \
         shift; HOSTNAME=srun:$group:$host exec \"$@\"",
    );
    let job = [
        ("SLURM_JOB_ID", "1"),
        ("SLURMD_NODENAME", "n1"),
        ("SLURM_JOB_NODELIST", "n1"),
        ("SLURM_NTASKS", "1"),
        ("SLURM_TASKS_PER_NODE", "1"),
        ("SLURM_HET_SIZE", "2"),
        ("SLURM_JOB_NODELIST_HET_GROUP_0", "n1"),
        ("SLURM_NTASKS_HET_GROUP_0", "1"),
        ("SLURM_TASKS_PER_NODE_HET_GROUP_0", "1"),
        ("SLURM_JOB_NODELIST_HET_GROUP_1", "n[2-3]"),
        ("SLURM_NTASKS_HET_GROUP_1", "3"),
        ("SLURM_TASKS_PER_NODE_HET_GROUP_1", "2,1"),
    ];
    assert_eq!(site.ranks(&[], &job), "0/4 here, 1/4 srun:1:n2, 2/4 srun:1:n2, 3/4 srun:1:n3");
    assert_eq!(
        site.info(&job),
        "allocation Slurm: 3 hosts, 4 slots, 4 tasks (SLURM_JOB_NODELIST=n1 : n[2-3])"
    );
    // One component is a job as any other.
    assert_eq!(site.ranks(&[], &job[..5]), "0/1 here");
    let torn = site.run(&["true"], &job[..9]);
    assert_eq!(torn.code, 2, "{}", torn.stderr);
    assert!(
        torn.stderr.contains("SLURM_JOB_NODELIST_HET_GROUP_1=\"\" is not what Slurm sets"),
        "{}",
        torn.stderr
    );
}
