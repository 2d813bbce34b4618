//! Graphs of which every rank knows its own edges (MPI-4.1 §8.5.4).

use std::ffi::c_int;
use std::sync::Arc;

use super::{Topology, int, parent, rank};
use crate::abi::{COMM_NULL, Comm, ERR_ARG, ERR_TOPOLOGY, Info, UNWEIGHTED, WEIGHTS_EMPTY};
use crate::comm::name::hints;
use crate::comm::{CommObject, add};
use crate::failure::{Result, fail};
use crate::group::count;
use crate::pointer::{Pointer, flag};
use crate::world::comm as get;

/// The edges that end at a rank and those that begin there. Edges between the same two ranks have the same order at both.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DistGraph {
    pub sources: Vec<usize>,
    pub destinations: Vec<usize>,
    weighted: bool,
    source_weights: Vec<c_int>,
    destination_weights: Vec<c_int>,
}

/// An edge as a rank tells it to one of its ends: whether it begins there, the other end, its weight.
type Told = (bool, c_int, c_int);

const TOLD_BYTES: usize = 12;

fn write(to: &mut Vec<u8>, (begins, other, weight): Told) {
    [c_int::from(begins), other, weight].iter().for_each(|word| to.extend(word.to_le_bytes()));
}

fn read(bytes: &[u8; TOLD_BYTES]) -> Told {
    let word = |i: usize| i32::from_le_bytes([bytes[i], bytes[i + 1], bytes[i + 2], bytes[i + 3]]);
    (word(0) != 0, word(4), word(8))
}

fn ranks(n: usize, list: Pointer<c_int>, size: usize) -> Result<Vec<usize>> {
    list.list(n)?.into_iter().map(|named| rank(named, size)).collect()
}

/// The weights of `n` edges; nothing of `MPI_UNWEIGHTED`.
fn weights(n: usize, place: Pointer<c_int>) -> Result<Option<Vec<c_int>>> {
    if place.is(UNWEIGHTED) {
        return Ok(None);
    }
    if n > 0 && place.is(WEIGHTS_EMPTY) {
        return fail(ERR_ARG, format!("MPI_WEIGHTS_EMPTY as the weights of {n} edges"));
    }
    place.list(n).map(Some)
}

impl DistGraph {
    /// The edges that all ranks of a communicator name, where they begin and where they end.
    fn collected(parent: &CommObject, edges: &[(usize, usize, c_int)], weighted: bool) -> Result<Self> {
        let mut blocks = vec![Vec::new(); parent.comm.size()];
        for (from, to, weight) in edges {
            write(&mut blocks[*from], (true, int(*to), *weight));
            write(&mut blocks[*to], (false, int(*from), *weight));
        }
        let told = transom::raw::alltoall(&parent.comm, blocks)?;
        let mut graph = Self { weighted, ..Self::default() };
        for bytes in told.iter().flat_map(|block| block.as_chunks::<TOLD_BYTES>().0) {
            let (begins, other, weight) = read(bytes);
            let (ends, weights) = match begins {
                true => (&mut graph.destinations, &mut graph.destination_weights),
                false => (&mut graph.sources, &mut graph.source_weights),
            };
            ends.push(rank(other, parent.comm.size())?);
            weights.push(weight);
        }
        Ok(graph)
    }

    /// A copy of a communicator with this topology.
    fn communicator(self, parent: &CommObject, hints: transom::Info) -> Result<Comm> {
        let mut object = CommObject::of(parent.comm.dup()?, parent);
        object.topology = Some(Topology::DistGraph(Arc::new(self)));
        *object.hints.lock() = hints;
        add(object)
    }
}

/// Constructors: of the arguments, and the communicator that has the ranks, a graph.
macro_rules! graphs {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $ty:ty),*) |$parent:ident| $made:block)*) => {$(
        $(#[$doc])*
        #[allow(clippy::too_many_arguments, reason = "the standard's")]
        pub fn $name(comm: Comm, $($arg: $ty,)* info: Info, _reorder: c_int, new: Pointer<Comm>) -> Result<()> {
            new.set(COMM_NULL)?;
            let ($parent, hints) = (parent(comm)?, hints(info)?);
            let graph: DistGraph = $made;
            new.set(graph.communicator(&$parent, hints)?)
        }
    )*};
}

graphs! {
    /// `MPI_Dist_graph_create_adjacent`.
    dist_graph_create_adjacent(
        indegree: c_int, sources: Pointer<c_int>, source_weights: Pointer<c_int>, outdegree: c_int,
        destinations: Pointer<c_int>, destination_weights: Pointer<c_int>
    ) |parent| {
        let (indegree, outdegree) = (count(indegree)?, count(outdegree)?);
        let size = parent.comm.size();
        let (weighted, source_weights, destination_weights) =
            match (weights(indegree, source_weights)?, weights(outdegree, destination_weights)?) {
                (Some(sources), Some(destinations)) => (true, sources, destinations),
                (None, None) => (false, Vec::new(), Vec::new()),
                _ => return fail(ERR_ARG, "MPI_UNWEIGHTED for edges in one direction only"),
            };
        let (sources, destinations) = (ranks(indegree, sources, size)?, ranks(outdegree, destinations, size)?);
        DistGraph { sources, destinations, weighted, source_weights, destination_weights }
    }

    /// `MPI_Dist_graph_create`.
    dist_graph_create(
        n: c_int, sources: Pointer<c_int>, degrees: Pointer<c_int>, destinations: Pointer<c_int>, given: Pointer<c_int>
    ) |parent| {
        let size = parent.comm.size();
        let n = count(n)?;
        let sources = ranks(n, sources, size)?;
        let degrees = degrees.list(n)?.into_iter().map(count).collect::<Result<Vec<_>>>()?;
        let destinations = ranks(degrees.iter().sum(), destinations, size)?;
        let given = weights(destinations.len(), given)?;
        let begin = sources.iter().zip(degrees).flat_map(|(from, degree)| std::iter::repeat_n(*from, degree));
        let weight = |i: usize| given.as_ref().map_or(0, |weights| weights[i]);
        let edges: Vec<_> =
            begin.zip(destinations).enumerate().map(|(i, (from, to))| (from, to, weight(i))).collect();
        DistGraph::collected(&parent, &edges, given.is_some())?
    }
}

fn graph(comm: Comm) -> Result<Arc<DistGraph>> {
    match &get(comm)?.topology {
        Some(Topology::DistGraph(graph)) => Ok(graph.clone()),
        _ => fail(ERR_TOPOLOGY, "the communicator has no distributed graph topology"),
    }
}

/// `MPI_Dist_graph_neighbors_count`.
pub fn dist_graph_neighbors_count(
    comm: Comm,
    indegree: Pointer<c_int>,
    outdegree: Pointer<c_int>,
    weighted: Pointer<c_int>,
) -> Result<()> {
    let graph = graph(comm)?;
    indegree.set(int(graph.sources.len()))?;
    outdegree.set(int(graph.destinations.len()))?;
    weighted.set(flag(graph.weighted))
}

/// `MPI_Dist_graph_neighbors`: the first of the edges in each direction. Weights are stored if there are any.
pub fn dist_graph_neighbors(
    comm: Comm,
    most_in: c_int,
    sources: Pointer<c_int>,
    source_weights: Pointer<c_int>,
    most_out: c_int,
    destinations: Pointer<c_int>,
    destination_weights: Pointer<c_int>,
) -> Result<()> {
    let graph = graph(comm)?;
    let give = |most, ends: &[usize], weights: &[c_int], to: Pointer<c_int>, weights_to: Pointer<c_int>| {
        let wanted = graph.weighted && !weights_to.is(UNWEIGHTED) && !weights_to.is(WEIGHTS_EMPTY);
        for (i, end) in ends.iter().enumerate().take(count(most)?) {
            to.set_at(i, int(*end))?;
            if wanted {
                weights_to.set_at(i, weights[i])?;
            }
        }
        Ok(())
    };
    give(most_in, &graph.sources, &graph.source_weights, sources, source_weights)?;
    give(most_out, &graph.destinations, &graph.destination_weights, destinations, destination_weights)
}
