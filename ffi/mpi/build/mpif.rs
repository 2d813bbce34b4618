//! mpif.h: the constants for Fortran, in lines that both of its forms take.

use std::fmt::Write;

use crate::constants::{Constant, full_name};

const BEGIN: &str = "\
! The constants of MPI for Fortran, with MPICH's ABI, as libmpi.so.12 of Transom has it.
! Made from the tables in ffi/mpich/abi: change those.
";

/// What is no line of the table: common blocks are those of `src/fortran.rs`.
const END: &str = "\
! Statuses, kinds, what is known by its place, functions
      integer MPI_STATUS_SIZE
      parameter (MPI_STATUS_SIZE=5)
      integer MPI_SOURCE
      parameter (MPI_SOURCE=3)
      integer MPI_TAG
      parameter (MPI_TAG=4)
      integer MPI_ERROR
      parameter (MPI_ERROR=5)
      integer MPI_ADDRESS_KIND
      parameter (MPI_ADDRESS_KIND=8)
      integer MPI_COUNT_KIND
      parameter (MPI_COUNT_KIND=8)
      integer MPI_INTEGER_KIND
      parameter (MPI_INTEGER_KIND=4)
      integer MPI_OFFSET_KIND
      parameter (MPI_OFFSET_KIND=8)
      logical MPI_SUBARRAYS_SUPPORTED
      parameter (MPI_SUBARRAYS_SUPPORTED=.false.)
      logical MPI_ASYNC_PROTECTS_NONBLOCKING
      parameter (MPI_ASYNC_PROTECTS_NONBLOCKING=.false.)
      integer MPI_BOTTOM, MPI_IN_PLACE
      integer MPI_STATUS_IGNORE(5)
      common /MPIPRIV1/ MPI_BOTTOM, MPI_IN_PLACE, MPI_STATUS_IGNORE
      save /MPIPRIV1/
      integer MPI_STATUSES_IGNORE(5,1), MPI_ERRCODES_IGNORE(1)
      common /MPIPRIV2/ MPI_STATUSES_IGNORE, MPI_ERRCODES_IGNORE
      save /MPIPRIV2/
      character*1 MPI_ARGVS_NULL(1,1), MPI_ARGV_NULL(1)
      common /MPIPRIVC/ MPI_ARGVS_NULL, MPI_ARGV_NULL
      save /MPIPRIVC/
      integer MPI_UNWEIGHTED(1)
      common /MPIFCMB5/ MPI_UNWEIGHTED
      save /MPIFCMB5/
      integer MPI_WEIGHTS_EMPTY(1)
      common /MPIFCMB9/ MPI_WEIGHTS_EMPTY
      save /MPIFCMB9/
      integer MPI_BUFFER_AUTOMATIC(1)
      common /MPIFCMBA/ MPI_BUFFER_AUTOMATIC
      save /MPIFCMBA/
      integer*8 MPI_DISPLACEMENT_CURRENT
      parameter (MPI_DISPLACEMENT_CURRENT=-54278278)
      double precision MPI_WTIME, MPI_WTICK
      external MPI_WTIME, MPI_WTICK
      integer*8 MPI_AINT_ADD, MPI_AINT_DIFF
      external MPI_AINT_ADD, MPI_AINT_DIFF
      external MPI_NULL_COPY_FN, MPI_NULL_DELETE_FN, MPI_DUP_FN
      external MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN
      external MPI_COMM_DUP_FN, MPI_WIN_NULL_COPY_FN
      external MPI_WIN_NULL_DELETE_FN, MPI_WIN_DUP_FN
      external MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN
      external MPI_TYPE_DUP_FN, MPI_CONVERSION_FN_NULL
";

/// Attributes, whose keys for Fortran are one more: their values are no addresses.
const KEYS: [&str; 12] = [
    "TAG_UB",
    "IO",
    "HOST",
    "WTIME_IS_GLOBAL",
    "APPNUM",
    "LASTUSEDCODE",
    "UNIVERSE_SIZE",
    "WIN_BASE",
    "WIN_DISP_UNIT",
    "WIN_SIZE",
    "WIN_CREATE_FLAVOR",
    "WIN_MODEL",
];

/// Lengths of strings, which are without the null character.
const LENGTHS: &str = "MAX_";

/// A handle as Fortran has it: an integer with a sign.
pub fn signed(handle: u64) -> i32 {
    (handle as u32).cast_signed()
}

/// The integers that Fortran has, by their names.
pub fn integers(constants: &[Constant]) -> impl Iterator<Item = (&str, i64)> {
    constants.iter().filter_map(|constant| match constant {
        Constant::Int { name, .. } if name.starts_with("F_") || name.starts_with("T_") => None,
        Constant::Int { name, value } if KEYS.contains(&&**name) => Some((name.as_str(), value + 1)),
        Constant::Int { name, value } if name.starts_with(LENGTHS) => Some((name, value - 1)),
        Constant::Int { name, value } => Some((name, *value)),
        _ => None,
    })
}

pub fn text(constants: &[Constant]) -> String {
    let mut text = BEGIN.to_owned();
    let handles = constants.iter().filter_map(|constant| match constant {
        Constant::Handle { name, value, .. } => Some((name.as_str(), i64::from(signed(*value)))),
        _ => None,
    });
    for (name, value) in handles.chain(integers(constants)) {
        let name = full_name(name);
        let _ = writeln!(text, "      integer {name}\n      parameter ({name}={value})");
    }
    for constant in constants {
        if let Constant::Alias { name, of } = constant {
            let _ = writeln!(text, "      integer MPI_{name}\n      parameter (MPI_{name}=MPI_{of})");
        }
    }
    text.push_str(END);
    text
}
