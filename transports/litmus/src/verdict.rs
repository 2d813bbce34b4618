//! What a test has found.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::side::Trouble;

/// Whether a property was seen to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// In every round.
    Holds,
    /// Not in every round, or the transport failed.
    Fails,
    /// The transport has nothing to which the property could belong.
    NotApplicable,
}

/// The result of a test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// The property's name.
    pub test: Cow<'static, str>,
    /// Whether it holds.
    pub outcome: Outcome,
    /// Whether Transom gives wrong results, or none, where it does not hold.
    pub relied: bool,
    /// What was seen, in numbers.
    pub evidence: String,
    /// What that means for users, and what to do.
    pub meaning: String,
}

impl Verdict {
    /// Whether Transom cannot be relied on with this.
    pub fn is_bad(&self) -> bool {
        self.relied && self.outcome == Outcome::Fails
    }

    /// From what a test's rounds have shown, or from what kept them from being done.
    pub(crate) fn new(test: &'static str, relied: bool, seen: Result<Seen, Trouble>) -> Self {
        let Seen { outcome, evidence, meaning } = seen.unwrap_or_else(|trouble| Seen {
            outcome: Outcome::Fails,
            evidence: trouble.to_string(),
            meaning: "The transport cannot be used as it is; the evidence is its own error.".into(),
        });
        Self { test: test.into(), outcome, relied, evidence, meaning: meaning.into_owned() }
    }
}

/// The changing part of a verdict.
pub(crate) struct Seen {
    pub outcome: Outcome,
    pub evidence: String,
    pub meaning: Cow<'static, str>,
}

impl Seen {
    /// Holds or fails, each with its meaning.
    pub fn judge(holds: bool, evidence: String, good: &'static str, bad: &'static str) -> Self {
        let (outcome, meaning) = if holds { (Outcome::Holds, good) } else { (Outcome::Fails, bad) };
        Self { outcome, evidence, meaning: meaning.into() }
    }

    pub fn not_applicable(evidence: impl Into<String>, meaning: &'static str) -> Self {
        Self { outcome: Outcome::NotApplicable, evidence: evidence.into(), meaning: meaning.into() }
    }
}
