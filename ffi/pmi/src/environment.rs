//! What the launcher left in the environment.

use std::ffi::OsString;
use std::os::fd::{BorrowedFd, RawFd};

use nix::sys::stat::{SFlag, fstat};

use crate::error::{Error, Result};

/// How this process reaches its launcher, read from `PMI_*` variables and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Environment {
    /// An inherited socket: `PMI_FD`, with `PMI_RANK` and `PMI_SIZE`.
    Inherited {
        /// Number of the open socket.
        fd: RawFd,
        /// This process's rank.
        rank: u32,
        /// Number of ranks in the job.
        size: u32,
    },
    /// An address to connect to: `PMI_PORT`, with `PMI_ID`; rank and size come over the connection.
    Port {
        /// `host:port`.
        address: String,
        /// Who this process is to the launcher.
        id: u32,
    },
}

impl Environment {
    /// Reads this process's environment; `None` when no PMI launcher started it.
    ///
    /// (A Slurm batch script has `SLURM_PROCID` but no `PMI_FD`: it is no rank of anything.)
    pub fn read() -> Result<Option<Self>> {
        Self::from_variables(|name| std::env::var_os(name))
    }

    /// The same from any source of variables.
    pub fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Result<Option<Self>> {
        let text = |name: &'static str| variable(name).map(|value| value.to_string_lossy().into_owned());
        if let Some(fd) = text("PMI_FD") {
            return Self::inherited(fd, text("PMI_RANK"), text("PMI_SIZE")).map(Some);
        }
        text("PMI_PORT").map(|address| Self::port(address, text("PMI_ID"))).transpose()
    }

    fn inherited(fd: String, rank: Option<String>, size: Option<String>) -> Result<Self> {
        let number = number_of("PMI_FD", Some(&fd))?;
        let number = RawFd::try_from(number).map_err(|_| bad("PMI_FD", &fd, "is no file descriptor"))?;
        check_socket(number, &fd)?;
        let size_number = number_of("PMI_SIZE", size.as_deref())?;
        if size_number == 0 {
            return Err(bad("PMI_SIZE", "0", "must be at least 1"));
        }
        let rank_number = number_of("PMI_RANK", rank.as_deref())?;
        if rank_number >= size_number {
            let reason = format!("must be less than PMI_SIZE={size_number}");
            return Err(bad("PMI_RANK", &rank_number.to_string(), &reason));
        }
        Ok(Self::Inherited { fd: number, rank: rank_number, size: size_number })
    }

    fn port(address: String, id: Option<String>) -> Result<Self> {
        let port = address.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port);
        if port.and_then(|port| port.parse::<u16>().ok()).is_none() {
            return Err(bad("PMI_PORT", &address, "is not HOST:PORT"));
        }
        let id = number_of("PMI_ID", id.as_deref())?;
        Ok(Self::Port { address, id })
    }
}

fn number_of(variable: &'static str, value: Option<&str>) -> Result<u32> {
    let value = value.ok_or_else(|| bad(variable, "", "is not set"))?;
    value.parse().map_err(|_| bad(variable, value, "is not a number from 0 to 4294967295"))
}

/// The kernel says what the descriptor is, before anything takes possession of it.
fn check_socket(fd: RawFd, value: &str) -> Result<()> {
    if fd <= 2 {
        return Err(bad("PMI_FD", value, "is a standard stream, not the launcher's socket"));
    }
    // SAFETY: a number above 2, for one call that asks what it is, and refuses one that is not open (fstat(2)).
    let descriptor = unsafe { BorrowedFd::borrow_raw(fd) };
    match fstat(descriptor) {
        Ok(found) if SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT == SFlag::S_IFSOCK => Ok(()),
        Ok(_) => Err(bad("PMI_FD", value, "is not a socket")),
        Err(_) => Err(bad("PMI_FD", value, "is not an open file descriptor")),
    }
}

pub(crate) fn bad(variable: &'static str, value: &str, reason: &str) -> Error {
    Error::Environment { variable, value: value.to_owned(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    fn read(variables: &[(&str, &str)]) -> Result<Option<Environment>> {
        Environment::from_variables(|name| {
            variables.iter().find(|(n, _)| *n == name).map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn without_pmi_there_is_no_job() {
        assert_eq!(read(&[]).unwrap(), None);
        assert_eq!(read(&[("SLURM_PROCID", "0"), ("PMI_RANK", "3")]).unwrap(), None);
    }

    #[test]
    fn a_good_environment() {
        let (socket, _peer) = UnixStream::pair().unwrap();
        let fd = socket.as_raw_fd().to_string();
        let found = read(&[("PMI_FD", &fd), ("PMI_RANK", "1"), ("PMI_SIZE", "2")]).unwrap();
        assert_eq!(found, Some(Environment::Inherited { fd: socket.as_raw_fd(), rank: 1, size: 2 }));
        let found = read(&[("PMI_PORT", "[::1]:80"), ("PMI_ID", "0")]).unwrap();
        assert_eq!(found, Some(Environment::Port { address: "[::1]:80".into(), id: 0 }));
    }

    #[test]
    fn a_bad_environment_is_named() {
        let (socket, _peer) = UnixStream::pair().unwrap();
        let file = std::fs::File::open("/dev/null").unwrap();
        let (s, f) = (socket.as_raw_fd().to_string(), file.as_raw_fd().to_string());
        type Row<'a> = (&'a [(&'a str, &'a str)], &'a str, &'a str);
        let table: &[Row] = &[
            (&[("PMI_FD", "x"), ("PMI_RANK", "0"), ("PMI_SIZE", "1")], "PMI_FD", "x"),
            (&[("PMI_FD", "-1"), ("PMI_RANK", "0"), ("PMI_SIZE", "1")], "PMI_FD", "-1"),
            (&[("PMI_FD", "4000000000"), ("PMI_RANK", "0"), ("PMI_SIZE", "1")], "PMI_FD", "4000000000"),
            (&[("PMI_FD", "1"), ("PMI_RANK", "0"), ("PMI_SIZE", "1")], "PMI_FD", "1"),
            (&[("PMI_FD", "999999"), ("PMI_RANK", "0"), ("PMI_SIZE", "1")], "PMI_FD", "999999"),
            (&[("PMI_FD", &f), ("PMI_RANK", "0"), ("PMI_SIZE", "1")], "PMI_FD", &f),
            (&[("PMI_FD", &s), ("PMI_RANK", "abc"), ("PMI_SIZE", "1")], "PMI_RANK", "abc"),
            (&[("PMI_FD", &s), ("PMI_RANK", "0"), ("PMI_SIZE", "0")], "PMI_SIZE", "0"),
            (&[("PMI_FD", &s), ("PMI_RANK", "2"), ("PMI_SIZE", "2")], "PMI_RANK", "2"),
            (&[("PMI_FD", &s), ("PMI_SIZE", "2")], "PMI_RANK", ""),
            (&[("PMI_FD", &s), ("PMI_RANK", "0")], "PMI_SIZE", ""),
            (&[("PMI_PORT", "nohost"), ("PMI_ID", "0")], "PMI_PORT", "nohost"),
            (&[("PMI_PORT", "h:99999"), ("PMI_ID", "0")], "PMI_PORT", "h:99999"),
            (&[("PMI_PORT", "h:1")], "PMI_ID", ""),
        ];
        for (variables, name, bad_value) in table {
            match read(variables) {
                Err(Error::Environment { variable, value, .. }) => {
                    assert_eq!((&variable, &value.as_str()), (name, bad_value), "{variables:?}");
                }
                other => panic!("{variables:?}: {other:?}"),
            }
        }
    }
}
