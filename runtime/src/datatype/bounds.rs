//! Where a type map begins and ends (MPI-4.1 §5.1.6 to §5.1.8).

/// Bounds of a type map. All displacements between them can be subtracted from each other without overflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Bounds {
    /// Bounds of the data; `None` without any.
    pub(super) data: Option<Data>,
    /// Lower and upper bound that `resized` and the array constructors have set; they replace the natural
    /// ones.
    pub(super) marks: Option<(i64, i64)>,
    /// The strictest alignment among the basic types.
    pub(super) alignment: usize,
}

/// Bounds of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Data {
    /// First byte.
    pub(super) low: i64,
    /// Behind the last byte of data.
    pub(super) high: i64,
    /// Behind the last byte of an element, with the padding at its end.
    pub(super) padded: i64,
    /// The highest upper bound of the types that this one is made of: where blocks are at strides that are no multiples of
    /// the alignment, the padding of the last one is part of the extent, so that no block ends behind it. §5.1.6 counts basic
    /// types alone; other implementations and those who make records of types (NumPy's of mpi4py) expect this.
    pub(super) end: i64,
}

impl Data {
    fn shifted(self, from: i64, to: i64) -> Option<Self> {
        let data = Self {
            low: self.low.checked_add(from)?,
            high: self.high.checked_add(to)?,
            padded: self.padded.checked_add(to)?,
            end: self.end.checked_add(to)?,
        };
        data.padded.max(data.end).checked_sub(data.low)?;
        Some(data)
    }
}

impl Bounds {
    /// Of copies at displacements whose lowest is `from` and whose highest is `to`; `None`: overflow.
    fn shifted(self, from: i64, to: i64) -> Option<Self> {
        let data = match self.data {
            Some(data) => Some(data.shifted(from, to)?),
            None => None,
        };
        let marks = match self.marks {
            Some((low, high)) => Some((low.checked_add(from)?, high.checked_add(to)?)),
            None => None,
        };
        Some(Self { data, marks, ..self })
    }

    /// Of `count` copies, `stride` bytes apart; `None`: overflow.
    pub(super) fn repeated(self, count: usize, stride: i64) -> Option<Self> {
        let Some(last) = count.checked_sub(1) else { return Some(Self::default()) };
        if self.data.is_none() && self.marks.is_none() {
            return Some(self);
        }
        let far = i64::try_from(i128::try_from(last).ok()?.checked_mul(i128::from(stride))?).ok()?;
        self.shifted(far.min(0), far.max(0))
    }

    /// Of this type map and `other`, moved by `displacement` bytes; `None`: overflow.
    pub(super) fn joined(self, other: Self, displacement: i64) -> Option<Self> {
        let other = other.shifted(displacement, displacement)?;
        let data = match (self.data, other.data) {
            (Some(a), Some(b)) => Some(
                Data {
                    low: a.low.min(b.low),
                    high: a.high.max(b.high),
                    padded: a.padded.max(b.padded),
                    end: a.end.max(b.end),
                }
                .shifted(0, 0)?,
            ),
            (a, b) => a.or(b),
        };
        let marks = match (self.marks, other.marks) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
        Some(Self { data, marks, alignment: self.alignment.max(other.alignment) })
    }

    /// As part of other types: what is padding at the end of this type stays so there.
    pub(super) fn closed(mut self, lower_bound: i64, extent: i64) -> Self {
        if let (Some(data), None) = (&mut self.data, self.marks) {
            data.end = lower_bound + extent;
        }
        self
    }

    /// Lower bound and extent; `None`: overflow.
    pub(super) fn extent(self) -> Option<(i64, i64)> {
        if let Some((low, high)) = self.marks {
            return Some((low, high.checked_sub(low)?));
        }
        let Some(Data { low, end, .. }) = self.data else { return Some((0, 0)) };
        let alignment = i64::try_from(self.alignment.max(1)).ok()?;
        let length = end.checked_sub(low)?;
        let extent = length.checked_add((alignment - length % alignment) % alignment)?;
        low.checked_add(extent)?;
        Some((low, extent))
    }
}
