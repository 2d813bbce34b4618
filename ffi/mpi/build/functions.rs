//! The table of functions.

use crate::notation::{self, Type};

impl Function {
    /// Its name as users write it.
    pub fn full(&self, large: bool) -> String {
        let prefix = if self.extension { "MPIX" } else { "MPI" };
        format!("{prefix}_{}{}", self.name, if large { "_c" } else { "" })
    }
}

/// Whether the library has a function, and when it may be called.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum State {
    Missing,
    Initialised,
    Always,
    Value,
}

pub struct Argument {
    pub name: String,
    pub ty: Type,
}

/// One function, or with `large` a pair; the name is without `MPI_` or `MPIX_`.
pub struct Function {
    pub state: State,
    pub extension: bool,
    pub name: String,
    pub large: bool,
    pub arguments: Vec<Argument>,
    /// What it returns, if not an error code.
    pub returns: Option<Type>,
}

pub enum Line {
    Chapter(String),
    Function(Function),
}

pub fn parse(table: &str) -> Result<Vec<Line>, String> {
    // Behind the explanations.
    let lines = table.lines().skip_while(|line| !line.is_empty()).filter(|line| !line.is_empty());
    lines.map(|line| parse_line(line).map_err(|e| format!("functions.txt: {line}: {e}"))).collect()
}

fn parse_line(line: &str) -> Result<Line, String> {
    if let Some(chapter) = line.strip_prefix("# ") {
        return Ok(Line::Chapter(chapter.into()));
    }
    let mut words = line.split_whitespace();
    let state = match words.next() {
        Some("-") => State::Missing,
        Some("+") => State::Initialised,
        Some("*") => State::Always,
        Some("=") => State::Value,
        _ => return Err("the state is -, +, * or =".into()),
    };
    let name = words.next().ok_or("no name")?;
    let (name, extension) = name.strip_prefix("MPIX_").map_or((name, false), |name| (name, true));
    let (name, large) = name.strip_suffix("/c").map_or((name, false), |name| (name, true));
    let mut arguments = Vec::new();
    let mut returns = None;
    while let Some(word) = words.next() {
        if word == "->" {
            returns = Some(notation::parse(words.next().ok_or("-> what?")?)?);
            break;
        }
        let (name, ty) = word.split_once(':').ok_or("an argument is NAME:TYPE")?;
        arguments.push(Argument { name: name.into(), ty: notation::parse(ty)? });
    }
    Ok(Line::Function(Function { state, extension, name: name.into(), large, arguments, returns }))
}
