//! Graphs that every rank knows whole (MPI-4.1 §8.5.3).

use std::ffi::c_int;
use std::sync::Arc;

use super::{Topology, int, rank, topologies};
use crate::abi::{Comm, ERR_ARG, ERR_TOPOLOGY};
use crate::comm::CommObject;
use crate::failure::{Result, fail};
use crate::group::count;
use crate::pointer::Pointer;
use crate::world::comm as get;

/// Each rank's neighbours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    /// Where each rank's neighbours end in `edges`; those of the next begin there.
    ends: Vec<usize>,
    edges: Vec<usize>,
}

impl Graph {
    /// The graph of a program's arguments, which has at most `size` ranks.
    fn new(n: c_int, ends: Pointer<c_int>, edges: Pointer<c_int>, size: usize) -> Result<Self> {
        let n = count(n)?;
        if n > size {
            return fail(ERR_ARG, format!("a graph of {n} nodes is more than {size} ranks"));
        }
        let ends = ends.list(n)?.into_iter().map(count).collect::<Result<Vec<_>>>()?;
        if !ends.is_sorted() {
            return fail(
                ERR_ARG,
                format!("the neighbours of each node end behind those before it: not {ends:?}"),
            );
        }
        let edge = |edge: c_int| match usize::try_from(edge) {
            Ok(edge) if edge < n => Ok(edge),
            _ => fail(ERR_ARG, format!("an edge to node {edge} in a graph of {n}")),
        };
        let edges = edges.list(ends.last().copied().unwrap_or(0))?;
        let edges = edges.into_iter().map(edge).collect::<Result<_>>()?;
        Ok(Self { ends, edges })
    }

    /// The neighbours of a rank.
    pub fn neighbours(&self, rank: usize) -> &[usize] {
        let start = if rank == 0 { 0 } else { self.ends[rank - 1] };
        &self.edges[start..self.ends[rank]]
    }
}

fn graph(comm: Comm) -> Result<(Arc<CommObject>, Arc<Graph>)> {
    let object = get(comm)?;
    match &object.topology {
        Some(Topology::Graph(graph)) => Ok((object.clone(), graph.clone())),
        _ => fail(ERR_TOPOLOGY, "the communicator has no graph topology"),
    }
}

/// Stores the first `most` of some numbers.
fn give(numbers: &[usize], most: c_int, place: Pointer<c_int>) -> Result<()> {
    let shown = numbers.iter().take(count(most)?);
    shown.enumerate().try_for_each(|(i, number)| place.set_at(i, int(*number)))
}

topologies! {
    /// `MPI_Graph_create`.
    graph_create, graph_map: (n: c_int, ends: Pointer<c_int>, edges: Pointer<c_int>) |size| {
        let graph = Graph::new(n, ends, edges, size)?;
        let nodes = graph.ends.len();
        (Topology::Graph(Arc::new(graph)), nodes)
    }
}

/// `MPI_Graphdims_get`.
pub fn graphdims_get(comm: Comm, nodes: Pointer<c_int>, edges: Pointer<c_int>) -> Result<()> {
    let (_, graph) = graph(comm)?;
    nodes.set(int(graph.ends.len()))?;
    edges.set(int(graph.edges.len()))
}

/// `MPI_Graph_get`.
pub fn graph_get(
    comm: Comm,
    most_ends: c_int,
    most_edges: c_int,
    ends: Pointer<c_int>,
    edges: Pointer<c_int>,
) -> Result<()> {
    let (_, graph) = graph(comm)?;
    give(&graph.ends, most_ends, ends)?;
    give(&graph.edges, most_edges, edges)
}

/// `MPI_Graph_neighbors_count`.
pub fn graph_neighbors_count(comm: Comm, of: c_int, n: Pointer<c_int>) -> Result<()> {
    let (object, graph) = graph(comm)?;
    n.set(int(graph.neighbours(rank(of, object.comm.size())?).len()))
}

/// `MPI_Graph_neighbors`.
pub fn graph_neighbors(comm: Comm, of: c_int, most: c_int, neighbours: Pointer<c_int>) -> Result<()> {
    let (object, graph) = graph(comm)?;
    give(graph.neighbours(rank(of, object.comm.size())?), most, neighbours)
}
