//! What a flush must do to mean that data is visible.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Outcome, Verdict};

/// How a flush makes sure that what was put is visible at the target. The cheapest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlushMethod {
    /// Wait for completions: they mean it.
    Delivery,
    /// Get the last bytes back: the get finds puts done.
    ReadBack,
    /// Send a message that the target acknowledges: it does not overtake puts.
    Message,
    /// There is none.
    None,
}

impl fmt::Display for FlushMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Delivery => "delivery: a completion means that the data is visible",
            Self::ReadBack => "read back: a get after the puts finds them done (set TRANSOM_FLUSH=read)",
            Self::Message => {
                "message: the target acknowledges a message sent after the puts (set TRANSOM_FLUSH=message)"
            }
            Self::None => "none: nothing tells when data is visible",
        })
    }
}

/// Picks the flush method that the verdicts allow. A test that was not done allows nothing.
pub fn flush_method(verdicts: &[Verdict]) -> FlushMethod {
    let outcome = |test: &str| verdicts.iter().find(|verdict| verdict.test == test).map(|v| v.outcome);
    let holds = |test| outcome(test) == Some(Outcome::Holds);
    // Silence only adds to what an attended target shows: where nothing completes in silence, nothing completes early.
    let silent = outcome("delivery, silent target") != Some(Outcome::Fails);
    if holds("delivery") && holds("delivery, 1 to 64 bytes") && silent {
        FlushMethod::Delivery
    } else if holds("get after put") {
        FlushMethod::ReadBack
    } else if holds("message after put") {
        FlushMethod::Message
    } else {
        FlushMethod::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdicts(failing: &[&'static str]) -> Vec<Verdict> {
        let all = [
            "delivery",
            "delivery, silent target",
            "delivery, 1 to 64 bytes",
            "put after put",
            "message after put",
            "get after put",
        ];
        let verdict = |test: &'static str| Verdict {
            test: test.into(),
            outcome: if failing.contains(&test) { Outcome::Fails } else { Outcome::Holds },
            relied: true,
            evidence: String::new(),
            meaning: String::new(),
        };
        all.map(verdict).into()
    }

    #[test]
    fn the_cheapest_that_is_allowed() {
        assert_eq!(flush_method(&verdicts(&[])), FlushMethod::Delivery);
        for early in ["delivery", "delivery, silent target", "delivery, 1 to 64 bytes"] {
            assert_eq!(flush_method(&verdicts(&[early])), FlushMethod::ReadBack, "{early}");
        }
        assert_eq!(flush_method(&verdicts(&["delivery", "get after put"])), FlushMethod::Message);
        let nothing = ["delivery", "get after put", "message after put"];
        assert_eq!(flush_method(&verdicts(&nothing)), FlushMethod::None);
    }

    #[test]
    fn order_of_puts_alone_decides_nothing() {
        assert_eq!(flush_method(&verdicts(&["put after put"])), FlushMethod::Delivery);
    }

    #[test]
    fn what_was_not_tested_allows_nothing() {
        assert_eq!(flush_method(&[]), FlushMethod::None);
        let only_delivery = &verdicts(&[])[..1];
        assert_eq!(flush_method(only_delivery), FlushMethod::None);
    }

    #[test]
    fn a_target_that_must_be_awake_does_not_forbid_delivery() {
        let mut all = verdicts(&[]);
        all[1].outcome = Outcome::NotApplicable;
        assert_eq!(flush_method(&all), FlushMethod::Delivery);
    }
}
