//! Windows (MPI-4.1 chapter 12).

pub mod access;
pub mod create;
pub mod query;
pub mod requested;
mod scope;
pub mod short;
pub mod sync;

use std::ffi::c_int;
use std::mem::ManuallyDrop;
use std::sync::Arc;

use transom::{Explicit, Flavour, MemoryModel, Window};

use crate::abi::{self, Aint, ERR_WIN, WIN_BASE, WIN_CREATE_FLAVOR, WIN_DISP_UNIT, WIN_SIZE, Win};
use crate::attributes::Attributes;
use crate::failure::Result;
use crate::handlers::HandlerSlot;
use crate::table::Table;
use crate::world;
pub use scope::{One, There};

/// A window, with what C programs keep at it.
pub struct WinObject {
    /// The epochs, and what they borrow.
    epochs: ManuallyDrop<Explicit<'static, u8>>,
    window: *mut Window<u8>,
    pub handler: HandlerSlot,
    pub attributes: Attributes,
    facts: Facts,
}

/// The values of predefined attributes, at addresses that stay (§12.2.6).
#[derive(Debug)]
struct Facts {
    base: usize,
    size: Aint,
    unit: c_int,
    flavour: c_int,
    model: c_int,
}

// SAFETY: the window and its epochs are Send + Sync; the pointer is to the window, which lives as long.
unsafe impl Send for WinObject {}
// SAFETY: as above.
unsafe impl Sync for WinObject {}

/// Predefined attributes (§12.2.6).
pub const ATTRIBUTES: [c_int; 5] = [WIN_BASE, WIN_SIZE, WIN_DISP_UNIT, WIN_CREATE_FLAVOR, abi::WIN_MODEL];

static WINS: Table<WinObject> = Table::new(3, "window", ERR_WIN);

/// The window of a handle.
pub fn get(win: Win) -> Result<Arc<WinObject>> {
    WINS.get(win.0)
}

/// The window of a handle, for the length of a call.
#[inline]
fn peek(win: Win) -> Result<&'static WinObject> {
    WINS.peek(win.0)
}

impl WinObject {
    fn new(window: Window<u8>, base: usize) -> Self {
        let facts = Facts {
            base,
            size: window.bytes() as Aint,
            unit: c_int::try_from(window.displacement_unit()).unwrap_or(c_int::MAX),
            flavour: match window.flavour() {
                Flavour::Create => abi::WIN_FLAVOR_CREATE,
                Flavour::Allocate => abi::WIN_FLAVOR_ALLOCATE,
                Flavour::Shared => abi::WIN_FLAVOR_SHARED,
                Flavour::Dynamic => abi::WIN_FLAVOR_DYNAMIC,
            },
            model: match window.model() {
                MemoryModel::Unified => abi::WIN_UNIFIED,
                MemoryModel::Separate => abi::WIN_SEPARATE,
            },
        };
        let window = Box::into_raw(Box::new(window));
        // SAFETY: just made; it goes in `free` or `drop` only, after the epochs that borrow it.
        let made = unsafe { &*window };
        // Below MPI_THREAD_MULTIPLE the program promises that one thread at a time makes calls (MPI-4.1 §11.6.2).
        made.promise_threads(!world::is_multiple());
        let epochs = made.explicit();
        Self {
            epochs: ManuallyDrop::new(epochs),
            window,
            handler: HandlerSlot::default(),
            attributes: Attributes::default(),
            facts,
        }
    }

    /// The window itself.
    #[inline]
    pub fn window(&self) -> &Window<u8> {
        // SAFETY: made in `new`, and kept as long as `self`.
        unsafe { &*self.window }
    }

    /// The window's epochs.
    #[inline(always)]
    fn epochs(&self) -> &Explicit<'static, u8> {
        &self.epochs
    }

    /// The address of a predefined attribute's value; of the base, the base.
    pub fn predefined(&self, keyval: c_int) -> usize {
        let facts = &self.facts;
        match keyval {
            WIN_BASE => facts.base,
            WIN_SIZE => (&raw const facts.size).addr(),
            WIN_DISP_UNIT => (&raw const facts.unit).addr(),
            WIN_CREATE_FLAVOR => (&raw const facts.flavour).addr(),
            _ => (&raw const facts.model).addr(),
        }
    }

    /// Frees the window. Collective.
    fn free(self) -> transom::Result<()> {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is never used again and not dropped, so that each field goes once; the epochs before the window.
        let window = unsafe {
            ManuallyDrop::drop(&mut this.epochs);
            std::ptr::drop_in_place(&raw mut this.handler);
            std::ptr::drop_in_place(&raw mut this.attributes);
            Box::from_raw(this.window)
        };
        window.free()
    }
}

impl Drop for WinObject {
    fn drop(&mut self) {
        // SAFETY: drop runs once, and not after `free`; the epochs before the window that they borrow.
        unsafe {
            ManuallyDrop::drop(&mut self.epochs);
            drop(Box::from_raw(self.window));
        }
    }
}
