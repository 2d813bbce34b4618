//! Operations of reductions (MPI-4.1 §6.9).

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use transom::ReduceOp;

use crate::abi::{self, Count, Datatype, ERR_OP, OP_NULL, Op};
use crate::failure::{Result, fail};
use crate::pointer::{Pointer, flag};
use crate::table::Table;

/// A function of the program's.
#[derive(Debug)]
pub struct UserOp {
    function: usize,
    /// Of `MPI_Op_create_c`: the length is an `MPI_Count`.
    large: bool,
    commutes: bool,
}

static OPS: Table<UserOp> = Table::new(9, "operation", ERR_OP);

/// What an operation is.
#[derive(Debug, Clone)]
pub enum Operation {
    Predefined(ReduceOp),
    User(Arc<UserOp>),
}

/// A predefined operation.
#[inline]
pub fn predefined(op: Op) -> Option<ReduceOp> {
    Some(match op {
        abi::SUM => ReduceOp::Sum,
        abi::PROD => ReduceOp::Prod,
        abi::MIN => ReduceOp::Min,
        abi::MAX => ReduceOp::Max,
        abi::LAND => ReduceOp::Land,
        abi::LOR => ReduceOp::Lor,
        abi::LXOR => ReduceOp::Lxor,
        abi::BAND => ReduceOp::Band,
        abi::BOR => ReduceOp::Bor,
        abi::BXOR => ReduceOp::Bxor,
        abi::REPLACE => ReduceOp::Replace,
        abi::NO_OP => ReduceOp::NoOp,
        abi::MINLOC => ReduceOp::MinLoc,
        abi::MAXLOC => ReduceOp::MaxLoc,
        _ => return None,
    })
}

/// The operation of a handle.
pub fn operation(op: Op) -> Result<Operation> {
    match predefined(op) {
        Some(op) => Ok(Operation::Predefined(op)),
        None => OPS.get(op.0).map(Operation::User),
    }
}

/// An operation that accumulates know: a predefined one (MPI-4.1 §12.3.4).
#[inline]
pub fn of_accumulates(op: Op) -> Result<ReduceOp> {
    match predefined(op) {
        Some(op) => Ok(op),
        None => {
            OPS.get(op.0)?;
            fail(ERR_OP, "accumulates know predefined operations only")
        }
    }
}

impl UserOp {
    /// `right = left op right` for `count` elements, each as the datatype has it in memory (§6.9.5). The buffers begin with
    /// the byte at displacement `low`.
    pub fn call(&self, left: &[u8], right: &mut [u8], low: i64, count: usize, ty: Datatype) {
        type Plain = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_int, *mut Datatype);
        type Large = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut Count, *mut Datatype);
        let origin = |first: *mut u8| first.wrapping_offset(-(low as isize)).cast::<c_void>();
        let (from, to) = (origin(left.as_ptr().cast_mut()), origin(right.as_mut_ptr()));
        let mut ty = ty;
        // SAFETY: the program gave the address as that of an MPI_User_function (of an MPI_User_function_c if `large`); it
        // reads `count` elements of the first buffer and updates those of the second (§6.9.5), which have them.
        unsafe {
            if self.large {
                let mut count = count as Count;
                let function: Large = std::mem::transmute::<usize, Large>(self.function);
                function(from, to, &raw mut count, &raw mut ty);
            } else {
                let mut count = c_int::try_from(count).unwrap_or(c_int::MAX);
                let function: Plain = std::mem::transmute::<usize, Plain>(self.function);
                function(from, to, &raw mut count, &raw mut ty);
            }
        }
    }
}

fn create(function: *const c_void, large: bool, commutes: c_int, op: Pointer<Op>) -> Result<()> {
    if function.is_null() {
        return fail(ERR_OP, "the function is a null pointer");
    }
    let user = UserOp { function: function as usize, large, commutes: commutes != 0 };
    op.set(Op(OPS.insert(Arc::new(user))?))
}

/// `MPI_Op_create`.
pub fn op_create(function: *const c_void, commutes: c_int, op: Pointer<Op>) -> Result<()> {
    create(function, false, commutes, op)
}

/// `MPI_Op_create_c`.
pub fn op_create_c(function: *const c_void, commutes: c_int, op: Pointer<Op>) -> Result<()> {
    create(function, true, commutes, op)
}

/// `MPI_Op_free`.
pub fn op_free(op: Pointer<Op>) -> Result<()> {
    if predefined(op.get()?).is_some() {
        return fail(ERR_OP, "a predefined operation cannot be freed");
    }
    OPS.remove(op.get()?.0)?;
    op.set(OP_NULL)
}

/// `MPI_Op_commutative`.
pub fn op_commutative(op: Op, commutes: Pointer<c_int>) -> Result<()> {
    commutes.set(match operation(op)? {
        Operation::Predefined(op) => flag(op != ReduceOp::Replace && op != ReduceOp::NoOp),
        Operation::User(user) => flag(user.commutes),
    })
}
