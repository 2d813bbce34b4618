//! What the library exports for Fortran: each function of the table as `mpi_…_` and `pmpi_…_`, whose arguments are addresses, and
//! which calls the one for C; the same as `mpi_…_f08_` for mpi_f08, where large counts have theirs as `mpi_…_c_f08_`.
//! `src/fortran.rs` has what they need, and the functions that are otherwise.

use std::fmt::Write;

use crate::functions::{Argument, Function, Line};
use crate::passed::{Passed, passed};

/// Functions that `src/fortran` has: those that take functions of the program's with arguments of their own, and those of attributes.
const OWN: [&str; 13] = [
    "Attr_get",
    "Attr_put",
    "Comm_create_keyval",
    "Comm_get_attr",
    "Comm_set_attr",
    "Grequest_start",
    "Keyval_create",
    "Type_create_keyval",
    "Type_get_attr",
    "Type_set_attr",
    "Win_create_keyval",
    "Win_get_attr",
    "Win_set_attr",
];

/// Functions that mpi_f08 never had (MPI-4.1 chapters 16 and 17).
const OLD: [&str; 15] = [
    "Address",
    "Attr_delete",
    "Attr_get",
    "Attr_put",
    "Errhandler_create",
    "Errhandler_get",
    "Errhandler_set",
    "Keyval_create",
    "Keyval_free",
    "Type_extent",
    "Type_hindexed",
    "Type_hvector",
    "Type_lb",
    "Type_struct",
    "Type_ub",
];

/// Functions that have another form in mpi and mpi_f08, whose address is a C_PTR: `mpi_…_cptr_` (MPI-4.1 §12.2.2).
pub const CPTR: [&str; 4] = ["Alloc_mem", "Win_allocate", "Win_allocate_shared", "Win_shared_query"];

/// Whether a function is for C only (MPI-4.1 appendix A): conversions between the languages, the tools' interface.
pub fn is_for_c_only(function: &Function) -> bool {
    let name = &function.name;
    let converts =
        ["_c2f", "_f2c", "_c2f08", "_f082c", "_toint", "_fromint"].iter().any(|part| name.contains(part));
    converts || name.starts_with("T_") || name.starts_with("Async_")
}

/// Whether mpi_f08 has a function.
pub fn is_in_f08(function: &Function) -> bool {
    !is_for_c_only(function) && !function.extension && !OLD.contains(&&*function.name)
}

/// The arguments that Fortran has, too: neither the command line, which its programs do not get, nor more than are named.
pub fn arguments(function: &Function) -> impl Iterator<Item = &Argument> {
    let starts = function.name == "Comm_spawn";
    function.arguments.iter().filter(move |argument| {
        !argument.ty.is("...") && (starts || !matches!(&*argument.name, "argc" | "argv"))
    })
}

/// Whether there is an argument for the error code: not where C has a variable number of arguments (MPI-4.1 §15.2.4).
pub fn has_error(function: &Function) -> bool {
    function.returns.is_none() && !function.arguments.iter().any(|argument| argument.ty.is("..."))
}

/// For whom a function is exported.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// mpif.h and mpi.
    Plain,
    /// mpi_f08.
    F08,
    /// mpi_f08, with large counts.
    Large,
}

pub fn rust(lines: &[Line]) -> String {
    let mut text = String::new();
    for line in lines {
        if let Line::Function(function) = line
            && !is_for_c_only(function)
            && (function.extension || !OWN.contains(&&*function.name))
        {
            export(&mut text, function, Form::Plain);
        }
        if let Line::Function(function) = line
            && is_in_f08(function)
            && function.returns.is_none()
            && !OWN.contains(&&*function.name)
        {
            export(&mut text, function, Form::F08);
            if function.large {
                export(&mut text, function, Form::Large);
            }
        }
    }
    text
}

fn export(text: &mut String, function: &Function, form: Form) {
    let large = form == Form::Large;
    let lower = function.full(large).to_lowercase();
    let named = function.arguments.iter().filter(|argument| !argument.ty.is("..."));
    let all: Vec<(String, Passed)> =
        named.map(|argument| (format!("{}_", argument.name), passed(function, argument, form))).collect();
    let mut declared: Vec<String> = all.iter().filter_map(|(_, passed)| passed.declared.clone()).collect();
    let returns = function.returns.as_ref().map(|ty| ty.rust(false));
    if has_error(function) {
        declared.push("ierror: *mut c_int".into());
    }
    declared
        .extend(all.iter().filter(|(_, passed)| passed.has_len).map(|(name, _)| format!("{name}len: usize")));
    let given: Vec<&str> =
        declared.iter().filter_map(|word| word.split_once(':')).map(|(name, _)| name).collect();
    let (declared, given) = (declared.join(", "), given.join(", "));
    let arrow = returns.map(|ty| format!(" -> {ty}")).unwrap_or_default();
    let own = format!("p{lower}{}", if form == Form::Plain { "" } else { "_f08" });
    let is_other = form != Form::Plain && (large || all.iter().any(|(name, _)| name == "buffer_addr_"));
    let body = match form {
        Form::F08 if !is_other => format!("fortran_p{lower}({given})"),
        _ => body(function, &lower, &all),
    };
    let mut names = vec![(own.clone(), body), (own[1..].into(), format!("fortran_{own}({given})"))];
    if form == Form::Plain && CPTR.contains(&&*function.name) {
        let forwards = || format!("fortran_{own}({given})");
        names.extend([(format!("{own}_cptr"), forwards()), (format!("{lower}_cptr"), forwards())]);
    }
    for (name, body) in names {
        let _ = writeln!(
            text,
            "#[unsafe(export_name = \"{name}_\")]\n\
             unsafe extern \"C\" fn fortran_{name}({declared}){arrow} {{ unsafe {{ {body} }} }}"
        );
    }
}

/// The call of C's function, between what its arguments need before and after.
fn body(function: &Function, lower: &str, all: &[(String, Passed)]) -> String {
    let join = |part: fn(&Passed) -> &str, by: &str| {
        let parts: Vec<&str> =
            all.iter().map(|(_, passed)| part(passed)).filter(|part| !part.is_empty()).collect();
        parts.join(by)
    };
    let (before, values, after) =
        (join(|p| &p.before, " "), join(|p| &p.value, ", "), join(|p| &p.after, " "));
    let call = format!("export_p{lower}({values})");
    // Where a call fails, what it would have stored is not there to be translated.
    let after = if after.is_empty() { after } else { format!("if fortran::has_stored(code) {{ {after} }}") };
    match &function.returns {
        Some(_) => call,
        None if !has_error(function) => format!("{call};"),
        None => format!("{before} let code = {call}; {after} fortran::end(ierror, code)"),
    }
}
