//! Buffered sends (MPI-4.1 §3.6): the program says how much may be on its way; the copies are the runtime's own.

use std::ffi::c_void;

use parking_lot::Mutex;

use crate::abi::{BSEND_OVERHEAD, BUFFER_AUTOMATIC, ERR_BUFFER};
use crate::environment::store_pointer;
use crate::failure::{Result, fail};
use crate::place::Counts;

/// What the program has attached.
struct Attached {
    address: usize,
    size: usize,
    /// Bytes of each message on its way, and its request.
    under_way: Vec<(usize, transom::Request<Vec<u8>>)>,
}

static BUFFER: Mutex<Option<Attached>> = Mutex::new(None);

/// Room for a message of so many bytes.
pub fn take(bytes: usize) -> Result<usize> {
    let mut buffer = BUFFER.lock();
    let Some(attached) = &mut *buffer else {
        return fail(ERR_BUFFER, "no buffer is attached: call MPI_Buffer_attach first");
    };
    attached.under_way.retain(|(_, request)| !request.is_done());
    let needed = bytes + BSEND_OVERHEAD as usize;
    let used: usize = attached.under_way.iter().map(|(bytes, _)| bytes).sum();
    if attached.address != BUFFER_AUTOMATIC && needed > attached.size.saturating_sub(used) {
        let free = attached.size.saturating_sub(used);
        return fail(
            ERR_BUFFER,
            format!("a message needs {needed} bytes of the attached buffer, {free} are free"),
        );
    }
    Ok(needed)
}

/// A message that is on its way.
pub fn keep(room: usize, request: transom::Request<Vec<u8>>) {
    if let Some(attached) = &mut *BUFFER.lock() {
        attached.under_way.push((room, request));
    }
}

/// `MPI_Buffer_attach`.
pub fn buffer_attach(address: *mut c_void, size: i64) -> Result<()> {
    let mut buffer = BUFFER.lock();
    if buffer.is_some() {
        return fail(ERR_BUFFER, "a buffer is attached already");
    }
    let size = usize::try_from(size).or_else(|_| fail(ERR_BUFFER, format!("a buffer of {size} bytes")))?;
    *buffer = Some(Attached { address: address as usize, size, under_way: Vec::new() });
    Ok(())
}

/// `MPI_Buffer_detach`: waits until all messages are delivered.
pub fn buffer_detach(address: *mut c_void, size: Counts) -> Result<()> {
    let Some(attached) = BUFFER.lock().take() else {
        return fail(ERR_BUFFER, "no buffer is attached");
    };
    let automatic = attached.address == BUFFER_AUTOMATIC;
    let (place, bytes) = if automatic { (BUFFER_AUTOMATIC, 0) } else { (attached.address, attached.size) };
    for (_, request) in attached.under_way {
        request.wait()?;
    }
    store_pointer(address, place as *mut c_void)?;
    size.set(bytes as i64)
}

/// `MPI_Buffer_flush`.
pub fn buffer_flush() -> Result<()> {
    let under_way = match &mut *BUFFER.lock() {
        Some(attached) => std::mem::take(&mut attached.under_way),
        None => return fail(ERR_BUFFER, "no buffer is attached"),
    };
    for (_, request) in under_way {
        request.wait()?;
    }
    Ok(())
}
