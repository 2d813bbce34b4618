//! Operations with a request of their own (MPI-4.1 §12.3.5).

use transom_transport::Basic;

use super::Epoch;
use crate::epoch::typed::method;
use crate::{Element, Operation, Request, Result};

impl<T: Element> Epoch<'_, '_, T> {
    method! {
        /// A put with a request of its own (`MPI_Rput`, §12.3.5): it owns the data, and gives it back when it may be reused.
        /// Complete at the target after a flush or the end of the epoch; these complete the request, too. For epochs of lock
        /// and lock_all.
        ///
        /// ```
        /// transom::local(2, |job| {
        ///     let window = job.allocate::<u32>(4)?;
        ///     window.lock_all(|epoch| {
        ///         let put = epoch.rput(1 - job.rank(), 0, vec![1, 2, 3])?;
        ///         let data = put.wait()?; // or: put.await
        ///         assert_eq!(data, [1, 2, 3]);
        ///         epoch.flush(1 - job.rank())?;
        ///         assert_eq!(epoch.rget(1 - job.rank(), 1, 2)?.wait()?, [2, 3]);
        ///         Ok(())
        ///     })?;
        ///     window.free()
        /// })?;
        /// # Ok::<(), transom::Error>(())
        /// ```
        ///
        /// # Errors
        /// As [`Epoch::put`]; an epoch of another kind. Errors of the network come with the request.
        rput
    }

    method! {
        /// A get of `len` elements with a request of its own (`MPI_Rget`), which gives them. Nothing from the null rank.
        ///
        /// # Errors
        /// As [`Epoch::rput`].
        rget
    }
}

impl<T: Element + Basic> Epoch<'_, '_, T> {
    method! {
        /// An accumulate with a request of its own (`MPI_Raccumulate`), which gives the data back.
        ///
        /// # Errors
        /// As [`Epoch::rput`].
        raccumulate
    }

    method! {
        /// A fetching accumulate with a request of its own (`MPI_Rget_accumulate`), which gives what was there. `data` is read
        /// by the call.
        ///
        /// # Errors
        /// As [`Epoch::rput`].
        rget_accumulate
    }

    /// [`Epoch::fetch_op`] with a request of its own, which gives what was there. The standard has no such call.
    ///
    /// # Errors
    /// As [`Epoch::rput`].
    pub fn rfetch_op<O: Operation<T>>(
        &self,
        target: usize,
        displacement: usize,
        _op: O,
        value: T,
    ) -> Result<Request<T>> {
        let request = self.access.rget_accumulate("rfetch_and_op", target, displacement, O::OP, &[value])?;
        Ok(request.map(|old| Ok(old.first().copied().unwrap_or_else(T::new_zeroed))))
    }
}
