//! How the program is started with each library: its launcher, its network, its hosts.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use super::library::{Library, TRANSOM};
use super::options::{Choice, Network};

/// Variables that select TCP in the libraries, between ranks of one host, too.
const TCP: [(&str, &str); 9] = [
    ("TRANSOM_TRANSPORT", "tcp"),
    // libfabric, MPICH's way to it, and Intel's.
    ("FI_PROVIDER", "tcp"),
    ("MPIR_CVAR_CH4_NETMOD", "ofi"),
    ("MPIR_CVAR_NOLOCAL", "1"),
    ("I_MPI_FABRICS", "ofi"),
    // Else its collectives go through shared memory all the same.
    ("I_MPI_COLL_INTRANODE", "pt2pt"),
    // Open MPI.
    ("OMPI_MCA_pml", "ob1"),
    ("OMPI_MCA_btl", "self,tcp"),
    ("OMPI_MCA_osc", "rdma"),
];
/// Variables that select RDMA devices. Which device is for each library's own variables: TRANSOM_VERBS_DEVICE, FI_VERBS_IFACE and
/// UCX_NET_DEVICES.
const VERBS: [(&str, &str); 8] = [
    ("TRANSOM_TRANSPORT", "verbs"),
    // By libfabric, as over TCP: by UCX, over soft-RoCE, its job does not end.
    ("MPIR_CVAR_CH4_NETMOD", "ofi"),
    ("MPIR_CVAR_NOLOCAL", "1"),
    ("I_MPI_FABRICS", "ofi"),
    ("I_MPI_COLL_INTRANODE", "pt2pt"),
    // Open MPI, which has no other way to devices for one-sided operations.
    ("OMPI_MCA_pml", "ucx"),
    ("OMPI_MCA_osc", "ucx"),
    ("UCX_TLS", "ib,self"),
];
/// Where Intel MPI has libfabric's providers: in a wheel, and in an installation.
const PROVIDERS: [&str; 3] = ["lib", "opt/mpi/libfabric/lib/prov", "libfabric/lib/prov"];
/// Launchers that refuse root, or bind ranks to cores, which the program does itself.
const ALWAYS: [(&str, &str); 5] = [
    ("PRTE_ALLOW_RUN_AS_ROOT", "1"),
    ("PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ("I_MPI_PIN", "0"),
];
/// Called like ssh, calls what is called as HOST COMMANDLINE.
const SHELL: &str = "\
#!/bin/sh
while [ \"${1#-}\" != \"$1\" ]; do shift; done
host=$1
shift
exec $TRANSOM_BENCH_RSH \"$host\" \"$*\"
";

/// How ranks are started.
#[derive(Debug)]
pub struct Launch {
    network: Network,
    ranks: u32,
    /// Two hosts, and what stands for ssh.
    hosts: Option<([String; 2], PathBuf)>,
    rsh: String,
}

impl Launch {
    /// As asked for; `folder` has room for a script.
    ///
    /// # Errors
    /// It cannot be so, in words.
    pub fn new(choice: &Choice, folder: &Path) -> Result<Self, String> {
        let rsh = choice.rsh.clone().or_else(|| env::var("TRANSOM_RSH").ok()).unwrap_or_else(|| "ssh".into());
        let network = choice.network()?;
        let hosts = match choice.hosts()? {
            Some(_) if network == Network::Shm => {
                return Err("--network shm: two hosts share no memory".into());
            }
            Some(hosts) => {
                let shell = folder.join("rsh");
                let written = fs::write(&shell, SHELL)
                    .and_then(|()| fs::set_permissions(&shell, fs::Permissions::from_mode(0o755)));
                written.map_err(|error| format!("writing {}: {error}", shell.display()))?;
                Some((hosts.map(str::to_owned), shell))
            }
            None => None,
        };
        Ok(Self { network, ranks: choice.ranks, hosts, rsh })
    }

    /// How many ranks.
    pub fn ranks(&self) -> usize {
        self.ranks as usize
    }

    /// What ranks communicate by.
    pub fn network(&self) -> Network {
        self.network
    }

    /// Where the ranks are, if not here.
    pub fn hosts(&self) -> Option<&[String; 2]> {
        self.hosts.as_ref().map(|(hosts, _)| hosts)
    }

    /// Why a library is not measured this way, if there is a reason.
    pub fn refuses(&self, library: &Library, window: &str) -> Option<&'static str> {
        let is_open_mpi = library.is_open_mpi();
        (is_open_mpi && self.network == Network::Tcp && self.hosts.is_none() && window == "allocated").then_some(
            "its allocated windows stay in shared memory on one host, whatever it is told: --window created, or two hosts",
        )
    }

    /// The command that starts the program as ranks.
    pub fn command(&self, library: &Library, program: &Path) -> Command {
        let bin = |name: &str| library.prefix.join("bin").join(name);
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let prefix = library.prefix.to_string_lossy().into_owned();
        let ranks = self.ranks.to_string();
        let (launcher, mut options) = if library.name == TRANSOM && bin("transom").is_file() {
            (bin("transom"), words(&["run", "-n", &ranks]))
        } else if bin("prterun").is_file() {
            (
                bin("prterun"),
                words(&[
                    "--prefix",
                    &prefix,
                    "--map-by",
                    ":OVERSUBSCRIBE",
                    "--bind-to",
                    "none",
                    "-n",
                    &ranks,
                ]),
            )
        } else if library.is_open_mpi() {
            (bin("mpiexec"), words(&["--oversubscribe", "--bind-to", "none", "-n", &ranks]))
        } else {
            (bin("mpiexec"), words(&["-n", &ranks]))
        };
        if let Some((hosts, shell)) = &self.hosts {
            let hosts = hosts.join(",");
            let shell = shell.to_string_lossy();
            options.extend(match library {
                _ if library.name == TRANSOM => words(&["--hosts", &hosts, "--rsh", &self.rsh]),
                _ if library.is_open_mpi() => {
                    words(&["--prtemca", "plm_ssh_agent", &shell, "--host", &hosts])
                }
                _ => words(&["-launcher", "ssh", "-launcher-exec", &shell, "-ppn", "1", "-hosts", &hosts]),
            });
        }
        let mut command = self.placed(&launcher, library);
        library.environment(&mut command);
        command.args(options).arg(program);
        command.envs(ALWAYS).env_remove("TRANSOM_TERMINAL_WIDTH").env("TRANSOM_BENCH_RSH", &self.rsh);
        match self.network {
            Network::Shm => command.env("TRANSOM_TRANSPORT", "shm"),
            Network::Tcp => command.envs(TCP),
            Network::Verbs => {
                command.envs(VERBS);
                self.verbs_of_libfabric(&mut command, library)
            }
        };
        command
    }

    /// What libfabric is told, of which each library has its own; but for what the user says.
    fn verbs_of_libfabric<'c>(&self, command: &'c mut Command, library: &Library) -> &'c mut Command {
        let is_there = |folder: &PathBuf| folder.join("libverbs-1.12-fi.so").is_file();
        let of_intel = PROVIDERS.map(|folder| library.prefix.join(folder)).into_iter().find(is_there);
        // Its queues are for so many peers: those for 256, where nobody says, are longer than small devices have them.
        let peers = self.ranks.max(4).to_string();
        let provider = if of_intel.is_some() { "verbs" } else { "verbs;ofi_rxm" };
        let mut variables: Vec<(&str, OsString)> =
            vec![("FI_PROVIDER", provider.into()), ("FI_UNIVERSE_SIZE", peers.into())];
        variables.extend(of_intel.map(|folder| ("FI_PROVIDER_PATH", folder.into())));
        command.envs(variables.into_iter().filter(|(name, _)| env::var_os(name).is_none()))
    }

    /// The launcher. Others than Transom's are reached by their ranks, so that they are started on the first host.
    fn placed(&self, launcher: &Path, library: &Library) -> Command {
        match &self.hosts {
            Some((hosts, shell)) if library.name != TRANSOM => {
                let mut command = Command::new(shell);
                command.arg(&hosts[0]).arg(launcher);
                command
            }
            _ => Command::new(launcher),
        }
    }
}

impl Library {
    /// Whether it is Open MPI.
    pub fn is_open_mpi(&self) -> bool {
        ["prterun", "ompi_info"].iter().any(|name| self.prefix.join("bin").join(name).is_file())
    }
}
