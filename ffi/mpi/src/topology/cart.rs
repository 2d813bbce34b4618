//! Cartesian topologies (MPI-4.1 chapter 8).

use std::ffi::c_int;
use std::sync::Arc;

use transom::raw::Edge;

use super::{Neighbours, Topology, int, make, topologies};
use crate::abi::{Comm, ERR_ARG, ERR_DIMS, ERR_RANK, ERR_TOPOLOGY, PROC_NULL};
use crate::comm::CommObject;
use crate::failure::{Result, fail};
use crate::pointer::{Pointer, flag};
use crate::world::comm as get;

/// A grid: its widths, and which of them are rings. The last coordinate changes fastest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cart {
    widths: Vec<usize>,
    rings: Vec<bool>,
}

impl Cart {
    fn coordinates(&self, mut rank: usize) -> Vec<usize> {
        let mut all: Vec<usize> = Vec::with_capacity(self.widths.len());
        for width in self.widths.iter().rev() {
            all.push(rank % width);
            rank /= width;
        }
        all.reverse();
        all
    }

    /// The rank at coordinates, which wrap in rings; none outside.
    fn rank(&self, coordinates: &[i64]) -> Option<usize> {
        let dimensions = self.widths.iter().zip(&self.rings).zip(coordinates);
        dimensions.into_iter().try_fold(0, |rank, ((width, ring), at)| {
            let width_ = i64::try_from(*width).ok()?;
            let at = if *ring { at.rem_euclid(width_) } else { *at };
            usize::try_from(at).ok().filter(|at| at < width).map(|at| rank * width + at)
        })
    }

    /// The rank so far along a dimension from another.
    fn shifted(&self, rank: usize, dimension: usize, by: i64) -> Option<usize> {
        let mut at: Vec<i64> = self.coordinates(rank).into_iter().map(|at| at as i64).collect();
        at[dimension] += by;
        self.rank(&at)
    }

    /// Along each dimension the one before and the one behind. What is sent backwards comes from behind, also where both
    /// are the same rank (§8.6).
    pub fn neighbours(&self, rank: usize) -> Neighbours {
        let both = || (0..self.widths.len()).flat_map(|dimension| [(dimension, 0), (dimension, 1)]);
        let edge = |(dimension, side): (usize, usize), number| {
            let there = self.shifted(rank, dimension, if side == 0 { -1 } else { 1 });
            there.map(|rank| Edge { rank, number: 2 * dimension + number })
        };
        Neighbours {
            to: both().map(|way| edge(way, way.1)).collect(),
            from: both().map(|way| edge(way, 1 - way.1)).collect(),
        }
    }

    fn size(&self) -> Option<usize> {
        self.widths.iter().try_fold(1usize, |size, width| size.checked_mul(*width))
    }
}

fn cart(comm: Comm) -> Result<(Arc<CommObject>, Arc<Cart>)> {
    let object = get(comm)?;
    match &object.topology {
        Some(Topology::Cart(cart)) => Ok((object.clone(), cart.clone())),
        _ => fail(ERR_TOPOLOGY, "the communicator has no Cartesian topology"),
    }
}

/// A number of dimensions.
pub(super) fn dimensions(n: c_int) -> Result<usize> {
    usize::try_from(n).or_else(|_| fail(ERR_DIMS, format!("{n} dimensions")))
}

fn grid(n: c_int, widths: Pointer<c_int>, rings: Pointer<c_int>) -> Result<Cart> {
    let n = dimensions(n)?;
    let width = |width: c_int| match usize::try_from(width) {
        Ok(width) if width > 0 => Ok(width),
        _ => fail(ERR_DIMS, format!("a dimension of {width}")),
    };
    let widths = (0..n).map(|i| width(widths.at(i)?)).collect::<Result<_>>()?;
    let rings = (0..n).map(|i| Ok(rings.at(i)? != 0)).collect::<Result<_>>()?;
    Ok(Cart { widths, rings })
}

fn check_fits(cart: &Cart, size: usize) -> Result<usize> {
    match cart.size() {
        Some(needed) if needed <= size => Ok(needed),
        _ => fail(ERR_ARG, format!("a grid of {:?} is more than {size} ranks", cart.widths)),
    }
}

topologies! {
    /// `MPI_Cart_create`: ranks keep their order.
    cart_create, cart_map: (n: c_int, widths: Pointer<c_int>, rings: Pointer<c_int>) |size| {
        let cart = grid(n, widths, rings)?;
        let needed = check_fits(&cart, size)?;
        (Topology::Cart(Arc::new(cart)), needed)
    }
}

/// `MPI_Cart_sub`.
pub fn cart_sub(comm: Comm, remain: Pointer<c_int>, new: Pointer<Comm>) -> Result<()> {
    let (object, cart) = cart(comm)?;
    let at = cart.coordinates(object.comm.rank());
    let mut sub = Cart { widths: Vec::new(), rings: Vec::new() };
    let (mut color, mut key) = (0, 0);
    for (i, width) in cart.widths.iter().enumerate() {
        if remain.at(i)? != 0 {
            sub.widths.push(*width);
            sub.rings.push(cart.rings[i]);
            key = key * width + at[i];
        } else {
            color = color * width + at[i];
        }
    }
    let color = u32::try_from(color).or_else(|_| fail(ERR_DIMS, "too many parts"))?;
    new.set(make(&object, Some(color), key, Topology::Cart(Arc::new(sub)))?)
}

/// `MPI_Cartdim_get`.
pub fn cartdim_get(comm: Comm, n: Pointer<c_int>) -> Result<()> {
    n.set(int(cart(comm)?.1.widths.len()))
}

/// `MPI_Cart_get`.
pub fn cart_get(
    comm: Comm,
    most: c_int,
    widths: Pointer<c_int>,
    rings: Pointer<c_int>,
    coordinates: Pointer<c_int>,
) -> Result<()> {
    let (object, cart) = cart(comm)?;
    let at = cart.coordinates(object.comm.rank());
    for (i, at) in at.into_iter().enumerate().take(dimensions(most)?) {
        widths.set_at(i, int(cart.widths[i]))?;
        rings.set_at(i, flag(cart.rings[i]))?;
        coordinates.set_at(i, int(at))?;
    }
    Ok(())
}

/// `MPI_Cart_coords`.
pub fn cart_coords(comm: Comm, rank: c_int, most: c_int, coordinates: Pointer<c_int>) -> Result<()> {
    let (object, cart) = cart(comm)?;
    match usize::try_from(rank) {
        Ok(rank) if rank < object.comm.size() => {
            let at = cart.coordinates(rank);
            let n = dimensions(most)?.min(at.len());
            (0..n).try_for_each(|i| coordinates.set_at(i, int(at[i])))
        }
        _ => fail(ERR_RANK, format!("the grid has no rank {rank}")),
    }
}

/// `MPI_Cart_rank`.
pub fn cart_rank(comm: Comm, coordinates: Pointer<c_int>, rank: Pointer<c_int>) -> Result<()> {
    let (_, cart) = cart(comm)?;
    let at: Vec<i64> =
        (0..cart.widths.len()).map(|i| coordinates.at(i).map(i64::from)).collect::<Result<_>>()?;
    match cart.rank(&at) {
        Some(found) => rank.set(int(found)),
        None => fail(ERR_ARG, format!("{at:?} is outside the grid")),
    }
}

/// `MPI_Cart_shift`.
pub fn cart_shift(
    comm: Comm,
    direction: c_int,
    distance: c_int,
    source: Pointer<c_int>,
    dest: Pointer<c_int>,
) -> Result<()> {
    let (object, cart) = cart(comm)?;
    let along = usize::try_from(direction).ok().filter(|along| *along < cart.widths.len());
    let Some(along) = along else { return fail(ERR_DIMS, format!("the grid has no dimension {direction}")) };
    let neighbour = |by| cart.shifted(object.comm.rank(), along, by).map_or(PROC_NULL, int);
    source.set(neighbour(-i64::from(distance)))?;
    dest.set(neighbour(distance.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_and_ranks_are_each_others_inverse() {
        let cart = Cart { widths: vec![2, 3, 4], rings: vec![false, true, false] };
        for rank in 0..24 {
            let at: Vec<i64> = cart.coordinates(rank).into_iter().map(|at| at as i64).collect();
            assert_eq!(cart.rank(&at), Some(rank));
        }
        assert_eq!(cart.rank(&[0, -1, 0]), cart.rank(&[0, 2, 0]));
        assert_eq!(cart.rank(&[0, 0, 4]), None);
    }
}
