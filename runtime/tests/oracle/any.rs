//! Fetching operations on elements of any type, not the window's.

use transom::*;
use zerocopy::FromBytes;

use super::calls::Goal;
use super::window::Cell;

/// Calls `$body` with the operation as a value of its own type, of some operations.
macro_rules! with_operation {
    ($op:expr => $body:expr; $($name:ident)*) => {
        match $op {
            $(ReduceOp::$name => $body($name),)*
            other => panic!("{other:?} is not defined here"),
        }
    };
}

pub(super) use with_operation;

fn keep<B: Basic>(old: B, fetched: &mut [u8]) {
    super::reduce::copy(B::TYPE, fetched, old.as_bytes());
}

macro_rules! fetches {
    ($rma:expr, $goal:expr, $op:expr, $data:expr, $fetched:expr, $T:ty; $($name:ident)*) => {{
        let value = <$T>::read_from_bytes(&$data[..size_of::<$T>()]).unwrap();
        with_operation!($op => |op| {
            keep($rma.fetch_op_of($goal.target, $goal.displacement, op, value)?, $fetched);
            Ok(())
        }; $($name)*)
    }};
}

/// The origin's element of an operation.
#[derive(Clone, Copy)]
pub struct Operand<'a> {
    pub ty: DataType,
    pub data: &'a [u8],
}

/// `fetch_op_of` on any type.
pub fn fetch<T: Cell>(
    rma: &Epoch<'_, '_, T>,
    goal: Goal,
    op: ReduceOp,
    Operand { ty, data }: Operand<'_>,
    fetched: &mut [u8],
) -> Result<()> {
    macro_rules! of {
        ([$($name:ident $T:ty),*] $ops:tt) => {
            match ty {
                $(DataType::$name => return of!(@ $T, $ops),)*
                _ => {}
            }
        };
        (@ $T:ty, [$($op:ident)*]) => { fetches!(rma, goal, op, data, fetched, $T; $($op)*) };
    }
    of!([I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64]
        [Sum Prod Min Max Land Lor Lxor Band Bor Bxor Replace NoOp]);
    of!([F32 f32, F64 f64, F80 LongDouble] [Sum Prod Min Max Replace NoOp]);
    of!([C32 Complex<f32>, C64 Complex<f64>, C80 ComplexLongDouble] [Sum Prod Replace NoOp]);
    of!([Bool Flag] [Land Lor Lxor Replace NoOp]);
    of!([Byte Byte] [Band Bor Bxor Replace NoOp]);
    of!([Char Char, WideChar WideChar] [Replace NoOp]);
    of!([F32I32 F32I32, F64I32 F64I32, I64I32 I64I32, I32I32 I32I32, I16I32 I16I32, F80I32 F80I32]
        [MinLoc MaxLoc Replace NoOp]);
    panic!("{ty:?} is no type")
}

/// `compare_and_swap_of` on any type that has it.
pub fn swap<T: Cell>(
    rma: &Epoch<'_, '_, T>,
    goal: Goal,
    compare: &[u8],
    Operand { ty, data }: Operand<'_>,
    fetched: &mut [u8],
) -> Result<()> {
    macro_rules! of {
        ($($name:ident $T:ty),*) => {
            match ty {
                $(DataType::$name => {
                    let read = |bytes: &[u8]| <$T>::read_from_bytes(&bytes[..size_of::<$T>()]).unwrap();
                    let old = rma.compare_and_swap_of(goal.target, goal.displacement, read(compare), read(data))?;
                    keep(old, fetched);
                })*
                other => panic!("{other:?} cannot be swapped"),
            }
        };
    }
    of!(I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, Bool Flag, Byte Byte, Char Char,
        WideChar WideChar);
    Ok(())
}
