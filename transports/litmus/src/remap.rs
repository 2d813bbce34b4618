//! Memory that was unmapped, and mapped again at the same address: is it the new memory that the transport uses?

use std::time::Instant;

use transom_transport::{Span, TransportResult};

use crate::Effort;
use crate::pair::Pair;
use crate::side::Trouble;
use crate::stamp;
use crate::target::Attended;
use crate::verdict::{Seen, Verdict};

/// Long enough to be registered on the fly by every transport.
const SIZE: usize = 1 << 20;

const STALE: &str = "The transport uses memory that was unmapped: data is corrupted without an error. With libfabric set \
                     FI_MR_CACHE_MONITOR=memhooks (or userfaultfd), or FI_MR_CACHE_MAX_COUNT=0; else use another provider.";

/// Puts from such memory.
pub fn remap_put(pair: &Pair, effort: Effort) -> Verdict {
    let seen = remap(pair, effort, |buffer, round| {
        let expected = stamp::bytes(round, SIZE);
        buffer.copy_in(0, &expected)?;
        pair.origin.wait(pair.origin.start_put(&pair.remote, 0, buffer, SIZE)?)?;
        Ok(stamp::is_there(&pair.memory, 0, &expected)?)
    });
    Verdict::new("put, memory mapped anew", true, seen)
}

/// Gets to such memory.
pub fn remap_get(pair: &Pair, effort: Effort) -> Verdict {
    let seen = remap(pair, effort, |buffer, round| {
        let expected = stamp::bytes(round, SIZE);
        pair.memory.copy_in(0, &expected)?;
        // Pages of its own, which the device does not know unless it is told.
        buffer.copy_in(0, &vec![0; SIZE])?;
        pair.origin.wait(pair.origin.start_get(&pair.remote, 0, buffer, SIZE)?)?;
        Ok(stamp::is_there(buffer, 0, &expected)?)
    });
    Verdict::new("get, memory mapped anew", true, seen)
}

fn remap(
    pair: &Pair,
    effort: Effort,
    transfer: impl Fn(&Span, u64) -> Result<bool, Trouble>,
) -> Result<Seen, Trouble> {
    if !pair.has_access() {
        return Ok(Seen::not_applicable("no puts", "Windows are reached by messages."));
    }
    let (again, stale) = Attended::run(pair, &|_| (), || {
        let (mut again, mut stale, mut round) = (0_u64, 0_u64, 0);
        let mut buffer = Span::reserve(None, SIZE, 0)?;
        transfer(&buffer, round)?;
        let begin = Instant::now();
        while round == 0 || (round < effort.rounds && begin.elapsed() < effort.time) {
            round += 1;
            let (next, same) = anew(buffer)?;
            buffer = next;
            let right = transfer(&buffer, round)?;
            again += u64::from(same);
            stale += u64::from(!right);
        }
        Ok((again, stale))
    })?;
    if again == 0 {
        return Ok(Seen::not_applicable(
            "the address was taken each time",
            "Try again on a quieter machine.",
        ));
    }
    let evidence = format!("{again} times at the same address, {stale} stale");
    Ok(Seen::judge(stale == 0, evidence, "Buffers may be freed and come back as other memory.", STALE))
}

/// Unmaps, and maps again; whether at the same address.
fn anew(buffer: Span) -> TransportResult<(Span, bool)> {
    let address = buffer.address();
    drop(buffer);
    let buffer = Span::reserve(None, SIZE, address)?;
    let same = buffer.address() == address;
    Ok((buffer, same))
}
