//! The table of constants: handles, integers, pointers.

use std::fmt::Write;

use crate::notation::{c_handle, rust_handle};

/// A line of the table; names are without `MPI_`.
pub enum Constant {
    Title(String),
    Handle { kind: String, name: String, value: u64 },
    Alias { name: String, of: String },
    Int { name: String, value: i64 },
    Pointer { ty: String, name: String, value: i64 },
}

pub fn parse(table: &str) -> Result<Vec<Constant>, String> {
    table.lines().filter(|line| !line.is_empty()).map(parse_line).filter_map(Result::transpose).collect()
}

fn parse_line(line: &str) -> Result<Option<Constant>, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let wrong = |e: &dyn std::fmt::Display| format!("constants.txt: {line}: {e}");
    let int = |value: &str| value.parse::<i64>().map_err(|e| wrong(&e));
    Ok(Some(match words[..] {
        ["#", ..] if line.len() > 2 && line.contains("of the MPI-5.0 ABI") => return Ok(None),
        ["#"] | ["#", "handle", ..] | ["#", "Names", ..] => return Ok(None),
        ["#", ..] => Constant::Title(line[2..].to_owned()),
        ["handle", kind, name, value] => {
            let value = u64::from_str_radix(value.trim_start_matches("0x"), 16).map_err(|e| wrong(&e))?;
            Constant::Handle { kind: kind.into(), name: name.into(), value }
        }
        ["alias", name, of] => Constant::Alias { name: name.into(), of: of.into() },
        ["int", name, value] => Constant::Int { name: name.into(), value: int(value)? },
        ["pointer", ty, name, value] => {
            Constant::Pointer { ty: ty.into(), name: name.into(), value: int(value)? }
        }
        _ => return Err(wrong(&"not a line of this table")),
    }))
}

/// The constants for Rust, names without `MPI_`.
pub fn rust(constants: &[Constant]) -> String {
    let mut text = String::new();
    for constant in constants {
        let _ = match constant {
            Constant::Title(_) => Ok(()),
            Constant::Handle { kind, name, value } => {
                let ty = rust_handle(kind);
                writeln!(text, "pub const {}: {ty} = {ty}({value:#x});", rust_name(name))
            }
            Constant::Alias { name, of } => writeln!(text, "pub const {name}: Datatype = {of};"),
            Constant::Int { name, value } => writeln!(text, "pub const {name}: c_int = {value};"),
            // Pointers are compared by address.
            Constant::Pointer { name, value, .. } => {
                writeln!(text, "pub const {name}: usize = {value}_i64 as usize;")
            }
        };
    }
    let classes = constants.iter().filter_map(|constant| match constant {
        Constant::Int { name, .. }
            if ["ERR_", "T_ERR_", "MPIX_ERR_"].iter().any(|begin| name.starts_with(begin)) =>
        {
            Some(name)
        }
        _ => None,
    });
    let _ = writeln!(
        text,
        "/// Every error class with its name.\npub const ERROR_CLASSES: &[(c_int, &str)] = &["
    );
    for name in classes {
        let _ = writeln!(text, "    ({name}, \"{}\"),", full_name(name));
    }
    text.push_str(
        "];\n/// Every predefined datatype with its name.\npub const DATATYPES: &[(Datatype, &str)] = &[\n",
    );
    for constant in constants {
        if let Constant::Handle { kind, name, .. } = constant
            && kind == "type"
        {
            let _ = writeln!(text, "    ({}, \"{}\"),", rust_name(name), full_name(name));
        }
    }
    text.push_str("];\n");
    text
}

/// The name for users.
pub fn full_name(name: &str) -> String {
    if name.starts_with("MPIX_") { name.into() } else { format!("MPI_{name}") }
}

/// `2INT` is no name in Rust.
fn rust_name(name: &str) -> String {
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name.into() }
}

/// The constants for C.
pub fn c<'a>(constants: impl Iterator<Item = &'a Constant>) -> String {
    let mut text = String::new();
    let mut of = "";
    for constant in constants {
        let _ = match constant {
            Constant::Title(title) => writeln!(text, "\n/* {title} */"),
            Constant::Handle { kind, name, value } => {
                let ty = c_handle(kind);
                if of != kind {
                    let _ = writeln!(text, "\ntypedef struct MPI_ABI_{} *{ty};", &ty[4..]);
                    of = kind;
                }
                define(&mut text, name, &format!("(({ty}){value:#05x})"))
            }
            Constant::Alias { name, of } => define(&mut text, name, &format!("MPI_{of}")),
            Constant::Int { name, value } if *value < 0 => define(&mut text, name, &format!("({value})")),
            Constant::Int { name, value } => define(&mut text, name, &value.to_string()),
            Constant::Pointer { ty, name, value } => define(&mut text, name, &format!("(({ty}){value})")),
        };
    }
    text
}

fn define(text: &mut String, name: &str, value: &str) -> std::fmt::Result {
    writeln!(text, "#define {:<32} {value}", full_name(name))
}
