/* Graphs, and communicators that have them (MPI-4.1 chapter 8; communicators.c has grids). */
#include "check.h"

static int kind_of(MPI_Comm comm) {
    int kind = -7;
    OK(MPI_Topo_test(comm, &kind));
    return kind;
}

/* A path: each rank has the one before and the one behind as neighbours, in this order; the first has itself as well. */
static int path(int nodes, int *ends, int *edges) {
    int n = 0;
    for (int i = 0; i < nodes; i++) {
        edges[n++] = i > 0 ? i - 1 : 0;
        if (i + 1 < nodes) edges[n++] = i + 1;
        ends[i] = n;
    }
    return n;
}

static void check_path(MPI_Comm graph, int nodes) {
    int ends[64], edges[128], n, m, found[128], found_ends[64];
    int total = path(nodes, ends, edges);
    CHECK(kind_of(graph) == MPI_GRAPH);
    OK(MPI_Graphdims_get(graph, &n, &m));
    CHECK(n == nodes && m == total);
    OK(MPI_Graph_get(graph, nodes, total, found_ends, found));
    CHECK(memcmp(found_ends, ends, sizeof(int) * (size_t)nodes) == 0);
    CHECK(memcmp(found, edges, sizeof(int) * (size_t)total) == 0);
    for (int i = 0; i < nodes; i++) {
        int begin = i > 0 ? ends[i - 1] : 0;
        OK(MPI_Graph_neighbors_count(graph, i, &n));
        CHECK(n == ends[i] - begin);
        OK(MPI_Graph_neighbors(graph, i, n, found));
        CHECK(memcmp(found, edges + begin, sizeof(int) * (size_t)n) == 0);
    }
    /* Less room: the first ones. */
    found[0] = found[1] = -5;
    OK(MPI_Graph_get(graph, 0, 1, found_ends, found));
    CHECK(found[0] == edges[0] && found[1] == -5);
    FAILS(MPI_Graph_neighbors_count(graph, nodes, &n), MPI_ERR_RANK);
    FAILS(MPI_Graph_neighbors(graph, -1, 1, found), MPI_ERR_RANK);
    FAILS(MPI_Graph_neighbors(graph, 0, -1, found), MPI_ERR_ARG);
    FAILS(MPI_Cartdim_get(graph, &n), MPI_ERR_TOPOLOGY);
    FAILS(MPI_Dist_graph_neighbors_count(graph, &n, &m, &n), MPI_ERR_TOPOLOGY);
}

static int copied;

static int copy(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag) {
    (void)keyval, (void)extra;
    CHECK(kind_of(comm) != MPI_UNDEFINED);
    copied++;
    *(void **)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}

static void graphs(void) {
    int ends[64], edges[128], rank, size, n, flag, keyval, value = 9, *found;
    MPI_Comm graph, twin, part;
    path(size_, ends, edges);
    OK(MPI_Graph_create(MPI_COMM_WORLD, size_, ends, edges, 0, &graph));
    check_path(graph, size_);
    OK(MPI_Comm_rank(graph, &rank));
    OK(MPI_Comm_compare(graph, MPI_COMM_WORLD, &n));
    CHECK(rank == rank_ && n == MPI_CONGRUENT);
    /* Copies have the topology and the attributes; parts have neither. */
    OK(MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, &keyval, NULL));
    OK(MPI_Comm_set_attr(graph, keyval, &value));
    OK(MPI_Comm_dup(graph, &twin));
    check_path(twin, size_);
    OK(MPI_Comm_get_attr(twin, keyval, &found, &flag));
    CHECK(flag && *found == 9 && copied == 1);
    OK(MPI_Comm_split(graph, 0, 0, &part));
    CHECK(kind_of(part) == MPI_UNDEFINED);
    FAILS(MPI_Graphdims_get(part, &n, &size), MPI_ERR_TOPOLOGY);
    OK(MPI_Comm_free(&part));
    OK(MPI_Comm_free(&twin));
    OK(MPI_Comm_free_keyval(&keyval));
    OK(MPI_Comm_free(&graph));
    /* Fewer nodes than ranks: the others get none. */
    OK(MPI_Graph_create(MPI_COMM_WORLD, 1, ends, (int[]){0, 0}, 1, &graph));
    CHECK((graph == MPI_COMM_NULL) == (rank_ > 0));
    if (graph != MPI_COMM_NULL) OK(MPI_Comm_free(&graph));
    OK(MPI_Graph_create(MPI_COMM_WORLD, 0, NULL, NULL, 0, &graph));
    CHECK(graph == MPI_COMM_NULL);
    OK(MPI_Graph_map(MPI_COMM_WORLD, 1, ends, (int[]){0, 0}, &rank));
    CHECK(rank == (rank_ == 0 ? 0 : MPI_UNDEFINED));
}

static void adjacent(void) {
    int next = (rank_ + 1) % size_, last = (rank_ + size_ - 1) % size_;
    /* The edge to the next rank is there twice. */
    int to[] = {next, rank_, next}, to_weights[] = {10 + rank_, 7, 20 + rank_};
    int from[] = {last, last, rank_}, from_weights[] = {10 + last, 20 + last, 7};
    int in, out, weighted, sources[3], destinations[3], in_weights[3], out_weights[3];
    MPI_Comm graph, twin;
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 3, from, from_weights, 3, to, to_weights, MPI_INFO_NULL, 0,
                                      &graph));
    OK(MPI_Comm_dup(graph, &twin));
    CHECK(kind_of(twin) == MPI_DIST_GRAPH);
    OK(MPI_Dist_graph_neighbors_count(twin, &in, &out, &weighted));
    CHECK(in == 3 && out == 3 && weighted);
    OK(MPI_Dist_graph_neighbors(twin, 3, sources, in_weights, 3, destinations, out_weights));
    CHECK(memcmp(sources, from, sizeof from) == 0 && memcmp(destinations, to, sizeof to) == 0);
    CHECK(memcmp(in_weights, from_weights, sizeof from) == 0 && memcmp(out_weights, to_weights, sizeof to) == 0);
    sources[1] = -5;
    OK(MPI_Dist_graph_neighbors(twin, 1, sources, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED));
    CHECK(sources[0] == last && sources[1] == -5);
    FAILS(MPI_Dist_graph_neighbors(twin, -1, sources, in_weights, 0, NULL, NULL), MPI_ERR_ARG);
    FAILS(MPI_Graphdims_get(twin, &in, &out), MPI_ERR_TOPOLOGY);
    OK(MPI_Comm_free(&twin));
    OK(MPI_Comm_free(&graph));
    /* Without weights, and without edges. Hints that are ignored are not given back. */
    MPI_Info info, hints;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_assert_no_any_tag", "true"));
    OK(MPI_Info_set(info, "colour", "green"));
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &last, MPI_UNWEIGHTED, 1, &next, MPI_UNWEIGHTED, info, 1,
                                      &graph));
    OK(MPI_Comm_get_info(graph, &hints));
    OK(MPI_Info_get_nkeys(hints, &in));
    CHECK(in == 1);
    OK(MPI_Info_free(&hints));
    OK(MPI_Info_free(&info));
    OK(MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted));
    CHECK(in == 1 && out == 1 && !weighted);
    in_weights[0] = -5;
    OK(MPI_Dist_graph_neighbors(graph, 1, sources, in_weights, 1, destinations, out_weights));
    CHECK(sources[0] == last && destinations[0] == next && in_weights[0] == -5);
    OK(MPI_Comm_free(&graph));
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, NULL, MPI_WEIGHTS_EMPTY, 0, NULL, MPI_WEIGHTS_EMPTY,
                                      MPI_INFO_NULL, 0, &graph));
    OK(MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted));
    CHECK(in == 0 && out == 0 && weighted);
    OK(MPI_Comm_free(&graph));
}

/* Every rank names the edges of the next one: to each rank, itself included, the edge to i with weight 100 * begin + i. */
static void told_by_others(void) {
    int begin = (rank_ + 1) % size_, to[64], weights[64], in, out, weighted, sources[64], destinations[64];
    int in_weights[64], out_weights[64], seen[64] = {0};
    MPI_Comm graph;
    for (int i = 0; i < size_; i++) to[i] = i, weights[i] = 100 * begin + i;
    OK(MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &begin, &size_, to, weights, MPI_INFO_NULL, 0, &graph));
    OK(MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted));
    CHECK(in == size_ && out == size_ && weighted);
    OK(MPI_Dist_graph_neighbors(graph, size_, sources, in_weights, size_, destinations, out_weights));
    for (int i = 0; i < size_; i++) {
        CHECK(in_weights[i] == 100 * sources[i] + rank_ && out_weights[i] == 100 * rank_ + destinations[i]);
        seen[sources[i]] |= 1, seen[destinations[i]] |= 2;
    }
    for (int i = 0; i < size_; i++) CHECK(seen[i] == 3);
    OK(MPI_Comm_free(&graph));
    /* Rank 0 names all there is: two edges from the last rank to rank 0. */
    int both = 2, last = size_ - 1;
    OK(MPI_Dist_graph_create(MPI_COMM_WORLD, rank_ == 0, &last, &both, (int[]){0, 0}, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                             &graph));
    OK(MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted));
    CHECK(in == (rank_ == 0 ? 2 : 0) && out == (rank_ == last ? 2 : 0) && !weighted);
    OK(MPI_Comm_free(&graph));
}

static void wrong(void) {
    MPI_Comm new = MPI_COMM_NULL, all = MPI_COMM_WORLD;
    MPI_Info none = MPI_INFO_NULL, bad = (MPI_Info)(intptr_t)77;
    int one[] = {1}, down[] = {1, 0}, zero[] = {0}, minus[] = {-1}, far[] = {64}, n;
    FAILS(MPI_Graph_create(MPI_COMM_NULL, 1, one, zero, 0, &new), MPI_ERR_COMM);
    FAILS(MPI_Graph_create(all, -1, one, zero, 0, &new), MPI_ERR_ARG);
    FAILS(MPI_Graph_create(all, size_ + 1, one, zero, 0, &new), MPI_ERR_ARG);
    FAILS(MPI_Graph_create(all, 1, minus, zero, 0, &new), MPI_ERR_ARG);
    FAILS(MPI_Graph_create(all, 1, one, minus, 0, &new), MPI_ERR_ARG);
    FAILS(MPI_Graph_create(all, 1, one, far, 0, &new), MPI_ERR_ARG);
    FAILS(MPI_Graph_create(all, 1, NULL, zero, 0, &new), MPI_ERR_ARG);
    FAILS(MPI_Graph_create(all, 1, one, NULL, 0, &new), MPI_ERR_ARG);
    FAILS(MPI_Graph_create(all, 1, one, zero, 0, NULL), MPI_ERR_ARG);
    if (size_ > 1) FAILS(MPI_Graph_create(all, 2, down, zero, 0, &new), MPI_ERR_ARG);
    FAILS(MPI_Graph_map(all, 1, one, far, &n), MPI_ERR_ARG);
    FAILS(MPI_Graph_map(all, 1, one, zero, NULL), MPI_ERR_ARG);
#define ADJACENT(in, from, from_weights, out, to, to_weights, info)                                         \
    MPI_Dist_graph_create_adjacent(all, in, from, from_weights, out, to, to_weights, info, 0, &new)
    FAILS(ADJACENT(-1, zero, MPI_UNWEIGHTED, 0, zero, MPI_UNWEIGHTED, none), MPI_ERR_ARG);
    FAILS(ADJACENT(1, far, MPI_UNWEIGHTED, 0, zero, MPI_UNWEIGHTED, none), MPI_ERR_RANK);
    FAILS(ADJACENT(0, zero, MPI_UNWEIGHTED, 1, minus, MPI_UNWEIGHTED, none), MPI_ERR_RANK);
    FAILS(ADJACENT(1, NULL, MPI_UNWEIGHTED, 0, zero, MPI_UNWEIGHTED, none), MPI_ERR_ARG);
    FAILS(ADJACENT(1, zero, NULL, 0, zero, MPI_WEIGHTS_EMPTY, none), MPI_ERR_ARG);
    FAILS(ADJACENT(1, zero, MPI_WEIGHTS_EMPTY, 0, zero, MPI_WEIGHTS_EMPTY, none), MPI_ERR_ARG);
    FAILS(ADJACENT(1, zero, MPI_UNWEIGHTED, 1, zero, one, none), MPI_ERR_ARG);
    FAILS(ADJACENT(1, zero, MPI_UNWEIGHTED, 1, zero, MPI_UNWEIGHTED, bad), MPI_ERR_INFO);
#define NAMED(n, from, degrees, to, weights) MPI_Dist_graph_create(all, n, from, degrees, to, weights, none, 0, &new)
    FAILS(NAMED(-1, zero, one, zero, one), MPI_ERR_ARG);
    FAILS(NAMED(1, far, one, zero, one), MPI_ERR_RANK);
    FAILS(NAMED(1, zero, minus, zero, one), MPI_ERR_ARG);
    FAILS(NAMED(1, zero, one, far, one), MPI_ERR_RANK);
    FAILS(NAMED(1, zero, one, zero, NULL), MPI_ERR_ARG);
    FAILS(NAMED(1, zero, one, NULL, one), MPI_ERR_ARG);
    FAILS(MPI_Dist_graph_create(all, 0, NULL, NULL, NULL, NULL, none, 0, NULL), MPI_ERR_ARG);
    FAILS(MPI_Dist_graph_neighbors(all, 0, NULL, NULL, 0, NULL, NULL), MPI_ERR_TOPOLOGY);
    FAILS(MPI_Graph_get(all, 0, 0, NULL, NULL), MPI_ERR_TOPOLOGY);
    FAILS(MPI_Topo_test(MPI_COMM_NULL, &n), MPI_ERR_COMM);
    CHECK(new == MPI_COMM_NULL && kind_of(all) == MPI_UNDEFINED);
}

PROGRAM(graphs, adjacent, told_by_others, wrong)
