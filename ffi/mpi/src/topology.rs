//! Virtual topologies (MPI-4.1 chapter 8): the neighbours of each rank. Ranks keep their order in all of them.

pub mod cart;
pub mod dims;
pub mod dist_graph;
pub mod graph;

use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::Arc;

use transom::raw::Edge;

use crate::abi::{CART, COMM_NULL, Comm, DIST_GRAPH, ERR_RANK, GRAPH, UNDEFINED};
use crate::comm::{CommObject, add};
use crate::failure::{Result, fail};
use crate::pointer::Pointer;

/// The topology of a communicator; copies have the same.
#[derive(Debug, Clone)]
pub enum Topology {
    Cart(Arc<cart::Cart>),
    Graph(Arc<graph::Graph>),
    DistGraph(Arc<dist_graph::DistGraph>),
}

/// A rank's neighbours in the order of its buffers; nothing where a grid ends (§8.6).
#[derive(Debug)]
pub struct Neighbours {
    pub to: Vec<Option<Edge>>,
    pub from: Vec<Option<Edge>>,
}

impl Topology {
    /// The neighbours of this rank of the communicator.
    pub fn neighbours(&self, rank: usize) -> Neighbours {
        match self {
            Self::Cart(cart) => cart.neighbours(rank),
            Self::Graph(graph) => {
                let edges = graph.neighbours(rank);
                Neighbours { to: numbered(edges), from: numbered(edges) }
            }
            Self::DistGraph(graph) => {
                Neighbours { to: numbered(&graph.destinations), from: numbered(&graph.sources) }
            }
        }
    }
}

/// Edges to ranks: of several to the same one, the first at one end is the first at the other.
fn numbered(ranks: &[usize]) -> Vec<Option<Edge>> {
    let mut seen: HashMap<usize, usize> = HashMap::new();
    let edge = |rank: &usize| {
        let number = seen.entry(*rank).or_default();
        *number += 1;
        Some(Edge { rank: *rank, number: *number - 1 })
    };
    ranks.iter().map(edge).collect()
}

fn int(n: usize) -> c_int {
    c_int::try_from(n).unwrap_or(UNDEFINED)
}

/// A rank of `size` that a program names.
fn rank(rank: c_int, size: usize) -> Result<usize> {
    match usize::try_from(rank) {
        Ok(rank) if rank < size => Ok(rank),
        _ => fail(ERR_RANK, format!("rank {rank} in a topology of {size} ranks")),
    }
}

/// A communicator of a part of another's ranks, with a topology; none for ranks without a colour.
fn make(parent: &CommObject, color: Option<u32>, key: usize, topology: Topology) -> Result<Comm> {
    let Some(part) = parent.comm.split(color, key as i64)? else { return Ok(COMM_NULL) };
    let mut object = CommObject::of(part, parent);
    object.topology = Some(topology);
    add(object)
}

/// The communicator that a topology is made of.
fn parent(comm: Comm) -> Result<Arc<CommObject>> {
    let parent = crate::world::comm(comm)?;
    parent.check_intra()?;
    Ok(parent.clone())
}

/// The functions that make a communicator with a topology of the first ranks, and that say which rank this one would have:
/// of the arguments a topology and how many ranks it has.
macro_rules! topologies {
    ($($(#[$doc:meta])* $create:ident, $map:ident: ($($arg:ident: $ty:ty),*) |$size:ident| $made:block)*) => {$(
        $(#[$doc])*
        pub fn $create(comm: Comm, $($arg: $ty,)* _reorder: c_int, new: Pointer<Comm>) -> Result<()> {
            new.set($crate::abi::COMM_NULL)?;
            let parent = $crate::topology::parent(comm)?;
            let ($size, own) = (parent.comm.size(), parent.comm.rank());
            let (topology, needed) = $made;
            new.set($crate::topology::make(&parent, (own < needed).then_some(0), own, topology)?)
        }

        /// The rank that this one would have.
        pub fn $map(comm: Comm, $($arg: $ty,)* rank: Pointer<c_int>) -> Result<()> {
            let parent = $crate::topology::parent(comm)?;
            let ($size, own) = (parent.comm.size(), parent.comm.rank());
            let (_, needed): (Topology, usize) = $made;
            rank.set(if own < needed { int(own) } else { $crate::abi::UNDEFINED })
        }
    )*};
}
use topologies;

/// `MPI_Topo_test`.
pub fn topo_test(comm: Comm, kind: Pointer<c_int>) -> Result<()> {
    kind.set(match crate::world::comm(comm)?.topology {
        Some(Topology::Cart(_)) => CART,
        Some(Topology::Graph(_)) => GRAPH,
        Some(Topology::DistGraph(_)) => DIST_GRAPH,
        None => UNDEFINED,
    })
}
