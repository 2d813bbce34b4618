//! Growth: each rank moves its own part to larger windows, while no rank has the table open.

use transom::{Job, Result, Sum, Window};

use super::{
    GROW, SLOT, TAKEN, Table, capacities, hash, mask, record_offset, record_text, slots_in, windows,
};

/// Bytes copied at once.
const CHUNK: usize = 1 << 20;

impl Table {
    /// Ends a round of counting: returns whether some rank is `unfinished`, after having made the heaps larger that are
    /// full or nearly so. Places found before are then no longer valid. Collective.
    ///
    /// # Errors
    /// No memory, and errors of the network.
    pub fn grow(&mut self, job: &Job, unfinished: bool) -> Result<bool> {
        // Also a barrier: after it no rank has the table open.
        if job.allreduce(Sum, &[u64::from(unfinished)])? == [0] {
            return Ok(false);
        }
        let taken = self.taken_at(job.rank())?;
        let asked = self.control.local().get(TAKEN)? as usize;
        let old = self.heap.len();
        let bytes = if asked > old / 4 * 3 { (2 * asked.max(old)).next_power_of_two() } else { old };
        // Before any rank may come back: the creation of windows waits for all.
        self.control.local().set(TAKEN, taken as u64)?;
        self.control.local().set(GROW, 0)?;
        let (slots, heap) = windows(job, bytes)?;
        copy(&self.heap, &heap, taken)?;
        move_slots(&self.slots, &slots, &heap, taken)?;
        self.capacities = capacities(job, &heap);
        std::mem::replace(&mut self.slots, slots).free()?;
        std::mem::replace(&mut self.heap, heap).free()?;
        Ok(true)
    }
}

/// Copies the first `bytes` bytes of this rank's part.
fn copy(from: &Window<u8>, to: &Window<u8>, bytes: usize) -> Result<()> {
    let mut buffer = vec![0; bytes.min(CHUNK)];
    for begin in (0..bytes).step_by(CHUNK) {
        let part = &mut buffer[..(bytes - begin).min(CHUNK)];
        from.local().read(begin, part)?;
        to.local().write(begin, part)?;
    }
    Ok(())
}

/// Inserts this rank's words, which are all different, into larger slots.
fn move_slots(from: &Window<u64>, to: &Window<u64>, heap: &Window<u8>, taken: usize) -> Result<()> {
    let (mask, to) = (mask(heap.len()), to.local());
    let mut records = vec![0; taken];
    heap.local().read(0, &mut records)?;
    let mut buffer = vec![0; from.len().min(CHUNK / size_of::<u64>())];
    for begin in (0..from.len()).step_by(buffer.len().max(1)) {
        let part = from.len().min(begin + buffer.len()) - begin;
        from.local().read(begin, &mut buffer[..part])?;
        for (entry, count) in slots_in(&buffer[..part]) {
            let text = record_offset(entry).and_then(|offset| record_text(&records, offset));
            let Some(text) = text else { continue };
            let mut slot = hash(&records[text]) as usize & mask;
            while to.get(slot * SLOT)? != 0 {
                slot = (slot + 1) & mask;
            }
            to.write(slot * SLOT, &[entry, count])?;
        }
    }
    Ok(())
}
