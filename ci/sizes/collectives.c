/* Collectives whose blocks are equally long. */
#include "sizes.h"

static void bcast(void) {
    byte *buffer = memory(bytes);
    if (rank == ROOT) set(buffer, 9);
    COLLECTIVE(Bcast, Ibcast, buffer, bytes, MPI_BYTE, ROOT, world);
    check(buffer, 9);
}

static void gather(void) {
    byte *buffer = memory(rank == ROOT ? bytes * size : bytes);
    set(buffer, 20 + rank);
    COLLECTIVE(Gather, Igather, rank == ROOT ? MPI_IN_PLACE : buffer, bytes, MPI_BYTE, buffer, bytes, MPI_BYTE, ROOT, world);
    if (rank == ROOT) check_blocks(buffer, 20, 1);
}

static void scatter(void) {
    byte *buffer = memory(rank == ROOT ? bytes * size : bytes);
    for (int r = 0; rank == ROOT && r < size; r++) set(buffer + bytes * r, 20 + r);
    COLLECTIVE(Scatter, Iscatter, buffer, bytes, MPI_BYTE, rank == ROOT ? MPI_IN_PLACE : buffer, bytes, MPI_BYTE, ROOT, world);
    check(buffer, 20 + rank);
}

static void allgather(void) {
    byte *buffer = memory(bytes * size);
    set(buffer + bytes * rank, 20 + rank);
    COLLECTIVE(Allgather, Iallgather, MPI_IN_PLACE, bytes, MPI_BYTE, buffer, bytes, MPI_BYTE, world);
    check_blocks(buffer, 20, 1);
}

static void alltoall(void) {
    byte *buffer = memory(bytes * size);
    for (int r = 0; r < size; r++) set(buffer + bytes * r, 20 + 10 * rank + r);
    COLLECTIVE(Alltoall, Ialltoall, MPI_IN_PLACE, bytes, MPI_BYTE, buffer, bytes, MPI_BYTE, world);
    check_blocks(buffer, 20 + rank, 10);
}

/* Reductions: the highest rank's marks are the highest. */
static byte *contribution(void) {
    byte *buffer = memory(bytes);
    set(buffer, 10 * (rank + 1));
    return buffer;
}

static void reduce(void) {
    byte *buffer = contribution();
    COLLECTIVE(Reduce, Ireduce, rank == ROOT ? MPI_IN_PLACE : buffer, buffer, bytes, MPI_UINT8_T, MPI_MAX, ROOT, world);
    if (rank == ROOT) check(buffer, 10 * size);
}

static void allreduce(void) {
    byte *buffer = contribution();
    COLLECTIVE(Allreduce, Iallreduce, MPI_IN_PLACE, buffer, bytes, MPI_UINT8_T, MPI_MAX, world);
    check(buffer, 10 * size);
}

/* The highest of each byte, by a function, whose counts are ints: it is called as often as it takes. */
static void highest(void *from, void *to, int *count, MPI_Datatype *type) {
    (void)type;
    if (*count < 0) fail("a function got a count of", *count);
    for (int i = 0; i < *count; i++)
        if (((byte *)from)[i] > ((byte *)to)[i]) ((byte *)to)[i] = ((byte *)from)[i];
}

static void highest_large(void *from, void *to, MPI_Count *count, MPI_Datatype *type) {
    (void)type;
    if (*count < 0) fail("a function got a count of", (long long)*count);
    for (MPI_Count i = 0; i < *count; i++)
        if (((byte *)from)[i] > ((byte *)to)[i]) ((byte *)to)[i] = ((byte *)from)[i];
}

static void allreduce_by(MPI_Op op) {
    byte *buffer = contribution();
    COLLECTIVE(Allreduce, Iallreduce, MPI_IN_PLACE, buffer, bytes, MPI_BYTE, op, world);
    check(buffer, 10 * size);
    MPI_Op_free(&op);
}

static void allreduce_by_function(void) {
    MPI_Op op;
    MPI_Op_create(highest, 1, &op);
    allreduce_by(op);
}

static void allreduce_by_large_function(void) {
    MPI_Op op;
    MPI_Op_create_c(highest_large, 1, &op);
    allreduce_by(op);
}

static void scan(void) {
    byte *buffer = contribution();
    COLLECTIVE(Scan, Iscan, MPI_IN_PLACE, buffer, bytes, MPI_UINT8_T, MPI_MAX, world);
    check(buffer, 10 * (rank + 1));
}

static void exscan(void) {
    byte *buffer = contribution();
    COLLECTIVE(Exscan, Iexscan, MPI_IN_PLACE, buffer, bytes, MPI_UINT8_T, MPI_MAX, world);
    if (rank > 0) check(buffer, 10 * rank);
}

static void reduce_scatter_block(void) {
    byte *buffer = memory(bytes * size);
    for (int r = 0; r < size; r++) set(buffer + bytes * r, 20 + 10 * rank + r);
    COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block, MPI_IN_PLACE, buffer, bytes, MPI_UINT8_T, MPI_MAX, world);
    check(buffer, 20 + 10 * (size - 1) + rank);
}

/* One edge of a graph, from the root to the target. */
static void neighbours(int all) {
    int sends = rank == ROOT, receives = rank == TARGET, root = ROOT, target = TARGET;
    byte *buffer = memory(bytes);
    MPI_Comm graph;
    MPI_Dist_graph_create_adjacent(world, receives, &root, MPI_UNWEIGHTED, sends, &target, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
    if (sends) set(buffer, 5);
    byte *from = receives ? NULL : buffer, *to = receives ? buffer : NULL;
    MPI_Count sent = sends ? bytes : 0, received = receives ? bytes : 0;
    if (all) COLLECTIVE(Neighbor_alltoall, Ineighbor_alltoall, from, sent, MPI_BYTE, to, received, MPI_BYTE, graph);
    else COLLECTIVE(Neighbor_allgather, Ineighbor_allgather, from, sent, MPI_BYTE, to, received, MPI_BYTE, graph);
    if (receives) check(buffer, 5);
    MPI_Comm_free(&graph);
}

static void neighbor_allgather(void) { neighbours(0); }
static void neighbor_alltoall(void) { neighbours(1); }

const struct operation collectives[] = {
    {"bcast", bcast},
    {"gather", gather},
    {"scatter", scatter},
    {"allgather", allgather},
    {"alltoall", alltoall},
    {"reduce", reduce},
    {"allreduce", allreduce},
    {"allreduce_by_function", allreduce_by_function},
    {"allreduce_by_large_function", allreduce_by_large_function},
    {"scan", scan},
    {"exscan", exscan},
    {"reduce_scatter_block", reduce_scatter_block},
    {"neighbor_allgather", neighbor_allgather},
    {"neighbor_alltoall", neighbor_alltoall},
    {NULL, NULL},
};
