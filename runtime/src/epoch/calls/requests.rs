//! Operations with a request of their own (MPI-4.1 §12.3.5).

use transom_transport::Basic;

use super::Explicit;
use crate::epoch::typed::method;
use crate::{Element, Operation, Request, Result};

impl<T: Element> Explicit<'_, T> {
    method! {
        /// `MPI_Rput`: as [`crate::Epoch::rput`].
        ///
        /// # Errors
        /// As [`crate::Epoch::rput`]; no epoch.
        rput
    }

    method! {
        /// `MPI_Rget`: as [`crate::Epoch::rget`].
        ///
        /// # Errors
        /// As [`Explicit::rput`].
        rget
    }
}

impl<T: Element + Basic> Explicit<'_, T> {
    method! {
        /// `MPI_Raccumulate`: as [`crate::Epoch::raccumulate`].
        ///
        /// # Errors
        /// As [`Explicit::rput`].
        raccumulate
    }

    method! {
        /// `MPI_Rget_accumulate`: as [`crate::Epoch::rget_accumulate`].
        ///
        /// # Errors
        /// As [`Explicit::rput`].
        rget_accumulate
    }
}
