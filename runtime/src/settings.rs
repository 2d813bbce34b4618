//! Every setting of the runtime, in one table, read once from the environment.

mod range;

use std::env;
use std::time::Duration;

use transom_verbs::{Connect, Limits};

use crate::explain::ExplainSetting as Explain;
use crate::window::{AtomicsHint, CreatedHint, PagesHint, Word};
use crate::{Class, Error, Result};

pub use range::Range;

/// One line of the table of settings.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Environment variable.
    pub name: &'static str,
    /// Type and unit of its value.
    pub kind: &'static str,
    /// Which values it may have.
    pub range: Range,
    /// Value when it is not set.
    pub default: &'static str,
    /// What it does.
    pub meaning: &'static str,
}

/// The table: `transom info` prints it.
pub const SETTINGS: &[Setting] = &[
    Setting {
        name: "TRANSOM_TRANSPORT",
        kind: "list of shm, verbs, ofi, tcp",
        range: Range::Words(&TRANSPORTS),
        default: "shm,verbs,ofi,tcp",
        meaning: "transports that the job may use: shm between ranks of one node, else verbs where all have a device, else ofi \
                  where libfabric drives a card at all, else tcp; without tcp, ofi wherever libfabric is",
    },
    Setting {
        name: "TRANSOM_VERBS_DEVICE",
        kind: "name or list",
        range: Range::Text,
        default: "the first whose port is up, iWARP last",
        meaning: "RDMA device, as ibv_devices names it; of a list with commas the ranks take turns",
    },
    Setting {
        name: "TRANSOM_VERBS_CONNECT",
        kind: "auto, datagram or cm",
        range: Range::Word(&["auto", "datagram", "cm"]),
        default: "auto: datagrams, on iWARP rdma_cm",
        meaning: "how queue pairs are connected, the same at all ranks; rdma_cm needs librdmacm and an IP address of the device",
    },
    Setting {
        name: "TRANSOM_VERBS_SILENCE",
        kind: "seconds",
        range: Range::Number(1, u64::MAX),
        default: "10",
        meaning: "how long a peer's device may leave requests without an answer before the peer is lost; in powers of two: 10 is 7.5",
    },
    Setting {
        name: "TRANSOM_VERBS_QUEUE_PAIRS",
        kind: "number",
        range: Range::Number(1, u64::MAX),
        default: "1024",
        meaning: "queue pairs that a rank posts on; when one more peer is needed the one idle for longest goes",
    },
    Setting {
        name: "TRANSOM_VERBS_DEPTH",
        kind: "number",
        range: Range::Number(2, u64::MAX),
        default: "256",
        meaning: "work requests under way at one peer",
    },
    Setting {
        name: "TRANSOM_VERBS_COMPLETIONS",
        kind: "number",
        range: Range::Number(1, u64::MAX),
        default: "8192",
        meaning: "entries of the completion queue, which bound what is under way at all peers",
    },
    Setting {
        name: "TRANSOM_VERBS_RECEIVES",
        kind: "number",
        range: Range::Number(4, u64::MAX),
        default: "128",
        meaning: "buffers of 16 KiB for messages that arrive; on iWARP an eighth of so many for each peer, 4 to 64",
    },
    Setting {
        name: "TRANSOM_TCP_INTERFACE",
        kind: "list of names, addresses or networks",
        range: Range::Text,
        default: "all that are up but the loopback, or the loopback alone if all ranks are on one host",
        meaning: "network interfaces that tcp listens on, best first (eth0, 10.1.0.5, 10.1.0.0/16)",
    },
    Setting {
        name: "TRANSOM_TCP_CONNECT",
        kind: "seconds",
        range: Range::Number(1, u64::MAX),
        default: "10",
        meaning: "how long tcp tries to connect to a peer before that is an error",
    },
    Setting {
        name: "TRANSOM_TCP_SILENCE",
        kind: "seconds",
        range: Range::Number(1, u64::MAX),
        default: "10",
        meaning: "how long a peer's host may leave tcp without an answer before the peer is lost",
    },
    Setting {
        name: "TRANSOM_OFI_PROVIDER",
        kind: "name",
        range: Range::Text,
        default: "first that can, tcp before sockets",
        meaning: "libfabric provider, as fi_info names it (tcp;ofi_rxm, psm3, ...)",
    },
    Setting {
        name: "TRANSOM_OFI_INTERFACE",
        kind: "name or address",
        range: Range::Text,
        default: "the first that is up and not the loopback",
        meaning: "network interface that libfabric's tcp uses (eth0, or the start of an address)",
    },
    Setting {
        name: "TRANSOM_OFI_SILENCE",
        kind: "seconds",
        range: Range::Number(0, u64::MAX),
        default: "30",
        meaning: "how long a peer may answer nothing over libfabric while others wait, or take nothing at first, before it is lost; 0: for ever. Over RDMA devices, which notice it themselves, idle connections are tried four times within it",
    },
    Setting {
        name: "TRANSOM_LIBFABRIC",
        kind: "path",
        range: Range::Text,
        default: "libfabric.so.1",
        meaning: "the libfabric to open",
    },
    Setting {
        name: "TRANSOM_ATOMICS",
        kind: "auto, cpu or nic",
        range: Range::Word(&["auto", "cpu", "nic"]),
        default: "auto",
        meaning: "who updates elements of 8 bytes of windows that do not say so themselves (hint transom_atomics)",
    },
    Setting {
        name: "TRANSOM_INITIAL_ERRHANDLER",
        kind: "mpi_errors_are_fatal, mpi_errors_abort or mpi_errors_return",
        range: Range::Word(ERROR_HANDLERS),
        default: "mpi_errors_are_fatal",
        meaning: "what is done about errors in programs of MPI until they set an error handler (mpiexec -initial-errhandler)",
    },
    Setting {
        name: "TRANSOM_CREATED",
        kind: "auto, share or attach",
        range: Range::Word(&["auto", "share", "attach"]),
        default: "auto",
        meaning: "memory of the program's under windows that do not say so themselves (hint transom_created): shared in place with ranks of this node, or reached by cross-memory attach",
    },
    Setting {
        name: "TRANSOM_PAGES",
        kind: "small or huge",
        range: Range::Word(&["small", "huge"]),
        default: "small",
        meaning: "pages of memory that windows allocate which do not say so themselves (hint transom_pages): small ones as they are touched, or huge ones at once",
    },
    Setting {
        name: "TRANSOM_IBVERBS",
        kind: "path",
        range: Range::Text,
        default: "libibverbs.so.1",
        meaning: "the libibverbs to open",
    },
    Setting {
        name: "TRANSOM_RDMACM",
        kind: "path",
        range: Range::Text,
        default: "librdmacm.so.1",
        meaning: "the librdmacm to open, where queue pairs are connected by it",
    },
    Setting {
        name: "TRANSOM_PMIX",
        kind: "path",
        range: Range::Text,
        default: "the launcher's own (PMIX_PREFIX), else libpmix.so.2",
        meaning: "the libpmix to open, where a launcher with PMIx started the ranks",
    },
    Setting {
        name: "TRANSOM_SPIN",
        kind: "microseconds",
        range: Range::Number(0, u64::MAX),
        default: "5000, or 50 where ranks outnumber cores",
        meaning: "how long a blocked call polls before it sleeps in the kernel",
    },
    Setting {
        name: "TRANSOM_DEADLINE",
        kind: "seconds",
        range: Range::Number(0, u64::MAX),
        default: "none",
        meaning: "a blocked call gives up after this time, with an error that says what it waited for",
    },
    Setting {
        name: "TRANSOM_HEAP",
        kind: "bytes",
        range: Range::Number(0, u64::MAX),
        default: "the host's memory, at least 64 GiB, less where address space is short (ulimit -v, many ranks, valgrind)",
        meaning: "address space that a rank's allocated windows share; what does not fit, with 0 all, is mapped apart",
    },
    Setting {
        name: "TRANSOM_FLUSH",
        kind: "delivery, read or message",
        range: Range::Word(&["delivery", "read", "message"]),
        default: "delivery",
        meaning: "what tells over a network that puts have arrived: completions, a get behind them, an acknowledged message",
    },
    Setting {
        name: "TRANSOM_EXPLAIN",
        kind: "yes, no, count, or a file",
        range: Range::Text,
        default: "no",
        meaning: "counts operations by path and reason; yes: tables on standard error, count: for transom top alone, else lines of JSON in FILE.RANK",
    },
    Setting {
        name: "TRANSOM_FAULT",
        kind: "register:RANK or atomics:mixed",
        range: Range::Form(|text| fault(Some(text.to_owned())).is_ok()),
        default: "none",
        meaning: "for tests: no memory can be registered at this rank; or CPUs and network devices update the same elements",
    },
];

/// What goes wrong on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Registrations, at this rank.
    Register(u64),
    /// Atomics: elements that a device updates are updated by CPUs, too, though the device does not exclude them.
    MixedAtomics,
}

/// The settings' values.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub shm: bool,
    pub verbs: bool,
    pub ofi: bool,
    pub tcp: bool,
    pub verbs_device: Option<String>,
    pub verbs_connect: Connect,
    pub verbs_silence: Duration,
    pub verbs_limits: Limits,
    pub ofi_provider: Option<String>,
    pub ofi_silence: Option<Duration>,
    pub tcp_interface: Option<String>,
    pub tcp_connect: Duration,
    pub tcp_silence: Duration,
    pub spin: Option<Duration>,
    pub deadline: Option<Duration>,
    pub heap: Option<u64>,
    pub explain: Explain,
    pub fault: Option<Fault>,
    /// What windows want that do not say so.
    pub atomics: AtomicsHint,
    pub created: CreatedHint,
    pub pages: PagesHint,
    pub flush: Flush,
}

/// How a flush makes sure that what was put over a network is visible at the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flush {
    /// Completions mean it.
    Delivery,
    /// A get that follows the puts finds them done.
    Read,
    /// The target acknowledges a message that does not overtake them.
    Message,
}

impl Settings {
    /// Reads the environment. A value that makes no sense is an error, not a default.
    pub fn from_env() -> Result<Self> {
        Self::read(|name| match env::var(name) {
            Ok(value) => Ok(Some(value)),
            Err(env::VarError::NotPresent) => Ok(None),
            Err(env::VarError::NotUnicode(_)) => Err(invalid(name, "is not text")),
        })
    }

    fn read(get: impl Fn(&'static str) -> Result<Option<String>> + Copy) -> Result<Self> {
        let [shm, verbs, ofi, tcp] = transports(get("TRANSOM_TRANSPORT")?.as_deref())?;
        // For the door of MPI, which reads it when it needs it.
        error_handler(get("TRANSOM_INITIAL_ERRHANDLER")?.as_deref())?;
        let seconds = |name, default: Duration| match number(name, get(name)?)? {
            Some(0) => Err(invalid(name, "is 0: the least is 1")),
            value => Ok(value.map_or(default, Duration::from_secs)),
        };
        Ok(Self {
            shm,
            verbs,
            ofi,
            tcp,
            verbs_device: get("TRANSOM_VERBS_DEVICE")?,
            verbs_connect: connect(get("TRANSOM_VERBS_CONNECT")?.as_deref())?,
            verbs_silence: seconds("TRANSOM_VERBS_SILENCE", transom_verbs::Options::SILENCE)?,
            verbs_limits: limits(get)?,
            ofi_provider: get("TRANSOM_OFI_PROVIDER")?,
            ofi_silence: match number("TRANSOM_OFI_SILENCE", get("TRANSOM_OFI_SILENCE")?)? {
                Some(0) => None,
                seconds => Some(Duration::from_secs(seconds.unwrap_or(30))),
            },
            tcp_interface: get("TRANSOM_TCP_INTERFACE")?,
            tcp_connect: seconds("TRANSOM_TCP_CONNECT", transom_tcp::Options::CONNECT_TIMEOUT)?,
            tcp_silence: seconds("TRANSOM_TCP_SILENCE", transom_tcp::Options::PEER_TIMEOUT)?,
            spin: number("TRANSOM_SPIN", get("TRANSOM_SPIN")?)?.map(Duration::from_micros),
            deadline: number("TRANSOM_DEADLINE", get("TRANSOM_DEADLINE")?)?.map(Duration::from_secs),
            heap: number("TRANSOM_HEAP", get("TRANSOM_HEAP")?)?,
            explain: Explain::parse(get("TRANSOM_EXPLAIN")?.as_deref()),
            fault: fault(get("TRANSOM_FAULT")?)?,
            atomics: match get("TRANSOM_ATOMICS")? {
                None => AtomicsHint::Auto,
                Some(name) => AtomicsHint::named(name.trim()).ok_or_else(|| {
                    invalid("TRANSOM_ATOMICS", format!("is {name:?}, not auto, cpu or nic"))
                })?,
            },
            created: match get("TRANSOM_CREATED")? {
                None => CreatedHint::Auto,
                Some(name) => CreatedHint::named(name.trim()).ok_or_else(|| {
                    invalid("TRANSOM_CREATED", format!("is {name:?}, not auto, share or attach"))
                })?,
            },
            pages: match get("TRANSOM_PAGES")? {
                None => PagesHint::Small,
                Some(name) => PagesHint::named(name.trim())
                    .filter(|pages| *pages != PagesHint::Auto)
                    .ok_or_else(|| invalid("TRANSOM_PAGES", format!("is {name:?}, not small or huge")))?,
            },
            flush: flush(get("TRANSOM_FLUSH")?.as_deref())?,
        })
    }
}

fn invalid(name: &str, what: impl std::fmt::Display) -> Error {
    Error::new(Class::Argument, "init", format!("environment variable {name} {what}"))
}

/// The names of MPI's error handlers.
const ERROR_HANDLERS: &[&str] = &["mpi_errors_are_fatal", "mpi_errors_abort", "mpi_errors_return"];

fn error_handler(value: Option<&str>) -> Result<()> {
    match value.map(str::trim) {
        Some(name) if !ERROR_HANDLERS.contains(&name) => {
            let what = format!("is {name:?}, not {}", ERROR_HANDLERS.join(", "));
            Err(invalid("TRANSOM_INITIAL_ERRHANDLER", what))
        }
        _ => Ok(()),
    }
}

/// The names of transports.
const TRANSPORTS: [&str; 4] = ["shm", "verbs", "ofi", "tcp"];

/// Which of [`TRANSPORTS`] may be used.
fn transports(value: Option<&str>) -> Result<[bool; 4]> {
    let Some(value) = value else { return Ok([true; 4]) };
    let mut named = [false; 4];
    for name in value.split(',').map(str::trim) {
        let Some(place) = TRANSPORTS.iter().position(|known| *known == name) else {
            let what = format!("names {name:?}; known are shm, verbs, ofi and tcp");
            return Err(invalid("TRANSOM_TRANSPORT", what));
        };
        named[place] = true;
    }
    Ok(named)
}

/// How queue pairs are connected.
fn connect(value: Option<&str>) -> Result<Connect> {
    let Some(value) = value else { return Ok(Connect::Auto) };
    value
        .trim()
        .parse()
        .map_err(|()| invalid("TRANSOM_VERBS_CONNECT", format!("is {value:?}, not auto, datagram or cm")))
}

/// How a flush knows that puts have arrived.
fn flush(value: Option<&str>) -> Result<Flush> {
    match value.map(str::trim) {
        None | Some("delivery") => Ok(Flush::Delivery),
        Some("read") => Ok(Flush::Read),
        Some("message") => Ok(Flush::Message),
        Some(other) => Err(invalid("TRANSOM_FLUSH", format!("is {other:?}, not delivery, read or message"))),
    }
}

/// How much of an RDMA device to use.
fn limits(get: impl Fn(&'static str) -> Result<Option<String>>) -> Result<Limits> {
    let default = Limits::default();
    let number = |name: &'static str, least: usize, default: usize| match number(name, get(name)?)? {
        Some(value) if value < least as u64 => {
            Err(invalid(name, format!("is {value}: the least is {least}")))
        }
        value => Ok(value.map_or(default, |value| usize::try_from(value).unwrap_or(usize::MAX))),
    };
    Ok(Limits {
        queue_pairs: number("TRANSOM_VERBS_QUEUE_PAIRS", 1, default.queue_pairs)?,
        depth: number("TRANSOM_VERBS_DEPTH", 2, default.depth)?,
        completions: number("TRANSOM_VERBS_COMPLETIONS", 1, default.completions)?,
        receives: number("TRANSOM_VERBS_RECEIVES", 4, default.receives)?,
    })
}

fn fault(value: Option<String>) -> Result<Option<Fault>> {
    const NAME: &str = "TRANSOM_FAULT";
    let Some(value) = value else { return Ok(None) };
    match value.trim().split_once(':') {
        Some(("register", rank)) => Ok(number(NAME, Some(rank.to_owned()))?.map(Fault::Register)),
        Some(("atomics", "mixed")) => Ok(Some(Fault::MixedAtomics)),
        _ => Err(invalid(NAME, format!("is {value:?}, not register:RANK or atomics:mixed"))),
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

    /// What the table accepts the runtime takes, and nothing else.
    #[test]
    fn the_table_tells_what_is_accepted() {
        let values = "|0|1|2|3|4| 7 |-1|1.5|x|auto|cpu|nic|share|attach|cm|datagram|delivery|read|message|shm|shm, tcp|shm,udp|\
                      register:3|register:x|atomics:mixed|mpi_errors_return|yes|18446744073709551615|18446744073709551616";
        for setting in SETTINGS {
            for value in values.split('|') {
                let read = Settings::read(|name| Ok((name == setting.name).then(|| value.to_owned())));
                let checked = setting.check(value);
                assert_eq!(checked.is_ok(), read.is_ok(), "{}={value:?}: {checked:?}", setting.name);
            }
        }
        let range = |name| SETTINGS.iter().find(|setting| setting.name == name).unwrap().range_text();
        assert_eq!(range("TRANSOM_TCP_SILENCE"), "seconds, 1 or more");
        assert_eq!(range("TRANSOM_ATOMICS"), "auto, cpu or nic");
    }

    #[test]
    fn transports_are_parsed_strictly() {
        assert_eq!(transports(None).unwrap(), [true; 4]);
        assert_eq!(transports(Some("ofi")).unwrap(), [false, false, true, false]);
        assert_eq!(transports(Some("shm, verbs")).unwrap(), [true, true, false, false]);
        assert_eq!(transports(Some("shm,tcp")).unwrap(), [true, false, false, true]);
        assert_eq!(transports(Some("udp")).unwrap_err().class(), Class::Argument);
        assert!(transports(Some("")).is_err());
        assert!(number("X", Some("-1".into())).is_err());
        assert_eq!(number("X", Some("5".into())).unwrap(), Some(5));
        let small = limits(|name| Ok((name == "TRANSOM_VERBS_DEPTH").then(|| "2".into()))).unwrap();
        assert_eq!((small.depth, small.queue_pairs), (2, Limits::default().queue_pairs));
        assert!(limits(|_| Ok(Some("0".into()))).is_err());
        assert_eq!(connect(None).unwrap(), Connect::Auto);
        assert_eq!(connect(Some("cm ")).unwrap(), Connect::Manager);
        assert_eq!(connect(Some("datagram")).unwrap(), Connect::Datagram);
        assert_eq!((flush(None).unwrap(), flush(Some(" read")).unwrap()), (Flush::Delivery, Flush::Read));
        assert!(flush(Some("")).unwrap_err().to_string().contains("TRANSOM_FLUSH"));
        assert!(connect(Some("")).unwrap_err().to_string().contains("TRANSOM_VERBS_CONNECT"));
        assert_eq!(fault(Some("register:3".into())).unwrap(), Some(Fault::Register(3)));
        assert_eq!(fault(Some("atomics:mixed".into())).unwrap(), Some(Fault::MixedAtomics));
        assert!(fault(Some("3".into())).is_err() && fault(Some("register:all".into())).is_err());
    }
}
