//! `libmpi_abi.so.1`: the C interface of MPI-5.0 with its standard ABI, over the runtime; and `libmpi.so.12`, with that of MPICH.
//!
//! The tables in `abi/` say which functions, constants and types there are; the build makes mpi.h and the exported
//! functions of them. An exported function finds out whether it may be called, calls the function of the same name in
//! `calls`, and takes an error to the handler of the object it was for (`call.rs`). The package transom-mpich has the same sources and
//! other tables (`abi.rs`).
//!
//! What is here translates handles, constants and memory, and decides nothing.

#![allow(
    clippy::missing_safety_doc,
    reason = "exported functions have the standard's conditions, which mpi.h's users know"
)]

#[cfg(not(all(unix, target_pointer_width = "64")))]
compile_error!("the ABI is written down here for 64-bit Unix");

mod abi;
mod attributes;
mod buffer;
mod call;
mod collective;
mod comm;
mod conversions;
mod environment;
mod errors;
mod failure;
#[cfg(mpich)]
mod fortran;
mod group;
mod handlers;
mod hardware;
mod info;
mod message;
#[cfg(mpich)]
mod mpich;
mod op;
mod pointer;
mod request;
mod session;
mod shmem;
mod table;
mod tools;
mod topology;
mod types;
mod win;
mod world;

/// Packed data and what collectives receive is of the messages' size, again and again.
#[global_allocator]
static ALLOCATOR: transom_transport::memory::Recycled = transom_transport::memory::Recycled::new();

/// What exported functions call: for `MPI_Win_lock` it is `win_lock`.
mod calls {
    pub use crate::attributes::calls::*;
    pub use crate::collective::{gathering::*, local::*, neighbours::*, reducing::*, scattering::*};
    pub use crate::comm::{calls::*, failures::*, inter::*, inter_create::*, name::*};
    pub use crate::conversions::*;
    pub use crate::environment::*;
    pub use crate::errors::*;
    pub use crate::group::*;
    pub use crate::handlers::calls::*;
    pub use crate::hardware::get_hw_resource_info;
    pub use crate::info::calls::*;
    pub use crate::message::partitioned::{
        parrived, pready, pready_list, pready_range, precv_init, psend_init,
    };
    pub use crate::message::{buffered::*, matched::*, persistent::*, receive::*, send::*};
    #[cfg(mpich)]
    pub use crate::mpich::{removed::*, *};
    pub use crate::op::*;
    pub use crate::request::{calls::*, general::*, some::*, status::*};
    pub use crate::session::*;
    pub use crate::tools::*;
    pub use crate::topology::{cart::*, dims::*, dist_graph::*, graph::*, topo_test};
    pub use crate::types::{arrays::*, construct::*, contents::*, pack::*, query::*};
    pub use crate::win::{access::*, create::*, query::*, requested::*, sync::*};
}

/// What exported functions try first, if it is there for them: none of the result is known before the long way has been gone.
mod short {
    pub use crate::collective::short::*;
    pub use crate::message::receive::{irecv_now as irecv, recv_now as recv};
    pub use crate::message::send::{isend_now as isend, send_now as send};
    pub use crate::request::calls::short::*;
    pub use crate::win::short::any;
    pub use crate::win::short::*;
}

/// The exported functions.
#[allow(
    unused_variables,
    unused_unsafe,
    clippy::too_many_arguments,
    clippy::undocumented_unsafe_blocks,
    clippy::unnecessary_cast,
    reason = "made by the build; pointers become values of `place` here, by the promise that every caller makes (see there)"
)]
mod exports {
    use std::ffi::{c_char, c_double, c_int, c_void};

    use crate::abi::*;
    use crate::buffer::Triple;
    use crate::call::{When, call, unsupported};
    #[cfg(mpich)]
    use crate::fortran;
    use crate::handlers::ErrorObject;
    use crate::message::Envelope;
    use crate::pointer::{Counts, Pointer, Text};
    use crate::win::{One, There};
    use crate::{calls, short};

    include!(concat!(env!("OUT_DIR"), "/shims.rs"));
}
