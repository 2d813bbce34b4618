//! Type maps written out, straight from the definitions of the standard.

use transom_transport::DataType;

use crate::datatype::basic;

/// A type map: displacements and basic types, and the explicit bounds.
#[derive(Debug, Clone, Default)]
pub(super) struct Map {
    pub(super) entries: Vec<(i64, DataType)>,
    pub(super) marks: Option<(i64, i64)>,
    /// The highest upper bound of the types that it is made of.
    pub(super) end: Option<i64>,
}

impl Map {
    /// Copies of `self` at `displacements`, in this order, behind what is there.
    pub(super) fn place(&mut self, part: &Self, displacements: impl IntoIterator<Item = i64>) {
        for at in displacements {
            self.entries.extend(part.entries.iter().map(|(disp, ty)| (disp + at, *ty)));
            if part.marks.is_none() && !part.entries.is_empty() {
                self.end = self.end.max(Some(at + part.bounds().1));
            }
            if let Some((low, high)) = part.marks {
                let (low, high) = (low + at, high + at);
                let (a, b) = self.marks.unwrap_or((low, high));
                self.marks = Some((a.min(low), b.max(high)));
            }
        }
    }

    fn copies(part: &Self, displacements: impl IntoIterator<Item = i64>) -> Self {
        let mut map = Self::default();
        map.place(part, displacements);
        map
    }

    pub(super) fn instances(&self, count: usize) -> Self {
        let extent = self.extent();
        Self::copies(self, (0..count as i64).map(|i| i * extent))
    }

    /// Offset and length of data in order, not merged.
    pub(super) fn fields(&self) -> Vec<(i64, usize)> {
        let fields = |(disp, ty): &(i64, DataType)| {
            let disp = *disp;
            basic::fields(*ty).map(move |(offset, len)| (disp + offset as i64, len))
        };
        self.entries.iter().flat_map(fields).collect()
    }

    pub(super) fn true_bounds(&self) -> Option<(i64, i64)> {
        let fields = self.fields();
        let low = fields.iter().map(|field| field.0).min()?;
        Some((low, fields.iter().map(|field| field.0 + field.1 as i64).max()?))
    }

    pub(super) fn bounds(&self) -> (i64, i64) {
        if let Some(marks) = self.marks {
            return marks;
        }
        let Some((low, mut high)) = self.true_bounds() else { return (0, 0) };
        high = high.max(self.end.unwrap_or(high));
        let alignment = self.entries.iter().map(|entry| basic::alignment(entry.1)).max().unwrap_or(1);
        while (high - low) % alignment as i64 != 0 {
            high += 1;
        }
        (low, high)
    }

    pub(super) fn extent(&self) -> i64 {
        self.bounds().1 - self.bounds().0
    }

    pub(super) fn size(&self) -> usize {
        self.fields().iter().map(|field| field.1).sum()
    }

    /// Runs as long as the order allows.
    pub(super) fn runs(&self) -> Vec<(i64, usize)> {
        let mut runs: Vec<(i64, usize)> = Vec::new();
        for (offset, len) in self.fields() {
            match runs.last_mut() {
                Some(last) if last.0 + last.1 as i64 == offset => last.1 += len,
                _ => runs.push((offset, len)),
            }
        }
        runs
    }

    /// Runs of elements of one type.
    pub(super) fn elements(&self) -> Vec<(i64, usize, DataType)> {
        let mut runs: Vec<(i64, usize, DataType)> = Vec::new();
        for (offset, ty) in &self.entries {
            match runs.last_mut() {
                Some(last) if last.2 == *ty && last.0 + (last.1 * ty.size()) as i64 == *offset => last.1 += 1,
                _ => runs.push((*offset, 1, *ty)),
            }
        }
        runs
    }
}

/// The elements of an array that are owned in each dimension, in the order of memory.
pub(super) fn array(
    inner: &Map,
    sizes: &[usize],
    fortran: bool,
    owned: impl Fn(usize, usize) -> bool,
) -> Map {
    let total: usize = sizes.iter().product();
    let mut map = Map::default();
    for element in 0..total {
        let mut rest = element;
        let mut mine = true;
        let mut dimension = |dim: usize| {
            mine &= owned(dim, rest % sizes[dim]);
            rest /= sizes[dim];
        };
        if fortran {
            (0..sizes.len()).for_each(&mut dimension);
        } else {
            (0..sizes.len()).rev().for_each(&mut dimension);
        }
        if mine {
            map.place(inner, [element as i64 * inner.extent()]);
        }
    }
    Map { marks: Some((0, total as i64 * inner.extent())), ..map }
}
