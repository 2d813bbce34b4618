//! Agreements of ranks of which some may end: a question that only Transom's launcher answers, and not at once. A rank may have asked
//! several, and goes on with other questions meanwhile.

use std::collections::HashMap;
use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::client::Client;
use crate::error::{Error, Result};
use crate::wire::Message;

const ASK: &str = "transom_agree";
const ANSWER: &str = "transom_agree_result";

/// What a rank contributes to an agreement.
#[derive(Debug, Clone, Copy)]
pub struct Contribution<'a> {
    /// Names the agreement at all its members.
    pub key: &'a str,
    /// The ranks that are to agree, as ranges such as `0-3,7`.
    pub members: &'a str,
    /// Of which those remain that all contribute.
    pub flags: u64,
    /// The ranks of which this one has acknowledged that they have ended, as ranges; empty if there are none.
    pub acknowledged: &'a str,
}

/// What ranks have agreed on, the same at all that are told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agreement {
    /// Those flags that all have contributed.
    pub flags: u64,
    /// A number that no other agreement of the job has.
    pub number: u64,
    /// The members that have ended, separated by commas; `-` if none has.
    pub gone: String,
    /// Whether all others have acknowledged that.
    pub acknowledged: bool,
}

/// Is told of an agreement, by the thread that reads the launcher's answer.
pub type Answered = Box<dyn FnOnce(Result<Agreement>) + Send>;

/// Agreements under way, by their keys.
#[derive(Default)]
pub(crate) struct Agreements(HashMap<String, Answered>);

impl fmt::Debug for Agreements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Agreements {
    /// Takes a message that is about an agreement, and says whether it is one.
    pub fn takes(&mut self, message: &Message) -> bool {
        if message.cmd() != ANSWER {
            return false;
        }
        let refused = message.get("rc").filter(|rc| *rc != "0");
        match (message.get("key").and_then(|key| self.0.remove(key)), refused) {
            (Some(answered), None) => answered(agreement(message)),
            (Some(answered), Some(rc)) => answered(Err(refusal(rc))),
            // A launcher that does not know the question does not say which it was.
            (None, Some(rc)) => self.fail(|| refusal(rc)),
            // Nobody waits for it any more.
            (None, None) => {}
        }
        true
    }

    fn fail(&mut self, error: impl Fn() -> Error) {
        self.0.drain().for_each(|(_, answered)| answered(Err(error())));
    }
}

fn refusal(rc: &str) -> Error {
    Error::Refused { request: ASK, rc: rc.to_owned() }
}

fn agreement(message: &Message) -> Result<Agreement> {
    let number = |name| message.get(name).and_then(|value| value.parse().ok());
    let parts = (number("flags"), number("number"), message.get("gone"), message.get("acknowledged"));
    match parts {
        (Some(flags), Some(number), Some(gone), Some(known)) => {
            Ok(Agreement { flags, number, gone: gone.to_owned(), acknowledged: known == "1" })
        }
        _ => Err(Error::Unexpected { expected: "an agreement", got: format!("{message:?}") }),
    }
}

impl Client {
    /// Contributes to an agreement of some ranks, whichever of these have ended or end meanwhile, and does not wait for it: `answered` is
    /// told of it by a later call, whatever that asks, or by [`Client::take_agreements`].
    ///
    /// # Errors
    /// The question could not be sent; then `answered` is not called. The launcher may refuse it, if it is not Transom's or the
    /// question makes no sense to it: `answered` is told of [`Error::Refused`] then.
    pub fn start_agreement(&mut self, own: Contribution<'_>, answered: Answered) -> Result<()> {
        let Contribution { key, members, flags, acknowledged } = own;
        let acknowledged = if acknowledged.is_empty() { "-" } else { acknowledged };
        let ask = Message::new(ASK).with("key", key).with("members", members).with("flags", flags);
        self.send(&ask.with("acknowledged", acknowledged))?;
        self.agreements.0.insert(key.to_owned(), answered);
        Ok(())
    }

    /// Tells of those agreements that are there. Says whether others are under way. When the connection fails, all are told so.
    pub fn take_agreements(&mut self) -> bool {
        if let Err(error) = self.read_agreements() {
            let error = Arc::new(error);
            self.agreements.fail(|| Error::Shared(error.clone()));
        }
        !self.agreements.0.is_empty()
    }

    fn read_agreements(&mut self) -> Result<()> {
        loop {
            if let Some(message) = self.next_message()? {
                return Err(Error::Unexpected { expected: ANSWER, got: message.cmd().to_owned() });
            }
            if self.agreements.0.is_empty() || !self.read_at_once("an agreement")? {
                return Ok(());
            }
        }
    }

    /// A descriptor that can be read when the launcher has said something.
    ///
    /// # Errors
    /// There are too many descriptors.
    pub fn answers(&self) -> Result<OwnedFd> {
        self.descriptor()
    }
}
