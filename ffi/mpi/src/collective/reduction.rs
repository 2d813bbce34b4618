//! What a reduction computes: elements as they are in memory, combined by a predefined operation or the program's.

use std::sync::Arc;

use transom::raw::Combine;
use transom::{DataType, RawBuffer, ReduceOp, reduce_valid};
use transom_transport::memory::reduce_into;

use super::held::Held;
use crate::abi::{Datatype, ERR_BUFFER, ERR_OP, Op};
use crate::buffer::{Buffer, TypedBuffer, bytes, bytes_mut, raw_buffer};
use crate::failure::{Result, fail};
use crate::op::{self, Operation, UserOp};

/// An operation on instances of a datatype.
#[derive(Clone)]
pub struct Reduction {
    pub combine: Combine,
    /// The predefined datatype, whose padding travels with it; others travel packed.
    basic: Option<DataType>,
}

/// Where operands and results are.
enum Places {
    /// Not one behind the other.
    Packed,
    /// So many bytes, which are both.
    One(usize),
    /// So many bytes each.
    Two(usize),
}

impl Reduction {
    /// The reduction of buffers like this one.
    pub fn new(op: Op, ty: Datatype, buffer: &Buffer) -> Result<Self> {
        let basic = crate::types::basic(ty).or_else(|| single(buffer));
        let combine = match (op::operation(op)?, basic) {
            (Operation::Predefined(op), Some(basic)) if reduce_valid(op, basic) => predefined(op, basic),
            (Operation::Predefined(op), _) => {
                return fail(
                    ERR_OP,
                    format!("{op:?} is not defined on {} (MPI-4.1 §6.9.2)", buffer.ty().datatype),
                );
            }
            (Operation::User(user), _) => of_program(user, ty, buffer.clone(), basic),
        };
        Ok(Self { combine, basic })
    }

    /// A buffer's elements.
    pub fn load(&self, buffer: &Buffer) -> Result<Vec<u8>> {
        match self.basic {
            Some(basic) => Ok(bytes(buffer.place(), buffer.count().saturating_mul(basic.size()))?.to_vec()),
            None => buffer.pack(),
        }
    }

    /// Calls `body` with a buffer's elements: in place if they are so there.
    pub fn read(&self, buffer: &Buffer, body: impl FnOnce(&[u8]) -> Result<()>) -> Result<()> {
        match self.basic {
            Some(_) => body(bytes(buffer.place(), self.bytes(buffer, buffer.count()))?),
            None => body(&buffer.pack()?),
        }
    }

    /// Has `body` make a buffer's elements of another one's. It gets both, or one that has the operands and will have the results.
    pub fn write(
        &self,
        from: &Buffer,
        to: &Buffer,
        body: impl FnOnce(Option<&[u8]>, &mut [u8]) -> Result<()>,
    ) -> Result<()> {
        match self.places(from, to)? {
            Places::Packed => {
                let mut data = from.pack()?;
                body(None, &mut data)?;
                to.unpack(&data)
            }
            Places::One(len) => body(None, bytes_mut(to.place(), len)?),
            Places::Two(len) => body(Some(bytes(from.place(), len)?), bytes_mut(to.place(), len)?),
        }
    }

    /// The same for something that goes on: the operands, unless the results replace them, and where these come to.
    pub fn hold(&self, from: &Buffer, to: &Buffer) -> Result<(Option<RawBuffer>, Held)> {
        let raw = |buffer: &Buffer, len| raw_buffer(buffer.place(), len);
        Ok(match self.places(from, to)? {
            Places::Packed => (None, Held::packed(from.pack()?)),
            Places::One(len) => (None, Held::in_place(raw(to, len)?)),
            Places::Two(len) => (Some(raw(from, len)?), Held::in_place(raw(to, len)?)),
        })
    }

    /// A buffer's elements, for something that goes on.
    pub fn hold_read(&self, buffer: &Buffer) -> Result<Held> {
        match self.basic {
            Some(_) => raw_buffer(buffer.place(), self.bytes(buffer, buffer.count())).map(Held::in_place),
            None => buffer.pack().map(Held::packed),
        }
    }

    fn places(&self, from: &Buffer, to: &Buffer) -> Result<Places> {
        let len = self.bytes(from, from.count());
        if self.basic.is_none() {
            return Ok(Places::Packed);
        }
        if from.place() == to.place() {
            return Ok(Places::One(len));
        }
        if from.place().addr().abs_diff(to.place().addr()) < len {
            return fail(ERR_BUFFER, "operands and results overlap: say MPI_IN_PLACE, or use two buffers");
        }
        Ok(Places::Two(len))
    }

    /// Stores elements where the buffer has them.
    pub fn store(&self, buffer: &Buffer, data: &[u8]) -> Result<()> {
        match self.basic {
            Some(_) => {
                bytes_mut(buffer.place(), data.len())?.copy_from_slice(data);
                Ok(())
            }
            None => buffer.unpack(data),
        }
    }

    /// Bytes of so many instances.
    pub fn bytes(&self, buffer: &Buffer, n: usize) -> usize {
        n.saturating_mul(self.basic.map_or(buffer.ty().datatype.size(), DataType::size))
    }
}

/// The one element that an instance is, as of a copy of a predefined datatype.
fn single(buffer: &Buffer) -> Option<DataType> {
    let datatype = &buffer.ty().datatype;
    let alone = datatype.basic_count() == 1 && datatype.true_lower_bound() == 0;
    datatype.element().filter(|ty| alone && i64::try_from(ty.size()) == Ok(datatype.extent()))
}

/// Those that collectives may use are commutative, so that the order of the operands is of no matter.
fn predefined(op: ReduceOp, ty: DataType) -> Combine {
    Arc::new(move |left: &[u8], right: &mut [u8]| reduce_into(op, ty, right, left))
}

/// The program's function, which gets elements as the datatype has them in memory.
fn of_program(user: Arc<UserOp>, ty: Datatype, buffer: Buffer, basic: Option<DataType>) -> Combine {
    Arc::new(move |left: &[u8], right: &mut [u8]| {
        let size = basic.map_or(buffer.ty().datatype.size(), DataType::size).max(1);
        let count = right.len() / size;
        if basic.is_some() || matches!(buffer.plain(), Ok(Some(_))) {
            user.call(left, right, 0, count, ty);
        } else if let Err(failure) = unpacked(&user, ty, &buffer, left, right, count) {
            // The packed elements were made by this datatype, so that they fit it.
            eprintln!("transom: a reduction was left out: {}", failure.message());
        }
    })
}

/// Elements that travel packed, in memory as the function expects them.
fn unpacked(
    user: &UserOp,
    ty: Datatype,
    buffer: &Buffer,
    left: &[u8],
    right: &mut [u8],
    count: usize,
) -> Result<()> {
    let datatype = &buffer.ty().datatype;
    let Some((low, high)) = datatype.element_span(count)? else { return Ok(()) };
    // As if the buffer began at an address, so that displacements below 0 are moved.
    let typed = TypedBuffer::new(std::ptr::null(), count, datatype)?;
    let extent = usize::try_from(high - low).unwrap_or(0);
    let (mut a, mut b) = (vec![0; extent], vec![0; extent]);
    typed.datatype.unpack_part(typed.count, 0, left, &mut a, 0)?;
    typed.datatype.unpack_part(typed.count, 0, right, &mut b, 0)?;
    user.call(&a, &mut b, low, count, ty);
    typed.datatype.pack_at(typed.count, &b, 0, right, &mut 0)?;
    Ok(())
}
