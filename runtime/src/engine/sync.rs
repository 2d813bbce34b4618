//! What the engine's tables are synchronised with. Under the model checker they are compiled a second time, with its own
//! (`models`).

pub(super) use std::sync::Arc;
pub(super) use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};

pub(super) use parking_lot::{Mutex, RwLock};
