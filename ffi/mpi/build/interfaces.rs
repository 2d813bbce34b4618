//! Interfaces of Fortran's modules: each function of the table with the types of its arguments.
//!
//! What is not read is `intent(inout)`, where the standard has `intent(out)`: a call that fails leaves it alone, and a compiler may
//! forget what was in an argument that is only written to.

use std::fmt::Write;

use crate::fortran::{arguments, has_error};
use crate::functions::{Argument, Function};
use crate::notation::Shape;

/// Arguments that are logical.
const LOGICAL: [&str; 8] =
    ["commute", "flag", "high", "is_set", "periods", "remain_dims", "reorder", "weighted"];

/// Functions whose attributes are INTEGER, as before MPI-2.
const OLD_ATTRIBUTES: [&str; 3] = ["Attr_get", "Attr_put", "Keyval_create"];

/// Columns of a line.
const COLUMNS: usize = 110;

/// Which interface.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Of mpi.
    Mpi,
    /// Of mpi, with a C_PTR.
    MpiCptr,
    /// Of mpi_f08.
    F08,
    /// Of mpi_f08, with large counts.
    Large,
}

impl Form {
    fn is_f08(self) -> bool {
        matches!(self, Self::F08 | Self::Large)
    }

    fn large(self) -> bool {
        self == Self::Large
    }

    /// The specific name, of which the library's is made (MPI-4.1 §19.1.5).
    pub fn name(self, function: &Function) -> String {
        let ending = match self {
            Self::MpiCptr => "_cptr",
            Self::Mpi => "",
            Self::F08 | Self::Large => "_f08",
        };
        // A function that returns a value has one name.
        let ending = if function.returns.is_some() { "" } else { ending };
        format!("{}{ending}", function.full(self.large()))
    }
}

/// Whether a generic name can tell the form for large counts from the other: by an argument that is of another kind. Addresses and counts
/// are of one.
pub fn is_told_apart(function: &Function) -> bool {
    function.arguments.iter().any(|argument| matches!(argument.ty.base(), "n" | "u" | "d"))
}

/// The interface of a function; `profiling` is `P` or nothing.
pub fn body(function: &Function, form: Form, profiling: &str) -> String {
    let name = format!("{profiling}{}", form.name(function));
    let kind = if function.returns.is_some() { "function" } else { "subroutine" };
    let mut given: Vec<&str> = arguments(function).map(name_of).collect();
    if has_error(function) {
        given.push("ierror");
    }
    let mut text = wrapped(&format!("    {kind} {name}("), &given, ")");
    text.push_str("      import\n");
    for argument in arguments(function) {
        declare(&mut text, function, argument, form);
    }
    if has_error(function) {
        let optional = if form.is_f08() { "optional, " } else { "" };
        let _ = writeln!(text, "      integer, {optional}intent(out) :: ierror");
    }
    if let Some(ty) = &function.returns {
        let ty = if ty.is("double") { "double precision" } else { "integer(MPI_ADDRESS_KIND)" };
        let _ = writeln!(text, "      {ty} :: {name}");
    }
    let _ = writeln!(text, "    end {kind}");
    text
}

/// Names in lines of their length, with what is before and behind.
pub fn wrapped(before: &str, names: &[&str], behind: &str) -> String {
    let (mut text, mut line) = (String::new(), before.to_owned());
    for (i, name) in names.iter().enumerate() {
        let comma = if i + 1 == names.len() { "" } else { ", " };
        if line.len() + name.len() + comma.len() > COLUMNS {
            let _ = writeln!(text, "{}&", line);
            line = " ".repeat(10);
        }
        line.push_str(name);
        line.push_str(comma);
    }
    let _ = writeln!(text, "{line}{behind}");
    text
}

/// `index` was no name that C's headers could have.
fn name_of(argument: &Argument) -> &str {
    if argument.name == "indx" { "index" } else { &argument.name }
}

fn declare(text: &mut String, function: &Function, argument: &Argument, form: Form) {
    let name = name_of(argument);
    let intent = intent(function, argument);
    let attributes = |ty: &str| format!("{ty}{intent}");
    let declared = match argument.ty.shape {
        Shape::Function if form.is_f08() => format!("procedure(MPI_{})", argument.ty.base()),
        Shape::Function => "external".into(),
        _ if is_choice(argument, form) => {
            let _ = writeln!(text, "      !GCC$ ATTRIBUTES NO_ARG_CHECK :: {name}");
            let reads = if argument.ty.is("cbuf") { ", intent(in)" } else { "" };
            format!("type(*), dimension(*){reads}{}", kept(function))
        }
        _ if argument.name == "newcomm" && function.name.starts_with("Comm_idup") => {
            format!("{}{}", attributes(&type_of(function, argument, form)), kept(function))
        }
        _ => attributes(&type_of(function, argument, form)),
    };
    let _ = writeln!(text, "      {declared} :: {name}{}", dimensions(argument, form));
}

/// The attributes of a variable that is used after the call, too. The standard says asynchronous, so that compilers refuse copies of sections;
/// of what is no target, gfortran assumes that calls forget its address, and keeps values over a later call that stores others.
fn kept(function: &Function) -> &'static str {
    let outlives = |argument: &Argument| matches!(argument.ty.base(), "win" | "req");
    let names = ["_begin", "_end", "_attach", "Free_mem", "Get_address"];
    let is_named = names.iter().any(|part| function.name.contains(part));
    if is_named || function.arguments.iter().any(outlives) { ", asynchronous, target" } else { "" }
}

/// Any variable: the standard's choice buffers, as arrays that are contiguous. `MPI_SUBARRAYS_SUPPORTED` is false.
fn is_choice(argument: &Argument, form: Form) -> bool {
    let is_buffer = argument.ty.is("buf") || argument.ty.is("cbuf");
    is_buffer
        && match &*argument.name {
            "attribute_val" | "baseptr" | "extra_state" => false,
            "buffer_addr" => !form.is_f08(),
            _ => true,
        }
}

fn intent(function: &Function, argument: &Argument) -> &'static str {
    let is_text = matches!(argument.ty.base(), "char*" | "char**");
    let is_read = matches!(argument.ty.shape, Shape::Input | Shape::ConstPointer | Shape::Triples);
    let is_value = argument.ty.shape == Shape::Value && !argument.ty.is("text");
    let is_place = matches!(&*argument.name, "baseptr" | "buffer_addr")
        || argument.name == "attribute_val" && function.name.to_lowercase().contains("get");
    if (is_text || is_read || is_value) && !is_place { ", intent(in)" } else { ", intent(inout)" }
}

fn type_of(function: &Function, argument: &Argument, form: Form) -> String {
    let is_logical = LOGICAL.contains(&&*argument.name);
    let handle = |name: &str| if form.is_f08() { format!("type(MPI_{name})") } else { "integer".into() };
    let counts = |small: &str| if form.large() { "integer(MPI_COUNT_KIND)".into() } else { small.to_owned() };
    match argument.ty.base() {
        "buf" | "cbuf" if OLD_ATTRIBUTES.contains(&&*function.name) => "integer".into(),
        "buf" | "cbuf" if matches!(&*argument.name, "baseptr" | "buffer_addr") && form != Form::Mpi => {
            "type(C_PTR)".into()
        }
        "buf" | "cbuf" | "aint" => "integer(MPI_ADDRESS_KIND)".into(),
        "int" if is_logical => "logical".into(),
        "n" => counts("integer"),
        "a" => counts("integer(MPI_ADDRESS_KIND)"),
        "u" | "d" if form.large() => "integer(MPI_ADDRESS_KIND)".into(),
        "count" => "integer(MPI_COUNT_KIND)".into(),
        "offset" => "integer(MPI_OFFSET_KIND)".into(),
        "str" | "text" | "char*" | "char**" => "character(len=*)".into(),
        "status" if argument.name == "f08_status" => "type(MPI_Status)".into(),
        "status" => handle("Status"),
        "comm" => handle("Comm"),
        "group" => handle("Group"),
        "win" => handle("Win"),
        "type" => handle("Datatype"),
        "op" => handle("Op"),
        "req" => handle("Request"),
        "msg" => handle("Message"),
        "info" => handle("Info"),
        "errh" => handle("Errhandler"),
        "file" => handle("File"),
        "session" => handle("Session"),
        _ => "integer".into(),
    }
}

fn dimensions(argument: &Argument, form: Form) -> &'static str {
    let is_status = argument.ty.base() == "status" && argument.name != "f08_status" && !form.is_f08();
    let is_array = matches!(argument.ty.shape, Shape::Input | Shape::Output)
        || argument.name.starts_with("array_of")
        || argument.name.ends_with("weights");
    match argument.ty.shape {
        _ if argument.ty.base() == "char**" => "(count, *)",
        _ if is_status && is_array => "(MPI_STATUS_SIZE, *)",
        _ if is_status || argument.name == "f_status" => "(MPI_STATUS_SIZE)",
        Shape::Triples => "(3, *)",
        _ if is_array => "(*)",
        _ => "",
    }
}
