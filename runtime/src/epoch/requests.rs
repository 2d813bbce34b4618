//! Operations with a request of their own (MPI-4.1 §12.3.5), for both interfaces: they own their buffers. What is complete when
//! the call returns needs nothing but a request that says so.

use std::sync::Arc;

use transom_transport::{Basic, ReduceOp};
use zerocopy::IntoBytes;

use super::access::Access;
use super::calls::Update;
use crate::memory::{ExposedVec, OriginBuffer, RawBuffer, ResultBuffer};
use crate::operation::{self, Accumulate, Completion, Description, ReplyBuffer};
use crate::{Class, Element, Error, Layout, Request, Result};

/// A request, or nothing if the operation is complete.
pub type Requested = Option<Request<()>>;

impl Access<'_> {
    /// Whether operations with requests may be started, and whether they are complete when the call returns.
    fn ends_at_once(self, name: &'static str, target: usize) -> Result<bool> {
        self.check_only(name, target)?;
        self.core.check_requests(name, target)?;
        Ok(target == crate::NULL_RANK || self.core.is_mapped(target))
    }

    fn done<R: Send + 'static>(self, name: &'static str, value: R) -> Request<R> {
        Request::done(&self.core.member, name, Ok(value))
    }

    /// Starts what is described; `finish` gives the request's result after its last part.
    fn start<R: Send + 'static>(
        self,
        description: Description<'_>,
        reply_buffer: ReplyBuffer,
        finish: impl FnOnce() -> Result<R> + Send + 'static,
    ) -> Result<Request<R>> {
        let (name, target) = (description.name, description.target);
        let begin = |deferred: &_| operation::perform(self.core, description, Completion::Request(deferred));
        let promise = operation::request(self.core, (name, target), reply_buffer, begin, finish)?;
        Ok(Request::of(&self.core.member, name, promise))
    }

    /// `MPI_Rput`: the data comes back when it may be reused.
    pub fn rput<T: Element>(
        self,
        target: usize,
        displacement: usize,
        data: Vec<T>,
    ) -> Result<Request<Vec<T>>> {
        const NAME: &str = "rput";
        let describe = |origin| Description::put(target, displacement, origin).named(NAME);
        if self.ends_at_once(NAME, target)? {
            self.perform(describe(OriginBuffer::borrowed(data.as_bytes())), Completion::Flush)?;
            return Ok(self.done(NAME, data));
        }
        let vector = Arc::new(ExposedVec::new(data).0);
        self.start(describe(vector.origin()), ReplyBuffer::Nowhere, move || take(NAME, vector))
    }

    /// `MPI_Rget` of `len` elements.
    pub fn rget<T: Element>(self, target: usize, displacement: usize, len: usize) -> Result<Request<Vec<T>>> {
        const NAME: &str = "rget";
        let at_once = self.ends_at_once(NAME, target)?;
        if target == crate::NULL_RANK {
            return Ok(self.done(NAME, Vec::new()));
        }
        // More than an address space holds is outside every window.
        let bytes = len.saturating_mul(size_of::<T>());
        operation::check_range(self.core, NAME, target, displacement, bytes)?;
        let describe = |result| Description::get(target, displacement, result).named(NAME);
        let mut data = vec![T::new_zeroed(); len];
        if at_once {
            self.perform(describe(ResultBuffer::borrowed(data.as_mut_bytes())), Completion::Flush)?;
            return Ok(self.done(NAME, data));
        }
        let vector = Arc::new(ExposedVec::new(data).0);
        self.start(describe(vector.result()), ReplyBuffer::Nowhere, move || take(NAME, vector))
    }

    /// `MPI_Raccumulate`: the operands are read by the call.
    pub fn raccumulate<T: Element + Basic>(
        self,
        target: usize,
        displacement: usize,
        op: ReduceOp,
        data: Vec<T>,
    ) -> Result<Request<Vec<T>>> {
        const NAME: &str = "raccumulate";
        self.ends_at_once(NAME, target)?;
        let what = Accumulate { op, ty: T::TYPE, operands: data.as_bytes() };
        let description = Description::accumulate(target, displacement, what, None).named(NAME);
        self.perform(description, Completion::Flush)?;
        Ok(self.done(NAME, data))
    }

    /// `MPI_Rget_accumulate`, which gives what was there. The operands are read by the call.
    pub fn rget_accumulate<T: Element + Basic>(
        self,
        name: &'static str,
        target: usize,
        displacement: usize,
        op: ReduceOp,
        data: &[T],
    ) -> Result<Request<Vec<T>>> {
        let what = Accumulate { op, ty: T::TYPE, operands: data.as_bytes() };
        let describe = |fetched| Description::accumulate(target, displacement, what, fetched).named(name);
        let at_once = self.ends_at_once(name, target)?;
        let mut old = vec![T::new_zeroed(); data.len()];
        if at_once {
            self.perform(describe(Some(old.as_mut_bytes())), Completion::Flush)?;
            return Ok(self.done(name, old));
        }
        let stream = Arc::new(parking_lot::Mutex::new(vec![0; what.operands.len()]));
        let fetched = stream.clone();
        self.start(describe(None), ReplyBuffer::Stream(stream), move || {
            old.as_mut_bytes().copy_from_slice(&fetched.lock());
            Ok(old)
        })
    }

    /// `MPI_Rput` and `MPI_Rget` of memory that the program keeps until the request, a flush or the end of the epoch has completed
    /// the operation.
    pub fn transfer_raw(self, description: Description<'_>, memory: RawBuffer) -> Result<Requested> {
        if self.ends_at_once(description.name, description.target)? {
            return self.perform(description, Completion::Flush).map(|()| None);
        }
        self.start(description, ReplyBuffer::Memory(memory), || Ok(())).map(Some)
    }

    /// `MPI_Rget_accumulate` between layouts. `data` is read by the call, what was there goes to `result`.
    pub fn rget_accumulate_raw(
        self,
        update: Update<'_>,
        (result, fetch): (RawBuffer, Layout<'_>),
    ) -> Result<Requested> {
        const NAME: &str = "rget_accumulate";
        let Update { target, displacement, op, operands: (data, from), layout: to, .. } = update;
        let at_once = self.ends_at_once(NAME, target)?;
        // An operation that changes nothing has no operands to send: rare enough to wait for.
        if at_once || op == ReduceOp::NoOp {
            let fetch = Some((result.bytes_mut(), fetch));
            return self.accumulate_as(target, displacement, op, (data, from), to, fetch).map(|()| None);
        }
        let core = self.core;
        let (ty, operands) = operation::operands(core, NAME, op, (data, &from), &to)?;
        operation::check_result(core, NAME, op, (result.bytes().len(), &fetch), &to)?;
        let what = Accumulate { op, ty, operands: &operands };
        let description = Description::accumulate(target, displacement, what, None).named(NAME);
        let description = Description { layout: Some(to), ..description };
        let stream = Arc::new(parking_lot::Mutex::new(vec![0; operands.len()]));
        let (fetched, datatype, count) = (stream.clone(), fetch.datatype.clone(), fetch.count);
        let (rank, window) = (core.member.engine.rank, core.number);
        let finish = move || {
            let layout = Layout::new(count, &datatype);
            let scattered = operation::scatter(&fetched.lock(), result.bytes_mut(), &layout, ty);
            scattered.map_err(|e| e.at_rank(rank).in_window(window))
        };
        self.start(description, ReplyBuffer::Stream(stream), finish).map(Some)
    }
}

/// A vector whose operation is over.
fn take<T: Element>(name: &'static str, vector: Arc<ExposedVec<T>>) -> Result<Vec<T>> {
    let in_use = |_| Error::new(Class::Other, name, "the buffer is still in use");
    Arc::try_unwrap(vector).map(ExposedVec::take).map_err(in_use)
}
