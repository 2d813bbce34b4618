//! Datatypes that are parts of arrays (MPI-4.1 §5.1.3, §5.1.4), and those of Fortran's kinds (§19.1.9).

use std::ffi::c_int;

use parking_lot::Mutex;
use transom::Datatype as Layout;
use transom::datatype::{Distribution, Order};

use super::{Envelope, TYPES, TypeObject, add, get, part};
use crate::abi::{
    self, DISTRIBUTE_BLOCK, DISTRIBUTE_CYCLIC, DISTRIBUTE_DFLT_DARG, DISTRIBUTE_NONE, Datatype, ERR_ARG,
    ORDER_C, ORDER_FORTRAN,
};
use crate::buffer::count as checked;
use crate::failure::{Result, fail};
use crate::pointer::{Counts, Pointer};

fn order_of(order: c_int) -> Result<Order> {
    match order {
        ORDER_C => Ok(Order::C),
        ORDER_FORTRAN => Ok(Order::Fortran),
        _ => fail(ERR_ARG, format!("{order} is no order: use MPI_ORDER_C or MPI_ORDER_FORTRAN")),
    }
}

/// What both kinds of arrays have.
struct Array {
    ndims: c_int,
    order: c_int,
    oldtype: Datatype,
}

impl Array {
    /// The number of dimensions.
    fn dimensions(&self) -> Result<usize> {
        usize::try_from(self.ndims).or_else(|_| fail(ERR_ARG, format!("{} dimensions", self.ndims)))
    }

    /// The array's datatype, if there is a layout of it; the envelope has the lists between `ints` and the order.
    fn made(
        self,
        combiner: c_int,
        ints: &[c_int],
        lists: &[Vec<i64>],
        layout: impl FnOnce(Order, &Layout) -> transom::Result<Layout>,
    ) -> Result<Datatype> {
        let layout = layout(order_of(self.order)?, &get(self.oldtype)?.datatype)?;
        let mut all: Vec<i64> = ints.iter().copied().map(i64::from).collect();
        all.extend(lists.iter().flatten());
        all.push(i64::from(self.order));
        let types = vec![part(self.oldtype)?];
        add(layout, Envelope { combiner, ints: all, types, ..Envelope::default() })
    }
}

fn sizes(list: &[i64]) -> Result<Vec<usize>> {
    let checked = |size: &i64| usize::try_from(*size).or_else(|_| fail(ERR_ARG, format!("a size of {size}")));
    list.iter().map(checked).collect()
}

/// `MPI_Type_create_subarray`.
pub fn type_create_subarray(
    ndims: c_int,
    whole: Counts,
    subsizes: Counts,
    starts: Counts,
    order: c_int,
    oldtype: Datatype,
    new: Pointer<Datatype>,
) -> Result<()> {
    let array = Array { ndims, order, oldtype };
    let n = array.dimensions()?;
    let lists = [whole.list(n)?, subsizes.list(n)?, starts.list(n)?];
    let (whole, subsizes, starts) = (sizes(&lists[0])?, sizes(&lists[1])?, sizes(&lists[2])?);
    new.set(array.made(abi::COMBINER_SUBARRAY, &[ndims], &lists, |order, old| {
        Layout::subarray(&whole, &subsizes, &starts, order, old)
    })?)
}

fn distribution(kind: c_int, argument: c_int) -> Result<Distribution> {
    let argument = match argument {
        DISTRIBUTE_DFLT_DARG => None,
        argument => Some(
            usize::try_from(argument).or_else(|_| fail(ERR_ARG, format!("blocks of {argument} elements")))?,
        ),
    };
    match kind {
        DISTRIBUTE_NONE => Ok(Distribution::None),
        DISTRIBUTE_BLOCK => Ok(Distribution::Block(argument)),
        DISTRIBUTE_CYCLIC => Ok(Distribution::Cyclic(argument)),
        _ => fail(ERR_ARG, format!("{kind} is no distribution")),
    }
}

/// `MPI_Type_create_darray`.
#[expect(clippy::too_many_arguments, reason = "the standard's")]
pub fn type_create_darray(
    size: c_int,
    rank: c_int,
    ndims: c_int,
    gsizes: Counts,
    distributions: Pointer<c_int>,
    arguments: Pointer<c_int>,
    psizes: Pointer<c_int>,
    order: c_int,
    oldtype: Datatype,
    new: Pointer<Datatype>,
) -> Result<()> {
    let place = |n: c_int| checked(i64::from(n)).or_else(|_| fail(ERR_ARG, format!("process {n}")));
    let array = Array { ndims, order, oldtype };
    let n = array.dimensions()?;
    let (kinds, blocks, grid) = (distributions.list(n)?, arguments.list(n)?, psizes.list(n)?);
    let dealt: Vec<_> =
        kinds.iter().zip(&blocks).map(|(kind, block)| distribution(*kind, *block)).collect::<Result<_>>()?;
    let widths: Vec<usize> = grid.iter().map(|width| place(*width)).collect::<Result<_>>()?;
    let (processes, process) = (place(size)?, place(rank)?);
    let (gsizes, dealt_as) = (gsizes.list(n)?, [kinds, blocks, grid].concat());
    let whole = sizes(&gsizes)?;
    let lists = [gsizes, dealt_as.into_iter().map(i64::from).collect()];
    new.set(array.made(abi::COMBINER_DARRAY, &[size, rank, ndims], &lists, |order, old| {
        Layout::darray(processes, process, &whole, &dealt, &widths, order, old)
    })?)
}

/// Those of Fortran's kinds that were asked for: the same arguments give the same datatype (§19.1.9).
static KINDS: Mutex<Vec<(Asked, Datatype)>> = Mutex::new(Vec::new());

/// Combiner and arguments.
type Asked = (c_int, Vec<i64>);

fn kind(combiner: c_int, arguments: Vec<i64>, is: Datatype, new: Pointer<Datatype>) -> Result<()> {
    let mut kinds = KINDS.lock();
    let key = (combiner, arguments);
    if let Some((_, known)) = kinds.iter().find(|(known, _)| *known == key) {
        return new.set(*known);
    }
    let envelope = Envelope { combiner, ints: key.1.clone(), ..Envelope::default() };
    let object = TypeObject::new(get(is)?.datatype.clone(), Some(envelope), "");
    object.committed.store(true, std::sync::atomic::Ordering::Relaxed);
    let made = Datatype(TYPES.insert(object.into())?);
    kinds.push((key, made));
    new.set(made)
}

/// The first of some widths, each with its decimal digits and exponent, that holds as many as are asked for.
fn real(p: c_int, r: c_int, widths: [Datatype; 2]) -> Result<Datatype> {
    let holds = |digits: c_int, exponent: c_int| {
        (p == abi::UNDEFINED || p <= digits) && (r == abi::UNDEFINED || r <= exponent)
    };
    if holds(6, 37) {
        Ok(widths[0])
    } else if holds(15, 307) {
        Ok(widths[1])
    } else {
        fail(ERR_ARG, format!("no kind has {p} digits and an exponent of {r}"))
    }
}

/// `MPI_Type_create_f90_integer`.
pub fn type_create_f90_integer(range: c_int, new: Pointer<Datatype>) -> Result<()> {
    let is = match range {
        ..=2 => abi::INTEGER1,
        3..=4 => abi::INTEGER2,
        5..=9 => abi::INTEGER4,
        10..=18 => abi::INTEGER8,
        _ => return fail(ERR_ARG, format!("no kind has {range} digits")),
    };
    kind(abi::COMBINER_F90_INTEGER, vec![range.into()], is, new)
}

/// `MPI_Type_create_f90_real`.
pub fn type_create_f90_real(p: c_int, r: c_int, new: Pointer<Datatype>) -> Result<()> {
    let is = real(p, r, [abi::REAL4, abi::REAL8])?;
    kind(abi::COMBINER_F90_REAL, vec![p.into(), r.into()], is, new)
}

/// `MPI_Type_create_f90_complex`.
pub fn type_create_f90_complex(p: c_int, r: c_int, new: Pointer<Datatype>) -> Result<()> {
    let is = real(p, r, [abi::COMPLEX8, abi::COMPLEX16])?;
    kind(abi::COMBINER_F90_COMPLEX, vec![p.into(), r.into()], is, new)
}
