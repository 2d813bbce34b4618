//! Errors as values: the standard's class, the operation, the rank and window, and what to do.

use std::fmt;

use transom_transport::TransportError;

/// The error classes of MPI-4.1 (§9.4 and §12.6) that the runtime reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// `MPI_ERR_RANK`: a rank that the job does not have.
    Rank,
    /// `MPI_ERR_GROUP`: a group that cannot be used here.
    Group,
    /// `MPI_ERR_DISP`: a displacement unit that cannot be used.
    Displacement,
    /// `MPI_ERR_RMA_RANGE`: an access outside the target's window.
    RmaRange,
    /// `MPI_ERR_RMA_SYNC`: wrong synchronisation of RMA calls: no epoch, or one in the way.
    RmaSync,
    /// `MPI_ERR_SIZE`: a window of a size that cannot be.
    Size,
    /// `MPI_ERR_NO_MEM`: no memory for a window.
    NoMemory,
    /// `MPI_ERR_TYPE`: element types that do not match.
    Type,
    /// `MPI_ERR_COUNT`: lengths that do not match.
    Count,
    /// `MPI_ERR_WIN`: a window that cannot be used so.
    Window,
    /// `MPI_ERR_BASE`: memory that is not this window's. For language bindings: types rule it out here.
    Base,
    /// `MPI_ERR_LOCKTYPE`: no type of lock. For language bindings: types rule it out here.
    LockType,
    /// `MPI_ERR_ASSERT`: an assertion that does not hold, or not here.
    Assert,
    /// `MPI_ERR_RMA_CONFLICT`: accesses to a window that conflict. No call looks for them yet.
    RmaConflict,
    /// `MPI_ERR_RMA_ATTACH`: memory cannot be attached, or was not.
    RmaAttach,
    /// `MPI_ERR_RMA_SHARED`: memory cannot be shared between these ranks.
    RmaShared,
    /// `MPI_ERR_RMA_FLAVOR`: a window of the wrong kind.
    RmaFlavour,
    /// `MPI_ERR_OP`: an operation that is not defined for the type.
    Op,
    /// `MPI_ERR_INFO_VALUE`: a hint that makes no sense.
    Info,
    /// `MPI_ERR_ARG`: another argument or setting that makes no sense.
    Argument,
    /// `MPI_ERR_TAG`: a tag that is out of range.
    Tag,
    /// `MPI_ERR_TRUNCATE`: a message that is longer than the buffer.
    Truncate,
    /// The request was cancelled.
    Cancelled,
    /// Ranks called different collectives.
    Collective,
    /// `MPI_ERR_PROC_FAILED` (MPI Forum's fault-tolerance proposal): a peer cannot be reached.
    Peer,
    /// `MPI_ERR_REVOKED` (as above): a member has revoked the communicator.
    Revoked,
    /// A deadline passed.
    Timeout,
    /// The environment that started the process is broken (launcher, PMI).
    Launch,
    /// A transport is not to be had here, or none that the settings allow reaches a peer.
    Transport,
    /// `MPI_ERR_OTHER`: the system said no.
    System,
    /// An error of the program's own.
    Other,
}

impl Class {
    /// The standard's name, or one like it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rank => "MPI_ERR_RANK",
            Self::Displacement => "MPI_ERR_DISP",
            Self::RmaRange => "MPI_ERR_RMA_RANGE",
            Self::RmaSync => "MPI_ERR_RMA_SYNC",
            Self::Size => "MPI_ERR_SIZE",
            Self::NoMemory => "MPI_ERR_NO_MEM",
            Self::Type => "MPI_ERR_TYPE",
            Self::Count => "MPI_ERR_COUNT",
            Self::Window => "MPI_ERR_WIN",
            Self::Base => "MPI_ERR_BASE",
            Self::LockType => "MPI_ERR_LOCKTYPE",
            Self::Assert => "MPI_ERR_ASSERT",
            Self::RmaConflict => "MPI_ERR_RMA_CONFLICT",
            Self::RmaAttach => "MPI_ERR_RMA_ATTACH",
            Self::RmaShared => "MPI_ERR_RMA_SHARED",
            Self::RmaFlavour => "MPI_ERR_RMA_FLAVOR",
            Self::Op => "MPI_ERR_OP",
            Self::Group => "MPI_ERR_GROUP",
            Self::Info => "MPI_ERR_INFO_VALUE",
            Self::Argument => "MPI_ERR_ARG",
            Self::Tag => "MPI_ERR_TAG",
            Self::Truncate => "MPI_ERR_TRUNCATE",
            Self::Cancelled => "cancelled",
            Self::Collective => "mismatched collectives",
            Self::Peer => "MPI_ERR_PROC_FAILED",
            Self::Revoked => "MPI_ERR_REVOKED",
            Self::Timeout => "deadline passed",
            Self::Launch => "launch",
            Self::Transport => "transport",
            Self::System => "MPI_ERR_OTHER",
            Self::Other => "program",
        }
    }
}

/// What went wrong, where, and what to do about it.
#[derive(Debug, Clone)]
pub struct Error(Box<Details>);

#[derive(Debug, Clone)]
struct Details {
    class: Class,
    operation: &'static str,
    rank: Option<usize>,
    target: Option<usize>,
    window: Option<u32>,
    dead: Option<usize>,
    goes_on: bool,
    message: String,
}

/// Result of a runtime call.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of `class` in `operation`; `message` says what is wrong and what to do.
    #[cold]
    pub(crate) fn new(class: Class, operation: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self(Box::new(Details {
            class,
            operation,
            rank: None,
            target: None,
            window: None,
            dead: None,
            goes_on: false,
            message,
        }))
    }

    /// What a transport reported during `operation`.
    #[cold]
    pub(crate) fn transport(operation: &'static str, error: &TransportError) -> Self {
        let class = match error {
            TransportError::Unavailable { .. } => Class::Transport,
            TransportError::NoMemory { .. } => Class::NoMemory,
            TransportError::Range { .. } => Class::RmaRange,
            TransportError::Undefined { .. } => Class::Type,
            TransportError::Peer { .. } | TransportError::Malformed { .. } => Class::Peer,
            _ => Class::System,
        };
        Self::new(class, operation, error.to_string())
    }

    /// An error of the program's own, to be returned from an epoch or a rank: `operation` says what it did.
    pub fn other(operation: &'static str, message: impl Into<String>) -> Self {
        Self::new(Class::Other, operation, message)
    }

    pub(crate) fn at_rank(mut self, rank: usize) -> Self {
        self.0.rank.get_or_insert(rank);
        self
    }

    pub(crate) fn with_target(mut self, target: usize) -> Self {
        self.0.target.get_or_insert(target);
        self
    }

    pub(crate) fn with_dead(mut self, rank: usize) -> Self {
        self.0.dead.get_or_insert(rank);
        self
    }

    pub(crate) fn while_it_goes_on(mut self) -> Self {
        self.0.goes_on = true;
        self
    }

    pub(crate) fn and_ended(mut self) -> Self {
        self.0.goes_on = false;
        self
    }

    pub(crate) fn in_window(mut self, window: u32) -> Self {
        self.0.window.get_or_insert(window);
        self
    }

    /// The class, as the standard has it.
    pub fn class(&self) -> Class {
        self.0.class
    }

    /// What is wrong, without where.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The call that failed: `put`, `lock`, `allocate`.
    pub fn operation(&self) -> &'static str {
        self.0.operation
    }

    /// The rank in the job that saw the error.
    pub fn rank(&self) -> Option<usize> {
        self.0.rank
    }

    /// The rank that the operation was for, in its window or communicator.
    pub fn target(&self) -> Option<usize> {
        self.0.target
    }

    /// The rank of the job whose death the error is about ([`Class::Peer`], in jobs that go on when a rank dies).
    pub fn dead(&self) -> Option<usize> {
        self.0.dead
    }

    /// Whether only the wait has ended, and what was awaited goes on: a receive from any source, when a rank has died that the
    /// program has not acknowledged ([`crate::Communicator::acknowledge`]; `MPI_ERR_PROC_FAILED_PENDING`).
    pub fn goes_on(&self) -> bool {
        self.0.goes_on
    }

    /// The number of the window, counted from 0 in the order of creation.
    pub fn window(&self) -> Option<u32> {
        self.0.window
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Details { class, operation, rank, target, window, message, dead: _, goes_on: _ } = &*self.0;
        write!(f, "{operation}")?;
        if let Some(target) = target {
            write!(f, " to rank {target}")?;
        }
        if let Some(window) = window {
            write!(f, " in window {window}")?;
        }
        if let Some(rank) = rank {
            write!(f, " at rank {rank}")?;
        }
        write!(f, ": {message} [{}]", class.name())
    }
}

impl std::error::Error for Error {}
