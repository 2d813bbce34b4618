//! The separate memory model: a public copy, which others access, beside the private copy in the process's memory.
//!
//! What has changed since the two were last the same is found by comparing bytes with a snapshot of that moment. So a
//! reconciliation in one direction writes only what was updated, and never undoes an update of the other copy.

use parking_lot::Mutex;
use transom_transport::{Span, TransportResult};

/// Bytes that are compared at a time.
const CHUNK: usize = 4096;

/// The two copies of one rank's part.
#[derive(Debug)]
pub(crate) struct Copies {
    private: Span,
    public: Span,
    /// The bytes that both had when they were last the same.
    same: Mutex<Vec<u8>>,
}

impl Copies {
    /// Copies that start out the same, with what is in `private`.
    pub fn new(private: Span, public: Span) -> TransportResult<Self> {
        let mut same = vec![0; private.len()];
        private.copy_out(0, &mut same)?;
        public.copy_in(0, &same)?;
        Ok(Self { private, public, same: Mutex::new(same) })
    }

    /// Local stores become visible in the public copy (rule 5).
    pub fn publish(&self) -> TransportResult<()> {
        self.propagate(&self.private, &self.public)
    }

    /// What others put becomes visible in the private copy (rule 6).
    pub fn refresh(&self) -> TransportResult<()> {
        self.propagate(&self.public, &self.private)
    }

    fn propagate(&self, from: &Span, to: &Span) -> TransportResult<()> {
        let mut same = self.same.lock();
        let mut chunk = [0; CHUNK];
        for (i, same) in same.chunks_mut(CHUNK).enumerate() {
            let (start, now) = (i * CHUNK, &mut chunk[..same.len()]);
            from.copy_out(start, now)?;
            if same == now {
                continue;
            }
            for (offset, changed) in changes(same, now) {
                to.copy_in(start + offset, changed)?;
            }
            same.copy_from_slice(now);
        }
        Ok(())
    }
}

/// The runs of bytes in `new` that differ from those in `old`.
fn changes<'a>(old: &'a [u8], new: &'a [u8]) -> impl Iterator<Item = (usize, &'a [u8])> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + old[at..].iter().zip(&new[at..]).position(|(a, b)| a != b)?;
        let len = old[start..].iter().zip(&new[start..]).take_while(|(a, b)| a != b).count();
        at = start + len;
        Some((start, &new[start..at]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LEN: usize = 2 * CHUNK + 100;

    fn byte(span: &Span, at: usize) -> u8 {
        let mut byte = [0];
        span.copy_out(at, &mut byte).unwrap();
        byte[0]
    }

    #[test]
    fn each_direction_brings_what_changed_and_nothing_else() {
        let (private, public) = (Span::anonymous(LEN).unwrap(), Span::anonymous(LEN).unwrap());
        private.copy_in(5, &[9]).unwrap();
        let copies = Copies::new(private.clone(), public.clone()).unwrap();
        assert_eq!(byte(&public, 5), 9);
        private.copy_in(0, &[1]).unwrap();
        public.copy_in(LEN - 1, &[2]).unwrap();
        assert_eq!((byte(&public, 0), byte(&private, LEN - 1)), (0, 0));
        copies.publish().unwrap();
        assert_eq!((byte(&public, 0), byte(&private, LEN - 1)), (1, 0));
        assert_eq!(byte(&public, LEN - 1), 2, "a publication must not undo a put");
        private.copy_in(1, &[3]).unwrap();
        copies.refresh().unwrap();
        assert_eq!((byte(&private, LEN - 1), byte(&private, 1), byte(&public, 1)), (2, 3, 0));
    }

    proptest! {
        /// Updates of disjoint bytes on both sides: after both reconciliations, in either order, both have both.
        #[test]
        fn disjoint_updates_meet(updates in proptest::collection::vec((0..LEN, any::<u8>(), any::<bool>()), 0..60)) {
            let (private, public) = (Span::anonymous(LEN).unwrap(), Span::anonymous(LEN).unwrap());
            let copies = Copies::new(private.clone(), public.clone()).unwrap();
            let mut model = vec![0; LEN];
            for (at, value, local) in updates {
                // Even bytes are updated by the owner, odd ones by others.
                let at = (at & !1) + usize::from(!local);
                let at = at.min(LEN - 2 + usize::from(!local));
                if local { &private } else { &public }.copy_in(at, &[value]).unwrap();
                model[at] = value;
            }
            copies.refresh().unwrap();
            copies.publish().unwrap();
            for span in [&private, &public] {
                let mut now = vec![0; LEN];
                span.copy_out(0, &mut now).unwrap();
                prop_assert_eq!(&now, &model);
            }
        }
    }
}
