//! Values under numbered names by one question: an addition to PMI-1 for servers that announce it. By the standard's questions a
//! job of n ranks asks n² times when it starts.

use std::ops::Range;

use crate::wire::{MAX_LINE, Message};

/// The command, its answer, and the field of `maxes` that says that a server knows it.
pub const COMMAND: &str = "transom_each";
/// Bytes of the answer's line that are not values.
const AROUND: usize = 64;

/// Asks for the values of `prefix`0`suffix`, `prefix`1`suffix`, …
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Each {
    /// What is before the number; may be empty.
    pub prefix: String,
    /// What is behind it; may be empty.
    pub suffix: String,
    /// The numbers.
    pub numbers: Range<u32>,
}

impl Each {
    /// The name of one value.
    pub fn key(&self, number: u32) -> String {
        format!("{}{number}{}", self.prefix, self.suffix)
    }

    /// The question.
    pub fn message(&self, kvs: &str) -> Message {
        Message::new(COMMAND)
            .with("kvsname", kvs)
            .with("prefix", &self.prefix)
            .with("suffix", &self.suffix)
            .with("from", self.numbers.start)
            .with("to", self.numbers.end)
    }

    /// Reads a question; nothing if it is none.
    pub fn of(message: &Message) -> Option<Self> {
        let text = |field| message.get(field).map(str::to_owned);
        let number = |field| message.get(field)?.parse().ok();
        let numbers = number("from")?..number("to")?;
        Some(Self { prefix: text("prefix")?, suffix: text("suffix")?, numbers })
    }

    /// The answer: values from the first number on, up to one that `find` does not know or that has a blank, as many as fit into a
    /// line.
    pub fn answer<'a>(&self, find: impl Fn(&str) -> Option<&'a str>) -> Message {
        let mut values = String::new();
        for number in self.numbers.clone() {
            let Some(value) = find(&self.key(number)).filter(|value| is_word(value)) else { break };
            if values.len() + 1 + value.len() > MAX_LINE - AROUND {
                break;
            }
            if number > self.numbers.start {
                values.push(' ');
            }
            values.push_str(value);
        }
        Message::new(COMMAND).with("rc", 0).with("value", values)
    }

    /// The values of an answer, not more than were asked for.
    pub fn values<'a>(&self, answer: &'a Message) -> impl Iterator<Item = &'a str> {
        answer
            .get("value")
            .unwrap_or_default()
            .split(' ')
            .filter(|value| is_word(value))
            .take(self.numbers.len())
    }
}

/// Whether a value is one word of a line.
fn is_word(value: &str) -> bool {
    !value.is_empty() && !value.contains(' ')
}

#[cfg(test)]
#[path = "each_tests.rs"]
mod tests;
