//! What becomes of each argument between Fortran and C.

use crate::fortran::Form;
use crate::functions::{Argument, Function};
use crate::notation::Shape;

/// Functions of before MPI-2, whose addresses are INTEGER.
const SHORT_ADDRESSES: [&str; 7] =
    ["Address", "Type_extent", "Type_hindexed", "Type_hvector", "Type_lb", "Type_struct", "Type_ub"];

/// What becomes of an argument.
#[derive(Default)]
pub struct Passed {
    /// Its declaration for Fortran, if it has it.
    pub declared: Option<String>,
    /// Whether its length comes at the end.
    pub has_len: bool,
    pub before: String,
    /// For C.
    pub value: String,
    pub after: String,
}

pub fn passed(function: &Function, argument: &Argument, form: Form) -> Passed {
    let (name, ty) = (format!("{}_", argument.name), argument.ty.rust(form == Form::Large));
    let same = |value: &str| Passed {
        declared: Some(format!("{name}: {ty}")),
        value: value.replace('@', &name),
        ..Passed::default()
    };
    let ty_is = |base: &str| argument.ty.base() == base;
    match argument.ty.shape {
        // The command line is not Fortran's, which programs that are started have.
        _ if argument.name == "argv" && function.name == "Comm_spawn" => same("std::ptr::null_mut()"),
        _ if matches!(&*argument.name, "argc" | "argv") => {
            let value = if ty == "c_int" { "0" } else { "std::ptr::null_mut()" };
            Passed { value: value.into(), ..Passed::default() }
        }
        _ if ty_is("aint") && SHORT_ADDRESSES.contains(&&*function.name) => short_address(argument, &name),
        _ if ty_is("file") => file(argument, &name),
        _ if argument.name == "buffer_addr" && form != Form::Plain => {
            Passed { after: format!("fortran::detached({name}.cast());"), ..same("@") }
        }
        // An address would not fit where Fortran's programs want none (MPI-4.1 §3.6).
        _ if argument.name == "buffer_addr" => Passed {
            declared: Some(format!("_{name}: {ty}")),
            before: "let mut unwanted = std::ptr::null_mut::<c_void>();".into(),
            value: "(&raw mut unwanted).cast()".into(),
            ..Passed::default()
        },
        _ if ty_is("str") => {
            let kind = if matches!(&*argument.name, "key" | "value") { "word" } else { "text" };
            Passed {
                has_len: true,
                before: format!("let {name}text = fortran::{kind}({name}, {name}len);"),
                ..same("@text.as_ptr()")
            }
        }
        _ if ty_is("text") => Passed {
            has_len: true,
            before: format!("let mut {name}room = fortran::Room::new();"),
            after: format!("{name}room.store({name}, {name}len);"),
            ..same("@room.place()")
        },
        Shape::Value if ty == "*const c_void" || ty == "*mut c_void" => same("fortran::address(@)"),
        Shape::Value => Passed {
            declared: Some(format!("{name}: *const {ty}")),
            value: format!("*{name}"),
            ..Passed::default()
        },
        Shape::Pointer if ty_is("status") => same("fortran::status(@)"),
        _ if argument.name.ends_with("weights") => same("fortran::weights(@)"),
        _ if argument.name == "array_of_errcodes" => same("std::ptr::null_mut()"),
        Shape::Pointer if argument.name == "indx" => {
            Passed { after: format!("fortran::count_from_one({name}, 1);"), ..same("@") }
        }
        Shape::Output if argument.name == "array_of_indices" => {
            Passed { after: format!("fortran::count_from_one({name}, *outcount_);"), ..same("@") }
        }
        Shape::Pointer if matches!(&*argument.name, "buflen" | "pset_len") => Passed {
            // With the null character behind it in C.
            before: format!("let mut {name}room = fortran::with_null(*{name});"),
            after: format!("*{name} = ({name}room - 1).max(0);"),
            ..same("&raw mut @room")
        },
        _ => same("@"),
    }
}

/// An address that is an INTEGER, or several.
fn short_address(argument: &Argument, name: &str) -> Passed {
    let declared = |ty: &str| Some(format!("{name}: {ty}"));
    match argument.ty.shape {
        Shape::Value => Passed {
            declared: declared("*const c_int"),
            value: format!("*{name} as Aint"),
            ..Passed::default()
        },
        Shape::Pointer => Passed {
            declared: declared("*mut c_int"),
            has_len: false,
            before: format!("let mut {name}wide: Aint = 0;"),
            value: format!("&raw mut {name}wide"),
            after: format!("*{name} = {name}wide as c_int;"),
        },
        _ => Passed {
            declared: declared("*const c_int"),
            before: format!("let {name}wide = fortran::wide({name}, *count_);"),
            value: format!("{name}wide.as_ptr()"),
            ..Passed::default()
        },
    }
}

/// A file, whose handle is an address in C.
fn file(argument: &Argument, name: &str) -> Passed {
    if argument.ty.shape == Shape::Value {
        let declared = Some(format!("{name}: *const c_int"));
        return Passed { declared, value: format!("calls::file_f2c(*{name})"), ..Passed::default() };
    }
    Passed {
        declared: Some(format!("{name}: *mut c_int")),
        has_len: false,
        before: format!("let mut {name}file = calls::file_f2c(*{name});"),
        value: format!("&raw mut {name}file"),
        after: format!("*{name} = calls::file_c2f({name}file);"),
    }
}
