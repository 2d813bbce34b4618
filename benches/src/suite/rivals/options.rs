//! Options of `bench --rivals`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};

use super::catalogue::is_known;

/// Options that only the suite in Rust has. Each excuses clap from asking for `--rivals` where that is required, and so has to be in conflict
/// with what requires it, too.
const OF_RUST: [&str; 8] =
    ["pairs", "threads", "cache", "address", "from", "iterations", "window_size", "table"];

/// What is measured beside Transom, and how.
#[derive(Debug, Clone, Args)]
pub struct Choice {
    /// Measure MPI's C interface, by a program in C: Transom's, and in turns those of other MPIs in folders in which one is installed
    /// (bin/mpicc, bin/mpiexec), or several are
    #[arg(long, value_name = "DIR", num_args = 0.., value_hint = ValueHint::DirPath,
        conflicts_with_all = OF_RUST)]
    pub rivals: Option<Vec<PathBuf>>,

    /// With --rivals: Transom's installation [default: that of this program]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, requires = "rivals", conflicts_with_all = OF_RUST)]
    pub transom: Option<PathBuf>,

    /// With --rivals: what all of them communicate by [default: as TRANSOM_TRANSPORT says, else shm]
    #[arg(long, value_enum, requires = "rivals", conflicts_with_all = OF_RUST)]
    pub network: Option<Network>,

    /// With --rivals: means over all samples, those too in which the system took the core away, as OSU's programs print, instead of medians
    #[arg(long, requires = "rivals", conflicts_with_all = OF_RUST)]
    pub mean: bool,

    /// With --rivals: seconds after which a library's measuring of a group is ended
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = crate::suite::options::seconds)]
    pub rival_timeout: Duration,

    /// Ranks: `transom bench -n` gives them.
    #[arg(long, hide = true, requires = "rivals", default_value = "2", value_parser = clap::value_parser!(u32).range(2..=1024))]
    pub ranks: u32,

    /// Two hosts, by commas: `transom bench --hosts` gives them.
    #[arg(long, hide = true, requires = "rivals")]
    pub hosts: Option<String>,

    /// How they are reached: `transom bench --rsh` says.
    #[arg(long, hide = true, requires = "hosts")]
    pub rsh: Option<String>,
}

/// What ranks communicate by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Network {
    /// Shared memory
    Shm,
    /// TCP, between ranks of one host, too
    Tcp,
    /// RDMA devices, between ranks of one host, too
    Verbs,
}

impl Network {
    /// For the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shm => "shm",
            Self::Tcp => "tcp",
            Self::Verbs => "verbs",
        }
    }
}

impl Choice {
    /// What is asked for, or what Transom is told by its variable.
    ///
    /// # Errors
    /// That variable names what the others have not.
    pub fn network(&self) -> Result<Network, String> {
        if let Some(network) = self.network {
            return Ok(network);
        }
        match std::env::var("TRANSOM_TRANSPORT") {
            Ok(name) if !name.is_empty() => Network::from_str(&name, true)
                .map_err(|_| format!("TRANSOM_TRANSPORT is {name}: with --rivals it is shm, tcp or verbs")),
            _ if self.hosts.is_some() => Ok(Network::Tcp),
            _ => Ok(Network::Shm),
        }
    }

    /// The two hosts, if there are two.
    ///
    /// # Errors
    /// There are more or fewer, or ranks are given to them by number.
    pub fn hosts(&self) -> Result<Option<[&str; 2]>, String> {
        let Some(hosts) = &self.hosts else { return Ok(None) };
        let names: Vec<&str> = hosts.split(',').map(|host| host.strip_suffix(":1").unwrap_or(host)).collect();
        match names[..] {
            [..] if self.ranks != 2 => {
                Err(format!("--rivals measures {} ranks on one host: no --hosts", self.ranks))
            }
            [first, second] if names.iter().all(|name| !name.is_empty() && !name.contains(':')) => {
                Ok(Some([first, second]))
            }
            _ => Err(format!("--rivals measures between two hosts, a rank on each, not --hosts {hosts}")),
        }
    }
}

/// Words that stand after `--rivals DIR` and are no paths: names of measurements.
///
/// A folder is one that exists, or is written with a slash; and the first, unless it is such a name.
pub fn split(words: &[PathBuf]) -> (Vec<PathBuf>, Vec<String>) {
    let is_folder = |(i, word): (usize, &PathBuf)| {
        let text = word.as_os_str().to_string_lossy();
        i == 0 && !is_known(&text) || word.is_dir() || text.contains('/')
    };
    let (mut folders, mut names) = (Vec::new(), Vec::new());
    for (i, word) in words.iter().enumerate() {
        if is_folder((i, word)) {
            folders.push(word.clone());
        } else {
            names.push(word.to_string_lossy().into_owned());
        }
    }
    (folders, names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(hosts: &str) -> Choice {
        Choice {
            rivals: Some(vec!["/".into()]),
            ranks: 2,
            transom: None,
            network: None,
            mean: false,
            rival_timeout: Duration::from_secs(1),
            hosts: Some(hosts.into()),
            rsh: None,
        }
    }

    #[test]
    fn folders_and_names() {
        let words = ["peers", "put-latency", "/usr", "./mpich", "latency"].map(PathBuf::from);
        let (folders, names) = split(&words);
        assert_eq!(folders, ["peers", "/usr", "./mpich"].map(PathBuf::from));
        assert_eq!(names, ["put-latency", "latency"]);
        let (folders, names) = split(&["sync".into()]);
        assert!(folders.is_empty() && names == ["sync"]);
    }

    #[test]
    fn two_hosts() {
        assert_eq!(choice("a,b:1").hosts(), Ok(Some(["a", "b"])));
        for hosts in ["a", "a,b,c", "a:2,b", "a,"] {
            assert!(choice(hosts).hosts().is_err_and(|why| why.contains("two hosts")), "{hosts}");
        }
        let four = Choice { ranks: 4, ..choice("a,b") };
        assert!(four.hosts().is_err_and(|why| why.contains("4 ranks")));
    }
}
