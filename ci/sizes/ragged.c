/* Collectives whose blocks differ in length: one is long, and those that are behind it lie where 32-bit numbers do not reach. */
#include "sizes.h"

enum { SHORT = 5 };
static MPI_Count *counts, *others;
static MPI_Aint *places, *other_places;
static MPI_Datatype *types;

/* The counts of one long block, and short ones of the rest; where they are: the long one first. */
static MPI_Count lay_out(int long_one, MPI_Count **lengths, MPI_Aint **where) {
    *lengths = malloc((size_t)size * sizeof **lengths);
    *where = malloc((size_t)size * sizeof **where);
    types = malloc((size_t)size * sizeof *types);
    MPI_Count end = long_one < 0 ? 0 : bytes;
    for (int r = 0; r < size; r++) {
        types[r] = MPI_BYTE;
        (*lengths)[r] = r == long_one ? bytes : SHORT;
        (*where)[r] = r == long_one ? 0 : (MPI_Aint)end;
        if (r != long_one) end += SHORT;
    }
    return end;
}

static void set_block(byte *block, MPI_Count length, int value) {
    if (length == SHORT) memset(block, value, SHORT);
    else set(block, value);
}

static void check_block(const byte *block, MPI_Count length, int value) {
    if (length != SHORT) check(block, value);
    for (int i = 0; length == SHORT && i < SHORT; i++)
        if (block[i] != value) fail("a short block holds", block[i]);
}

static void set_all(byte *buffer, const MPI_Count *lengths, const MPI_Aint *where, int first) {
    for (int r = 0; r < size; r++) set_block(buffer + where[r], lengths[r], first + r);
}

static void check_all(const byte *buffer, const MPI_Count *lengths, const MPI_Aint *where, int first, int step) {
    for (int r = 0; r < size; r++) check_block(buffer + where[r], lengths[r], first + step * r);
}

static void gatherv(void) {
    MPI_Count length = lay_out(TARGET, &counts, &places);
    byte *all = rank == ROOT ? memory(length) : NULL, *own = memory(counts[rank]);
    set_block(own, counts[rank], 20 + rank);
    COLLECTIVE(Gatherv, Igatherv, own, counts[rank], MPI_BYTE, all, counts, places, MPI_BYTE, ROOT, world);
    if (rank == ROOT) check_all(all, counts, places, 20, 1);
}

static void scatterv(void) {
    MPI_Count length = lay_out(TARGET, &counts, &places);
    byte *all = rank == ROOT ? memory(length) : NULL, *own = memory(counts[rank]);
    if (rank == ROOT) set_all(all, counts, places, 20);
    COLLECTIVE(Scatterv, Iscatterv, all, counts, places, MPI_BYTE, own, counts[rank], MPI_BYTE, ROOT, world);
    check_block(own, counts[rank], 20 + rank);
}

static void allgatherv(void) {
    MPI_Count length = lay_out(TARGET, &counts, &places);
    byte *all = memory(length);
    set_block(all + places[rank], counts[rank], 20 + rank);
    COLLECTIVE(Allgatherv, Iallgatherv, MPI_IN_PLACE, 0, MPI_BYTE, all, counts, places, MPI_BYTE, world);
    check_all(all, counts, places, 20, 1);
}

/* The long block goes from the root to the target. */
static byte *exchange(byte **received) {
    byte *sent = memory(lay_out(rank == ROOT ? TARGET : -1, &counts, &places));
    *received = memory(lay_out(rank == TARGET ? ROOT : -1, &others, &other_places));
    set_all(sent, counts, places, 20 + 10 * rank);
    return sent;
}

static void alltoallv(void) {
    byte *received, *sent = exchange(&received);
    COLLECTIVE(Alltoallv, Ialltoallv, sent, counts, places, MPI_BYTE, received, others, other_places, MPI_BYTE, world);
    check_all(received, others, other_places, 20 + rank, 10);
}

static void alltoallw(void) {
    byte *received, *sent = exchange(&received);
    COLLECTIVE(Alltoallw, Ialltoallw, sent, counts, places, types, received, others, other_places, types, world);
    check_all(received, others, other_places, 20 + rank, 10);
}

/* Blocks of the result: a long one of the target's. */
static void reduce_scatter(void) {
    MPI_Count length = lay_out(TARGET, &counts, &places);
    byte *buffer = memory(length), *into = memory(counts[rank]);
    /* Blocks of reductions lie one behind the other. */
    places[ROOT] = 0;
    for (int r = 1; r < size; r++) places[r] = places[r - 1] + (MPI_Aint)counts[r - 1];
    set_all(buffer, counts, places, 20 + 10 * rank);
    COLLECTIVE(Reduce_scatter, Ireduce_scatter, buffer, into, counts, MPI_UINT8_T, MPI_MAX, world);
    check_block(into, counts[rank], 20 + 10 * (size - 1) + rank);
}

/* Two edges from each rank to the next. The first has the root's long block, and short ones of the others. */
static MPI_Comm ring(byte **sent, byte **received) {
    int next = (rank + 1) % size, before = (rank + size - 1) % size, to[] = {next, next}, from[] = {before, before};
    MPI_Comm graph;
    MPI_Dist_graph_create_adjacent(world, 2, from, MPI_UNWEIGHTED, 2, to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
    lay_out(0, &counts, &places);
    lay_out(0, &others, &other_places);
    if (rank != ROOT) counts[0] = SHORT;
    if (before != ROOT) others[0] = SHORT;
    *sent = memory(bytes + SHORT);
    *received = memory(bytes + SHORT);
    for (int edge = 0; edge < 2; edge++) set_block(*sent + places[edge], counts[edge], 20 + 10 * rank + edge);
    return graph;
}

static void check_ring(MPI_Comm *graph, const byte *received) {
    int from = (rank + size - 1) % size;
    for (int edge = 0; edge < 2; edge++) check_block(received + other_places[edge], others[edge], 20 + 10 * from + edge);
    MPI_Comm_free(graph);
}

static void neighbor_alltoallv(void) {
    byte *sent, *received;
    MPI_Comm graph = ring(&sent, &received);
    COLLECTIVE(Neighbor_alltoallv, Ineighbor_alltoallv, sent, counts, places, MPI_BYTE, received, others, other_places, MPI_BYTE, graph);
    check_ring(&graph, received);
}

static void neighbor_alltoallw(void) {
    byte *sent, *received;
    MPI_Comm graph = ring(&sent, &received);
    COLLECTIVE(Neighbor_alltoallw, Ineighbor_alltoallw, sent, counts, places, types, received, others, other_places, types, graph);
    check_ring(&graph, received);
}

/* The target gets the root's long block, and behind it its own short one. */
static void neighbor_allgatherv(void) {
    int receives = rank == TARGET ? 2 : 0, sends = rank <= TARGET, to = TARGET, from[] = {ROOT, TARGET};
    MPI_Comm graph;
    MPI_Dist_graph_create_adjacent(world, receives, from, MPI_UNWEIGHTED, sends, &to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
    MPI_Count own = rank == ROOT ? bytes : rank == TARGET ? SHORT : 0, lengths[] = {bytes, SHORT};
    MPI_Aint where[] = {0, (MPI_Aint)bytes};
    byte *sent = memory(rank == ROOT ? bytes : SHORT), *received = rank == TARGET ? memory(bytes + SHORT) : NULL;
    if (own > 0) set_block(sent, own, 20 + rank);
    COLLECTIVE(Neighbor_allgatherv, Ineighbor_allgatherv, sent, own, MPI_BYTE, received, lengths, where, MPI_BYTE, graph);
    for (int edge = 0; edge < receives; edge++) check_block(received + where[edge], lengths[edge], 20 + from[edge]);
    MPI_Comm_free(&graph);
}

const struct operation ragged[] = {
    {"gatherv", gatherv},
    {"scatterv", scatterv},
    {"allgatherv", allgatherv},
    {"alltoallv", alltoallv},
    {"alltoallw", alltoallw},
    {"reduce_scatter", reduce_scatter},
    {"neighbor_allgatherv", neighbor_allgatherv},
    {"neighbor_alltoallv", neighbor_alltoallv},
    {"neighbor_alltoallw", neighbor_alltoallw},
    {NULL, NULL},
};
