//! Parts of arrays (MPI-4.1 §5.1.3 and §5.1.4).

use super::construct::refuse;
use super::layout::{Joint, Layout};
use super::{Contents, Datatype, Distribution, Order};
use crate::{Class, Result};

/// The part of one dimension, as blocks in cycles: `cycles` of `length` elements from `start` on, `cycle`
/// elements apart, and `rest` < `length` in the next.
struct Share {
    start: usize,
    length: usize,
    cycles: usize,
    cycle: usize,
    rest: usize,
}

impl Share {
    /// `layout`, which is `stride` bytes wide, for each element of the share; `None`: overflow.
    fn of(&self, layout: &Layout, stride: i64) -> Option<Layout> {
        let at = |element: usize| i64::try_from(element).ok()?.checked_mul(stride);
        let mut joint = Joint::new();
        if self.cycles > 0 {
            let cycle = if self.cycles > 1 { at(self.cycle)? } else { 0 };
            joint.push(
                &layout.repeated(self.length, stride)?.repeated(self.cycles, cycle)?,
                at(self.start)?,
            )?;
        }
        if self.rest > 0 {
            let start = self.cycle.checked_mul(self.cycles)?.checked_add(self.start)?;
            joint.push(&layout.repeated(self.rest, stride)?, at(start)?)?;
        }
        Some(joint.finish())
    }
}

/// The part of an array of `ty` with these sizes and shares; `None`: overflow.
fn part(ty: &Datatype, sizes: &[usize], shares: &[Share], order: Order) -> Option<Layout> {
    let mut layout = ty.layout().clone();
    let mut stride = ty.extent();
    let mut add = |(size, share): (&usize, &Share)| {
        layout = share.of(&layout, stride)?;
        stride = stride.checked_mul(i64::try_from(*size).ok()?)?;
        Some(())
    };
    let mut dimensions = sizes.iter().zip(shares);
    match order {
        Order::C => dimensions.rev().try_for_each(&mut add)?,
        Order::Fortran => dimensions.try_for_each(&mut add)?,
    }
    Some(layout.marked(0, stride))
}

impl Datatype {
    /// The box of `subsizes` at `starts` in an array of `sizes`, whose extent is the whole array
    /// (`MPI_Type_create_subarray`).
    ///
    /// ```
    /// use transom::{Datatype, datatype::Order};
    /// let inner = Datatype::subarray(&[4, 5], &[2, 3], &[1, 1], Order::C, &Datatype::of::<f64>())?;
    /// let runs: Vec<_> = inner.runs(1)?.map(|run| (run.offset, run.bytes)).collect();
    /// assert_eq!(runs, [(48, 24), (88, 24)]);
    /// # Ok::<(), transom::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Class::Argument` if the slices are empty or of different lengths, a subsize is 0, or the box is not
    /// inside the array; else as for [`contiguous`](Self::contiguous).
    pub fn subarray(
        sizes: &[usize],
        subsizes: &[usize],
        starts: &[usize],
        order: Order,
        ty: &Self,
    ) -> Result<Self> {
        let operation = "datatype subarray";
        let wrong = |message: String| Err(refuse(Class::Argument, operation, message));
        if sizes.is_empty() || subsizes.len() != sizes.len() || starts.len() != sizes.len() {
            return wrong(format!(
                "{} sizes, {} subsizes and {} starts; give one of each for every dimension, at least one",
                sizes.len(),
                subsizes.len(),
                starts.len()
            ));
        }
        let mut shares = Vec::with_capacity(sizes.len());
        for (dimension, ((&size, &length), &start)) in sizes.iter().zip(subsizes).zip(starts).enumerate() {
            if length == 0 || start.checked_add(length).is_none_or(|end| end > size) {
                return wrong(format!(
                    "{length} elements from {start} on do not fit dimension {dimension} of {size}; \
                     take at least one, inside the array"
                ));
            }
            shares.push(Share { start, length, cycles: 1, cycle: 0, rest: 0 });
        }
        let contents = Contents::Subarray {
            sizes: sizes.into(),
            subsizes: subsizes.into(),
            starts: starts.into(),
            order,
            inner: ty.clone(),
        };
        Self::make(operation, contents, part(ty, sizes, &shares, order))
    }

    /// What `rank` of `size` processes has of an array of `gsizes`, dealt out to a grid of `psizes`
    /// processes; the ranks are in the grid with the last index fastest, whatever the `order` of the array.
    /// The extent is the whole array (`MPI_Type_create_darray`).
    ///
    /// # Errors
    /// `Class::Argument` if the slices are empty or of different lengths, the grid does not have `size`
    /// processes, `rank` is not one of them, an argument or dimension is 0, blocks do not cover a dimension,
    /// or a dimension that is not dealt out has several processes; else as for
    /// [`contiguous`](Self::contiguous).
    pub fn darray(
        size: usize,
        rank: usize,
        gsizes: &[usize],
        distributions: &[Distribution],
        psizes: &[usize],
        order: Order,
        ty: &Self,
    ) -> Result<Self> {
        let operation = "datatype darray";
        let wrong = |message: String| Err(refuse(Class::Argument, operation, message));
        if gsizes.is_empty() || distributions.len() != gsizes.len() || psizes.len() != gsizes.len() {
            return wrong(format!(
                "{} sizes, {} distributions and {} grid sizes; \
                 give one of each for every dimension, at least one",
                gsizes.len(),
                distributions.len(),
                psizes.len()
            ));
        }
        let processes = psizes.iter().try_fold(1_usize, |product, width| product.checked_mul(*width));
        if processes != Some(size) || rank >= size {
            return wrong(format!(
                "rank {rank} of {size} on a grid of {psizes:?}; the grid's product is the size"
            ));
        }
        let mut shares = Vec::with_capacity(gsizes.len());
        let mut below = size;
        for (dimension, &width) in psizes.iter().enumerate() {
            let coordinate = rank % below / (below / width);
            below /= width;
            match share(gsizes[dimension], distributions[dimension], width, coordinate) {
                Ok(share) => shares.push(share),
                Err(message) => return wrong(format!("dimension {dimension}: {message}")),
            }
        }
        let contents = Contents::Darray {
            size,
            rank,
            gsizes: gsizes.into(),
            distributions: distributions.into(),
            psizes: psizes.into(),
            order,
            inner: ty.clone(),
        };
        Self::make(operation, contents, part(ty, gsizes, &shares, order))
    }
}

/// What process `coordinate` of `width` has of `size` elements, or what is wrong.
fn share(
    size: usize,
    distribution: Distribution,
    width: usize,
    coordinate: usize,
) -> std::result::Result<Share, String> {
    let length = match distribution {
        Distribution::None if width != 1 => {
            return Err(format!("{width} processes, but it is not dealt out; use 1, or Block"));
        }
        Distribution::None => size,
        Distribution::Block(length) => {
            let length = length.unwrap_or(size.div_ceil(width));
            if length.saturating_mul(width) < size {
                return Err(format!(
                    "{width} blocks of {length} do not cover {size}; use larger blocks or None"
                ));
            }
            length
        }
        Distribution::Cyclic(length) => length.unwrap_or(1),
    };
    if length == 0 || size == 0 {
        return Err(format!("blocks of {length} of {size} elements; both must be at least 1"));
    }
    // Blocks that do not fit 64 bits begin behind the array.
    let cycle = length.saturating_mul(width);
    let start = length.saturating_mul(coordinate);
    let mine = size.saturating_sub(start);
    let (cycles, tail) = (mine / cycle, mine % cycle);
    if tail >= length {
        return Ok(Share { start, length, cycles: cycles + 1, cycle, rest: 0 });
    }
    Ok(Share { start, length, cycles, cycle, rest: tail })
}
