//! mpi.f90 and mpi_f08.f90: modules of interfaces, which each compiler compiles for itself. The procedures are the library's, so nothing
//! is linked that they leave behind.

use std::fmt::Write;

use crate::constants::{Constant, full_name};
use crate::fortran::{CPTR, is_for_c_only, is_in_f08};
use crate::functions::{Function, Line};
use crate::interfaces::{Form, body, is_told_apart, wrapped};
use crate::mpif;

const MADE: &str = "! With MPICH's ABI, as libmpi.so.12 of Transom has it. Made from the tables in ffi/mpi/abi and ffi/mpich/abi.\n";

/// Types of handles: as the table of constants names them, and as Fortran does.
const HANDLES: [(&str, &str); 11] = [
    ("comm", "Comm"),
    ("type", "Datatype"),
    ("errh", "Errhandler"),
    ("file", "File"),
    ("group", "Group"),
    ("info", "Info"),
    ("msg", "Message"),
    ("op", "Op"),
    ("req", "Request"),
    ("session", "Session"),
    ("win", "Win"),
];

/// Of how many bytes the numbers are that `MPI_SIZEOF` takes, by type.
const NUMBERS: [(&str, &[u32]); 3] =
    [("integer", &[1, 2, 4, 8, 16]), ("real", &[4, 8, 16]), ("complex", &[4, 8, 16])];

/// What both modules have that is no line of a table; common blocks are those of `src/fortran.rs`.
const COMMON: &str = "
  logical, parameter :: MPI_SUBARRAYS_SUPPORTED = .false.
  logical, parameter :: MPI_ASYNC_PROTECTS_NONBLOCKING = .false.
  integer(MPI_OFFSET_KIND), parameter :: MPI_DISPLACEMENT_CURRENT = -54278278

  integer :: MPI_BOTTOM, MPI_IN_PLACE, MPI_ERRCODES_IGNORE(1)
  integer :: MPI_UNWEIGHTED(1), MPI_WEIGHTS_EMPTY(1), MPI_BUFFER_AUTOMATIC(1)
  character(len=1) :: MPI_ARGVS_NULL(1, 1), MPI_ARGV_NULL(1)
  common /MPIPRIV1/ MPI_BOTTOM, MPI_IN_PLACE, MPI_STATUS_IGNORE
  common /MPIPRIV2/ MPI_STATUSES_IGNORE, MPI_ERRCODES_IGNORE
  common /MPIPRIVC/ MPI_ARGVS_NULL, MPI_ARGV_NULL
  common /MPIFCMB5/ MPI_UNWEIGHTED
  common /MPIFCMB9/ MPI_WEIGHTS_EMPTY
  common /MPIFCMBA/ MPI_BUFFER_AUTOMATIC
  save :: /MPIPRIV1/, /MPIPRIV2/, /MPIPRIVC/, /MPIFCMB5/, /MPIFCMB9/, /MPIFCMBA/

  interface
    subroutine MPI_F_sync_reg(buf)
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      type(*), dimension(*), asynchronous, target :: buf
    end subroutine
    subroutine PMPI_F_sync_reg(buf)
      !GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
      type(*), dimension(*), asynchronous, target :: buf
    end subroutine
  end interface
";

/// mpi_f08.f90; `functions` are those of the program's.
pub fn f08(constants: &[Constant], functions: &str, lines: &[Line]) -> String {
    let mut text = format!(
        "! The module mpi_f08.\n{MADE}module mpi_f08\n  use, intrinsic :: iso_c_binding, only: C_PTR\n  \
         implicit none\n  private :: C_PTR\n"
    );
    let _ = writeln!(text, "{KINDS}{STATUS}");
    for (_, name) in HANDLES {
        let _ = writeln!(text, "  type, bind(C) :: MPI_{name}\n    integer :: MPI_VAL\n  end type");
    }
    operators(&mut text);
    integers(&mut text, constants);
    for constant in constants {
        let (name, value) = match constant {
            Constant::Handle { kind, name, value } => {
                let handle = HANDLES.iter().find(|(of, _)| of == kind).map_or("", |(_, handle)| handle);
                (name, format!("MPI_{handle}({})", mpif::signed(*value)))
            }
            Constant::Alias { name, of } => (name, format!("MPI_{of}")),
            _ => continue,
        };
        let kind = if let Constant::Handle { kind, .. } = constant { kind } else { "type" };
        let handle = HANDLES.iter().find(|(of, _)| *of == kind).map_or("", |(_, handle)| handle);
        let _ = writeln!(text, "  type(MPI_{handle}), parameter :: {} = {value}", full_name(name));
    }
    text.push_str("\n  type(MPI_Status) :: MPI_STATUS_IGNORE, MPI_STATUSES_IGNORE(1)");
    text.push_str(COMMON);
    sizeof(&mut text);
    text.push_str(functions);
    for profiling in ["", "P"] {
        for function in named(lines).filter(|function| is_in_f08(function)) {
            generic(&mut text, function, profiling);
        }
    }
    text.push_str("end module\n");
    text
}

/// mpi.f90.
pub fn mpi(constants: &[Constant], lines: &[Line]) -> String {
    let mut text =
        format!("! The module mpi.\n{MADE}module mpi\n  use, intrinsic :: iso_c_binding, only: C_PTR\n");
    let mut names = vec!["MPI_Status".to_owned()];
    names.extend(HANDLES.iter().map(|(_, name)| format!("MPI_{name}")));
    names.extend(["operator(==)", "operator(/=)", "MPI_Sizeof"].map(str::to_owned));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    text.push_str(&wrapped("  use mpi_f08, only: ", &names, ""));
    let _ = writeln!(text, "  implicit none\n  private :: C_PTR\n{KINDS}");
    integers(&mut text, constants);
    for constant in constants {
        let _ = match constant {
            Constant::Handle { name, value, .. } => {
                writeln!(text, "  integer, parameter :: {} = {}", full_name(name), mpif::signed(*value))
            }
            Constant::Alias { name, of } => writeln!(text, "  integer, parameter :: MPI_{name} = MPI_{of}"),
            _ => Ok(()),
        };
    }
    text.push_str(
        "\n  integer :: MPI_STATUS_IGNORE(MPI_STATUS_SIZE), MPI_STATUSES_IGNORE(MPI_STATUS_SIZE, 1)",
    );
    text.push_str(COMMON);
    text.push_str(&wrapped("  external :: ", &PREDEFINED, ""));
    let all = |function: &&Function| {
        !is_for_c_only(function) && !function.extension && !function.name.ends_with("_c")
    };
    for profiling in ["", "P"] {
        for function in named(lines).filter(all) {
            if CPTR.contains(&&*function.name) {
                let _ = writeln!(text, "  interface {profiling}{}", function.full(false));
                text.push_str(&body(function, Form::MpiCptr, profiling));
            } else {
                text.push_str("  interface\n");
            }
            text.push_str(&body(function, Form::Mpi, profiling));
            text.push_str("  end interface\n");
        }
    }
    text.push_str("end module\n");
    text
}

const KINDS: &str = "
  integer, parameter :: MPI_ADDRESS_KIND = 8, MPI_COUNT_KIND = 8, MPI_INTEGER_KIND = 4, MPI_OFFSET_KIND = 8
  integer, parameter :: MPI_STATUS_SIZE = 5, MPI_SOURCE = 3, MPI_TAG = 4, MPI_ERROR = 5
";

const STATUS: &str = "
  type, bind(C) :: MPI_Status
    integer, private :: count_lo, count_hi_and_cancelled
    integer, public :: MPI_SOURCE, MPI_TAG, MPI_ERROR
  end type";

/// Functions for attributes and files that are the library's.
const PREDEFINED: [&str; 13] = [
    "MPI_NULL_COPY_FN",
    "MPI_NULL_DELETE_FN",
    "MPI_DUP_FN",
    "MPI_COMM_NULL_COPY_FN",
    "MPI_COMM_NULL_DELETE_FN",
    "MPI_COMM_DUP_FN",
    "MPI_WIN_NULL_COPY_FN",
    "MPI_WIN_NULL_DELETE_FN",
    "MPI_WIN_DUP_FN",
    "MPI_TYPE_NULL_COPY_FN",
    "MPI_TYPE_NULL_DELETE_FN",
    "MPI_TYPE_DUP_FN",
    "MPI_CONVERSION_FN_NULL",
];

fn named(lines: &[Line]) -> impl Iterator<Item = &Function> {
    lines.iter().filter_map(|line| match line {
        Line::Function(function) => Some(function),
        Line::Chapter(_) => None,
    })
}

fn integers(text: &mut String, constants: &[Constant]) {
    for (name, value) in mpif::integers(constants) {
        let _ = writeln!(text, "  integer, parameter :: {} = {value}", full_name(name));
    }
}

fn operators(text: &mut String) {
    for (operator, ending) in [("==", "eq"), ("/=", "ne")] {
        let _ = writeln!(text, "  interface operator({operator})");
        for (_, handle) in HANDLES {
            let name = format!("mpi_{}_{ending}", handle.to_lowercase());
            let _ = writeln!(
                text,
                "    elemental function {name}(a, b)\n      import\n      \
                 type(MPI_{handle}), intent(in) :: a, b\n      logical :: {name}\n    end function"
            );
        }
        text.push_str("  end interface\n");
    }
}

fn sizeof(text: &mut String) {
    text.push_str("  interface MPI_Sizeof\n");
    for (ty, kinds) in NUMBERS {
        for kind in kinds {
            let _ = writeln!(
                text,
                "    subroutine mpi_sizeof_{ty}{kind}(x, size, ierror)\n      {ty}({kind}), dimension(..) :: x\n      \
                 integer, intent(inout) :: size\n      integer, optional, intent(out) :: ierror\n    end subroutine"
            );
        }
    }
    text.push_str("  end interface\n");
}

/// A generic name with its forms. Two forms have names of their own in the standard, since functions as arguments tell nothing apart.
fn generic(text: &mut String, function: &Function, profiling: &str) {
    let full = function.full(false);
    let generic = match &*function.name {
        "Op_create_c" | "Register_datarep_c" => &full,
        _ => full.strip_suffix("_c").unwrap_or(&full),
    };
    if function.returns.is_some() {
        text.push_str("  interface\n");
    } else {
        let _ = writeln!(text, "  interface {profiling}{generic}");
    }
    text.push_str(&body(function, Form::F08, profiling));
    if function.large && is_told_apart(function) {
        text.push_str(&body(function, Form::Large, profiling));
    }
    text.push_str("  end interface\n");
}
