//! Two-sided messages (MPI-4.1 chapter 3), as far as programs around windows need them.
//!
//! A message is named by its sender's rank, a tag, and the communicator; two messages that one receive could
//! take are received in the order in which they were sent (§3.5).

mod isend;
mod matched;
pub mod partitioned;
mod probe;
pub mod raw;
mod receive;
mod send;
mod slot;

pub use matched::Message;

use std::sync::atomic::Ordering;

use crate::comm::Channel;
use crate::protocol::messages::{Envelope, Pattern};
use crate::waits::{Awaits, Subject};
use crate::{Class, NULL_RANK, Result};

/// From whom to receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// Any rank (`MPI_ANY_SOURCE`).
    Any,
    /// This rank.
    Rank(usize),
}

impl From<usize> for Source {
    fn from(rank: usize) -> Self {
        Self::Rank(rank)
    }
}

/// Which messages to receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tag {
    /// Any (`MPI_ANY_TAG`).
    Any,
    /// Those sent with this tag.
    Is(i32),
}

impl From<i32> for Tag {
    fn from(tag: i32) -> Self {
        Self::Is(tag)
    }
}

/// A message from any rank (`MPI_ANY_SOURCE`, MPI-4.1 §3.2.4).
pub const ANY_SOURCE: Source = Source::Any;
/// A message with any tag (`MPI_ANY_TAG`, MPI-4.1 §3.2.4).
pub const ANY_TAG: Tag = Tag::Any;

/// The status of a message (`MPI_Status`, MPI-4.1 §3.2.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status {
    /// Rank of the sender in the communicator.
    pub source: usize,
    /// Its tag.
    pub tag: i32,
    /// Its length.
    pub bytes: usize,
}

impl Status {
    /// Of a receive from [`NULL_RANK`] (§3.10): no bytes, and a tag of -1, which no message has.
    const NULL: Self = Self { source: NULL_RANK, tag: -1, bytes: 0 };

    fn of(channel: &Channel, envelope: Envelope, bytes: usize) -> Self {
        let source = channel.group.rank_of(envelope.source).unwrap_or(envelope.source);
        Self { source, tag: envelope.tag, bytes }
    }

    /// How many elements it has (`MPI_Get_count`); `None` if its bytes are not whole elements.
    pub fn count<T>(&self) -> Option<usize> {
        let size = size_of::<T>().max(1);
        self.bytes.is_multiple_of(size).then(|| self.bytes / size)
    }
}

/// The result of a receive that has matched a message: its data, or why that is lost, and the message's status.
pub(crate) type Matched<T> = (Result<T>, Status);

fn check_tag(channel: &Channel, operation: &'static str, tag: i32) -> Result<()> {
    if tag >= 0 {
        return Ok(());
    }
    let message = format!("tag {tag} is negative: tags are from 0 to {}", i32::MAX);
    Err(channel.error(Class::Tag, operation, message))
}

/// What to look for; nothing from the null rank.
fn pattern(channel: &Channel, operation: &'static str, source: Source, tag: Tag) -> Result<Option<Pattern>> {
    channel.check_use(operation)?;
    let tag = match tag {
        Tag::Any => None,
        Tag::Is(tag) => Some(tag),
    };
    tag.map_or(Ok(()), |tag| check_tag(channel, operation, tag))?;
    let source = match source {
        Source::Any => None,
        Source::Rank(NULL_RANK) => return Ok(None),
        Source::Rank(rank) => {
            channel.check_rank(operation, rank)?;
            Some(channel.job_rank(rank))
        }
    };
    Ok(Some(Pattern { context: channel.context, source, tag }))
}

/// What is awaited; `world` is the source in the job, or any member is.
fn awaited(world: Option<usize>, channel: &Channel, source: Source, tag: Tag) -> Awaits {
    let tag = match tag {
        Tag::Any => "any tag".to_owned(),
        Tag::Is(tag) => format!("tag {tag}"),
    };
    let text = match source {
        Source::Any => format!("a message with {tag} from any rank"),
        Source::Rank(rank) => format!("a message with {tag} from rank {rank}"),
    };
    let awaits = Awaits::new(text, Subject::Receive, world).on_channel(channel);
    if world.is_some() {
        return awaits;
    }
    Awaits { known: channel.acknowledged.load(Ordering::Relaxed), ..awaits.among(&channel.group) }
}
