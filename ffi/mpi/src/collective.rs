//! Collectives (MPI-4.1 chapter 6): each is a plan made of the arguments, which its three forms carry out: at once, with a
//! request, or whenever a persistent request is started.

pub mod gathering;
mod held;
mod inter;
pub mod local;
pub mod neighbours;
mod parts;
pub mod reducing;
mod reduction;
pub mod scattering;
pub mod short;

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use crate::abi::{Comm, Datatype, ERR_BUFFER, ERR_ROOT, IN_PLACE, Request, Status};
use crate::buffer::{Buffer, Triple};
use crate::comm::CommObject;
use crate::failure::{Result, fail};
use crate::handlers::ErrorObject;
use crate::pointer::{Counts, Pointer};
use crate::request::{self, Pending, filled};

/// Which form is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    Blocking,
    Nonblocking,
}

/// A collective with its arguments. Gives a request if it is carried out later.
pub struct Plan(Box<dyn Fn(How) -> Result<Option<Pending>> + Send + Sync>);

impl Plan {
    /// A plan that `carry_out` carries out.
    pub fn new(carry_out: impl Fn(How) -> Result<Option<Pending>> + Send + Sync + 'static) -> Self {
        Self(Box::new(carry_out))
    }

    /// The blocking form.
    pub fn block(&self) -> Result<()> {
        (self.0)(How::Blocking).map(drop)
    }

    fn start(&self) -> Result<Pending> {
        match (self.0)(How::Nonblocking)? {
            Some(pending) => Ok(pending),
            None => fail(crate::abi::ERR_INTERN, "a collective that should go on was complete"),
        }
    }

    /// The nonblocking form.
    pub fn begin(&self, comm: Comm, request: Pointer<Request>) -> Result<()> {
        request.set(request::running(self.start()?, ErrorObject::Comm(comm))?)
    }

    /// The persistent form.
    pub fn keep(self, comm: Comm, request: Pointer<Request>) -> Result<()> {
        request.set(request::persistent(Box::new(move || self.start()), ErrorObject::Comm(comm))?)
    }
}

/// The request of a collective whose result goes to the program's buffers.
pub fn nonblocking<R: 'static>(
    request: transom::Request<R>,
    fill: impl FnOnce(R) -> Result<()> + Send + 'static,
) -> Pending {
    filled(request, |result| fill(result).map(|()| Status::EMPTY))
}

/// Carries out a collective of the runtime's in the form that is wanted: `run!(how, blocking, nonblocking, (arguments),
/// fill)`.
macro_rules! run {
    ($how:expr, $blocking:ident, $nonblocking:ident, ($($arg:expr),*), $fill:expr) => {
        match $how {
            $crate::collective::How::Blocking => {
                ($fill)(transom::raw::$blocking($($arg),*)?)?;
                Ok(None)
            }
            $crate::collective::How::Nonblocking => {
                Ok(Some($crate::collective::nonblocking(transom::raw::$nonblocking($($arg),*), $fill)))
            }
        }
    };
}
pub(crate) use run;

/// The three forms of a collective, of one plan for a communicator of one group and, if there can be any, one for two
/// groups: `blocking, nonblocking, persistent: (arguments) |communicator| plan, inter plan;`.
macro_rules! collectives {
    ($($(#[$doc:meta])* $blocking:ident, $nonblocking:ident, $init:ident:
        ($($arg:ident: $ty:ty),*) |$comm:ident| $plan:expr $(, inter $inter:expr)?;)*) => {$(
        $(#[$doc])*
        #[allow(clippy::too_many_arguments, reason = "the standard's")]
        pub fn $blocking($($arg: $ty,)* comm: Comm) -> Result<()> {
            let $comm = $crate::world::comm(comm)?;
            $(if $comm.inter.is_some() { return $inter.block(); })?
            $plan.block()
        }

        /// The same, nonblocking.
        #[allow(clippy::too_many_arguments, reason = "the standard's")]
        pub fn $nonblocking($($arg: $ty,)* comm: Comm, request: Pointer<Request>) -> Result<()> {
            let $comm = $crate::world::comm(comm)?;
            $(if $comm.inter.is_some() { return $inter.begin(comm, request); })?
            $plan.begin(comm, request)
        }

        /// The same, persistent.
        #[allow(clippy::too_many_arguments, reason = "the standard's")]
        pub fn $init($($arg: $ty,)* comm: Comm, info: Info, request: Pointer<Request>) -> Result<()> {
            request.check()?;
            $crate::info::hints(info)?;
            let all = $crate::world::comm(comm)?;
            let again = all.again();
            let $comm = again.clone();
            $(if $comm.inter.is_some() {
                let plan = $inter;
                all.number_rounds(&again);
                return plan.keep(comm, request);
            })?
            let plan = $plan;
            all.number_rounds(&again);
            plan.keep(comm, request)
        }
    )*};
}
pub(crate) use collectives;

/// A root, if it is a rank.
pub fn root(comm: &CommObject, root: c_int) -> Result<usize> {
    match usize::try_from(root) {
        Ok(rank) if rank < comm.comm.size() => Ok(rank),
        _ => fail(ERR_ROOT, format!("rank {root} as a root: there are {} ranks", comm.comm.size())),
    }
}

/// Whether a buffer is `MPI_IN_PLACE`.
pub fn in_place(address: *const c_void) -> bool {
    address as usize == IN_PLACE
}

/// A buffer, unless its data stays where another buffer has it.
pub fn unless_in_place(named: Triple) -> Result<Option<Buffer>> {
    if in_place(named.address) { Ok(None) } else { Buffer::new(named).map(Some) }
}

/// Refuses a rank's own data where its own part is to come: that is what `MPI_IN_PLACE` is for (MPI-4.1 §6.2.3).
pub fn apart(own: Option<&Buffer>, part: Option<&Buffer>) -> Result<()> {
    let (Some(own), Some(part)) = (own, part) else { return Ok(()) };
    let same = own.place() == part.place() && crate::abi::is_address(own.place().addr());
    if same && own.capacity()? > 0 && part.capacity()? > 0 {
        return fail(
            ERR_BUFFER,
            "what is sent and what is received is in one buffer: say MPI_IN_PLACE, or use two",
        );
    }
    Ok(())
}

/// A buffer's parts, one for each that data is exchanged with.
pub type Parts = Arc<[Buffer]>;

/// So many parts of `n` instances each, one behind the other.
pub fn equal(parts: usize, each: Triple) -> Result<Parts> {
    let all = Buffer::new(each)?;
    let parts = i64::try_from(parts).unwrap_or(i64::MAX);
    (0..parts).map(|part| all.part(part.saturating_mul(each.n), each.n)).collect()
}

/// So many parts, of so many instances at displacements of so many extents.
pub fn listed(
    parts: usize,
    address: *const c_void,
    counts: Counts,
    displacements: Counts,
    ty: Datatype,
) -> Result<Parts> {
    let all = Buffer::new(Triple::new(address, 0, ty))?;
    (0..parts).map(|part| all.part(displacements.at(part)?, counts.at(part)?)).collect()
}

/// So many parts, with a datatype and a displacement in bytes each.
pub fn typed(
    parts: usize,
    address: *const c_void,
    counts: Counts,
    displacements: Counts,
    types: Pointer<Datatype>,
) -> Result<Parts> {
    let part = |part| {
        let address = address.wrapping_byte_offset(displacements.at(part)? as isize);
        Buffer::new(Triple::new(address, counts.at(part)?, types.at(part)?))
    };
    (0..parts).map(part).collect()
}

/// The data of all parts.
pub fn pack_all(parts: &Parts) -> Result<Vec<Vec<u8>>> {
    parts.iter().map(Buffer::pack).collect()
}

/// Unpacks every rank's data to its part.
pub fn unpack_all(parts: &Parts, all: &[Vec<u8>]) -> Result<()> {
    parts.iter().zip(all).try_for_each(|(part, data)| part.unpack(data))
}

/// The parts of a buffer that only the root has.
pub fn at_root(
    comm: &CommObject,
    root: usize,
    parts: impl FnOnce() -> Result<Parts>,
) -> Result<Option<Parts>> {
    if comm.comm.rank() == root { parts().map(Some) } else { Ok(None) }
}
