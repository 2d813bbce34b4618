//! What the library exports: each function as `MPI_` and `PMPI_`, in its plain and its large form.

use std::fmt::Write;

use crate::functions::{Argument, Function, Line, State};

/// Functions that have a short way, to be tried before all else (`mod short`).
const SHORT: [&str; 35] = [
    "Barrier",
    "Bcast",
    "Reduce",
    "Allreduce",
    "Allgather",
    "Alltoall",
    "Gather",
    "Scatter",
    "Scan",
    "Exscan",
    "Reduce_scatter",
    "Reduce_scatter_block",
    "Allgatherv",
    "Alltoallv",
    "Send",
    "Isend",
    "Recv",
    "Irecv",
    "Put",
    "Get",
    "Rput",
    "Rget",
    "Accumulate",
    "Get_accumulate",
    "Fetch_and_op",
    "Compare_and_swap",
    "Win_flush",
    "Win_flush_local",
    "Win_sync",
    "Win_lock",
    "Win_unlock",
    "Win_lock_all",
    "Win_unlock_all",
    "Wait",
    "Test",
];

/// Those among them that the long way tries once more, for arguments that are not so short.
const ANY: [&str; 4] = ["Accumulate", "Get_accumulate", "Fetch_and_op", "Compare_and_swap"];

pub fn rust(lines: &[Line]) -> String {
    let mut text = String::new();
    for line in lines {
        if let Line::Function(function) = line {
            export(&mut text, function, false);
            if function.large {
                export(&mut text, function, true);
            }
        }
    }
    text
}

/// The object whose error handler is called.
fn error_object(function: &Function) -> String {
    let of = |kind: &str| function.arguments.iter().find(|argument| argument.ty.is(kind));
    if let Some(win) = of("win") {
        format!("ErrorObject::Win({})", name(&win.name))
    } else if let Some(comm) = of("comm") {
        format!("ErrorObject::Comm({})", name(&comm.name))
    } else if let Some(session) = of("session") {
        format!("ErrorObject::Session({})", name(&session.name))
    } else if function.name.starts_with("T_") {
        "ErrorObject::Tool".into()
    } else if of("file").is_some() || function.name.starts_with("File_") {
        "ErrorObject::File".into()
    } else {
        "ErrorObject::None".into()
    }
}

/// No name of an argument is a keyword, or one of ours.
fn name(name: &str) -> String {
    format!("{name}_")
}

/// The arguments as the library's own function takes them. Address, count and datatype of a buffer are one, as are rank, tag
/// and communicator of a message, the target's side of an operation on a window, and what one on an element is about.
fn passed(function: &Function, large: bool) -> String {
    let mut rest = &function.arguments[..];
    let mut passed = Vec::new();
    loop {
        let pass = |argument: &Argument| argument.ty.pass(&name(&argument.name), large);
        rest = match rest {
            [address, n, ty, rest @ ..] if is_buffer([address, n, ty]) => {
                let address = name(&address.name);
                passed.push(format!("Triple::new({address}, {}, {})", pass(n), pass(ty)));
                rest
            }
            [rank, tag, comm, rest @ ..] if is_envelope([rank, tag, comm]) => {
                passed.push(format!("Envelope::new({})", [rank, tag, comm].map(pass).join(", ")));
                rest
            }
            [rank, at, n, ty, rest @ ..] if is_target([rank, at]) && n.ty.is("n") => {
                passed.push(format!("There::new({})", [rank, at, n, ty].map(pass).join(", ")));
                rest
            }
            [operand, result, ty, rank, at, rest @ ..] if ty.ty.is("type") && is_target([rank, at]) => {
                let [operand, result] = [operand, result].map(|address| name(&address.name));
                let others = [ty, rank, at].map(pass).join(", ");
                passed.push(format!("One::new({operand}, {result}, {others})"));
                rest
            }
            [argument, rest @ ..] => {
                passed.extend((!argument.ty.is("...")).then(|| pass(argument)));
                rest
            }
            [] => return passed.join(", "),
        };
    }
}

fn is_buffer([address, n, ty]: [&Argument; 3]) -> bool {
    (address.ty.is("buf") || address.ty.is("cbuf")) && n.ty.is("n") && ty.ty.is("type")
}

fn is_envelope([rank, tag, comm]: [&Argument; 3]) -> bool {
    matches!(&*rank.name, "dest" | "source") && tag.name == "tag" && comm.ty.is("comm")
}

fn is_target([rank, at]: [&Argument; 2]) -> bool {
    rank.name == "target_rank" && at.name == "target_disp"
}

fn export(text: &mut String, function: &Function, large: bool) {
    let full = function.full(large);
    let named = || function.arguments.iter().filter(|argument| !argument.ty.is("..."));
    let arguments: Vec<String> =
        named().map(|a| format!("{}: {}", name(&a.name), a.ty.rust(large))).collect();
    let arguments = arguments.join(", ");
    let given: Vec<String> = named().map(|a| name(&a.name)).collect();
    let given = given.join(", ");
    let passed = passed(function, large);
    let returns = function.returns.as_ref().map_or("c_int".into(), |ty| ty.rust(false));
    let own = function.name.to_lowercase();
    let error_object = error_object(function);
    let body = match function.state {
        State::Missing if returns.starts_with('*') => "std::ptr::null_mut()".into(),
        State::Missing if function.returns.is_some() => "Default::default()".into(),
        State::Missing => format!("call(\"{full}\", When::Always, {error_object}, unsupported)"),
        State::Value => format!("unsafe {{ calls::{own}({passed}) }}"),
        State::Initialised | State::Always => {
            let when = if function.state == State::Always { "Always" } else { "Initialised" };
            format!("call(\"{full}\", When::{when}, {error_object}, || unsafe {{ calls::{own}({passed}) }})")
        }
    };
    let lower = full.to_lowercase();
    if SHORT.contains(&&*function.name) {
        let body = if ANY.contains(&&*function.name) {
            format!("match unsafe {{ short::any::{own}({passed}) }} {{ Some(code) => code, None => {body} }}")
        } else {
            body
        };
        // The long way has the same arguments at the same places, so that it is jumped to.
        let _ = writeln!(
            text,
            "#[inline(never)]\nunsafe extern \"C\" fn long_{lower}({arguments}) -> {returns} {{ {body} }}"
        );
        let body = format!(
            "match unsafe {{ short::{own}({passed}) }} {{ Some(code) => code, None => unsafe {{ long_{lower}({given}) }} }}"
        );
        exported(text, &full, (&arguments, &returns), [&body, &body]);
    } else {
        // One body each: called from two places, what it does would not be compiled into it.
        let forwards = format!("unsafe {{ export_p{lower}({given}) }}");
        exported(text, &full, (&arguments, &returns), [&body, &forwards]);
    }
}

/// A function under its two names, that of the profiling interface first.
fn exported(text: &mut String, full: &str, (arguments, returns): (&str, &str), bodies: [&str; 2]) {
    let lower = full.to_lowercase();
    for (profiling, body) in ["P", ""].into_iter().zip(bodies) {
        let exported = format!("export_{}{lower}", profiling.to_lowercase());
        let _ = writeln!(
            text,
            "#[unsafe(export_name = \"{profiling}{full}\")]\n\
             unsafe extern \"C\" fn {exported}({arguments}) -> {returns} {{ {body} }}"
        );
    }
}
