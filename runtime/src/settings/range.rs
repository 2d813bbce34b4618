//! Which values settings may have.

use super::Setting;

/// Which values a setting may have.
#[derive(Debug, Clone, Copy)]
pub enum Range {
    /// Any text.
    Text,
    /// A whole number from the first to the second.
    Number(u64, u64),
    /// One of these words.
    Word(&'static [&'static str]),
    /// Some of these words, with commas between them.
    Words(&'static [&'static str]),
    /// What this accepts.
    Form(fn(&str) -> bool),
}

impl Setting {
    /// Type, unit and range, as a person reads them.
    pub fn range_text(&self) -> String {
        let kind = self.kind;
        match self.range {
            Range::Number(least, u64::MAX) => format!("{kind}, {least} or more"),
            Range::Number(least, most) => format!("{kind}, {least} to {most}"),
            _ => kind.to_owned(),
        }
    }

    /// Says what is wrong with a value.
    pub fn check(&self, value: &str) -> Result<(), String> {
        let value = value.trim();
        let unknown = || format!("not {}", self.kind);
        match self.range {
            Range::Text => Ok(()),
            Range::Number(least, most) => match value.parse::<u64>() {
                Err(_) => Err("not a whole number".to_owned()),
                Ok(number) if number < least => Err(format!("the least is {least}")),
                Ok(number) if number > most => Err(format!("the most is {most}")),
                Ok(_) => Ok(()),
            },
            Range::Word(words) => words.contains(&value).then_some(()).ok_or_else(unknown),
            Range::Words(words) => {
                let bad = value.split(',').map(str::trim).find(|word| !words.contains(word));
                bad.map_or(Ok(()), |bad| Err(format!("{bad:?} is none of {}", words.join(", "))))
            }
            Range::Form(accepts) => accepts(value).then_some(()).ok_or_else(unknown),
        }
    }
}
