//! Every setting of the runtime, in one table, read once from the environment.

use std::env;
use std::time::Duration;

use crate::{Class, Error, Result};

/// One line of the table of settings.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Environment variable.
    pub name: &'static str,
    /// Type and unit of its value.
    pub kind: &'static str,
    /// Value when it is not set.
    pub default: &'static str,
    /// What it does.
    pub meaning: &'static str,
}

/// The table: `transom info` prints it.
pub const SETTINGS: &[Setting] = &[
    Setting {
        name: "TRANSOM_TRANSPORT",
        kind: "list of shm, ofi",
        default: "shm,ofi",
        meaning: "transports that the job may use; ranks of one node prefer shm",
    },
    Setting {
        name: "TRANSOM_OFI_PROVIDER",
        kind: "name",
        default: "first that can, tcp before sockets",
        meaning: "libfabric provider, as fi_info names it (tcp;ofi_rxm, psm3, ...)",
    },
    Setting {
        name: "TRANSOM_OFI_INTERFACE",
        kind: "name or address",
        default: "the first that is up and not the loopback",
        meaning: "network interface that libfabric's tcp uses (eth0, or the start of an address)",
    },
    Setting {
        name: "TRANSOM_LIBFABRIC",
        kind: "path",
        default: "libfabric.so.1",
        meaning: "the libfabric to open",
    },
    Setting {
        name: "TRANSOM_SPIN",
        kind: "microseconds",
        default: "5000, or 20 where ranks outnumber cores",
        meaning: "how long a blocked call polls before it sleeps in the kernel",
    },
    Setting {
        name: "TRANSOM_DEADLINE",
        kind: "seconds",
        default: "none",
        meaning: "a blocked call gives up after this time, with an error that says what it waited for",
    },
    Setting {
        name: "TRANSOM_HEAP",
        kind: "bytes",
        default: "the host's memory, at least 64 GiB, less where many ranks share an address space",
        meaning: "address space that a rank's allocated windows share; what does not fit, with 0 all, is mapped apart",
    },
    Setting {
        name: "TRANSOM_FAULT",
        kind: "register:RANK",
        default: "none",
        meaning: "for tests of programs: no memory can be registered at this rank of the job",
    },
];

/// The settings' values.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub shm: bool,
    pub ofi: bool,
    pub ofi_provider: Option<String>,
    pub spin: Option<Duration>,
    pub deadline: Option<Duration>,
    pub heap: Option<u64>,
    /// The rank at which registrations fail.
    pub fault: Option<u64>,
}

impl Settings {
    /// Reads the environment. A value that makes no sense is an error, not a default.
    pub fn from_env() -> Result<Self> {
        let get = |name: &'static str| match env::var(name) {
            Ok(value) => Ok(Some(value)),
            Err(env::VarError::NotPresent) => Ok(None),
            Err(env::VarError::NotUnicode(_)) => Err(invalid(name, "is not text")),
        };
        let (shm, ofi) = transports(get("TRANSOM_TRANSPORT")?.as_deref())?;
        Ok(Self {
            shm,
            ofi,
            ofi_provider: get("TRANSOM_OFI_PROVIDER")?,
            spin: number("TRANSOM_SPIN", get("TRANSOM_SPIN")?)?.map(Duration::from_micros),
            deadline: number("TRANSOM_DEADLINE", get("TRANSOM_DEADLINE")?)?.map(Duration::from_secs),
            heap: number("TRANSOM_HEAP", get("TRANSOM_HEAP")?)?,
            fault: fault(get("TRANSOM_FAULT")?)?,
        })
    }
}

fn invalid(name: &str, what: impl std::fmt::Display) -> Error {
    Error::new(Class::Argument, "init", format!("environment variable {name} {what}"))
}

fn transports(value: Option<&str>) -> Result<(bool, bool)> {
    let Some(value) = value else { return Ok((true, true)) };
    let (mut shm, mut ofi) = (false, false);
    for name in value.split(',').map(str::trim) {
        match name {
            "shm" => shm = true,
            "ofi" => ofi = true,
            _ => {
                let hint = if name == "tcp" { " (libfabric, over tcp where there is no better)" } else { "" };
                let what = format!("names {name:?}; known are shm and ofi{hint}");
                return Err(invalid("TRANSOM_TRANSPORT", what));
            }
        }
    }
    Ok((shm, ofi))
}

fn fault(value: Option<String>) -> Result<Option<u64>> {
    const NAME: &str = "TRANSOM_FAULT";
    match value.as_deref().map(|value| value.trim().strip_prefix("register:").ok_or(value)) {
        None => Ok(None),
        Some(Ok(rank)) => number(NAME, Some(rank.to_owned())),
        Some(Err(value)) => Err(invalid(NAME, format!("is {value:?}, not register:RANK"))),
    }
}

fn number(name: &str, value: Option<String>) -> Result<Option<u64>> {
    value
        .map(|value| {
            value.trim().parse().map_err(|_| invalid(name, format!("is {value:?}, not a whole number")))
        })
        .transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transports_are_parsed_strictly() {
        assert_eq!(transports(None).unwrap(), (true, true));
        assert_eq!(transports(Some("ofi")).unwrap(), (false, true));
        assert_eq!(transports(Some("shm, ofi")).unwrap(), (true, true));
        assert_eq!(transports(Some("tcp")).unwrap_err().class(), Class::Argument);
        assert!(transports(Some("")).is_err());
        assert!(number("X", Some("-1".into())).is_err());
        assert_eq!(number("X", Some("5".into())).unwrap(), Some(5));
        assert_eq!(fault(Some("register:3".into())).unwrap(), Some(3));
        assert!(fault(Some("3".into())).is_err() && fault(Some("register:all".into())).is_err());
    }
}
