/* Neighbourhood collectives (MPI-4.1 §8.6 to §8.9) on grids, graphs and distributed graphs: each form of each. */
#include <stdint.h>

#include "check.h"

enum { MOST = 8 };

/* What goes from a rank as its block i of a round. */
static int datum(int rank, int block, int round) { return 10000 * rank + 100 * block + round; }

/* The neighbours of a rank, and for each incoming edge the block that comes along it; -1 for none. */
struct shape {
    MPI_Comm comm;
    int in, out;
    int sources[MOST], blocks[MOST];
};

static int sent[2 * MOST], received[2 * MOST];

/* Two integers in each block; what is received at an edge of a grid stays as it is. */
static void fill(const struct shape *shape, int round) {
    for (int i = 0; i < 2 * MOST; i++) received[i] = -5;
    for (int i = 0; i < shape->out; i++)
        for (int k = 0; k < 2; k++) sent[2 * i + k] = datum(rank_, i, round) + 50 * k;
}

/* `gathered`: everybody's first block went along all edges. */
static void look(const struct shape *shape, int round, int gathered) {
    for (int i = 0; i < shape->in; i++) {
        for (int k = 0; k < 2; k++) {
            int there = shape->sources[i] != MPI_PROC_NULL;
            int expected = there ? datum(shape->sources[i], gathered ? 0 : shape->blocks[i], round) + 50 * k : -5;
            CHECK(received[2 * i + k] == expected);
        }
    }
}

/* Arguments that are the same in all forms. */
#define EQUAL sent, 2, MPI_INT, received, 2, MPI_INT, comm
#define GATHERV sent, 2, MPI_INT, received, twos, places, MPI_INT, comm
#define ALLV sent, twos, places, MPI_INT, received, twos, places, MPI_INT, comm
#define ALLW sent, twos, at, ints, received, twos, at, ints, comm
#define GATHERV_C sent, 2, MPI_INT, received, many, long_places, MPI_INT, comm
#define ALLV_C sent, many, long_places, MPI_INT, received, many, long_places, MPI_INT, comm
#define ALLW_C sent, many, at, ints, received, many, at, ints, comm

/* The blocking, nonblocking and persistent form of one. */
#define FORMS(name, large, gathered, ...)                                                                   \
    do {                                                                                                    \
        fill(shape, 1);                                                                                     \
        OK(MPI_Neighbor_##name##large(__VA_ARGS__));                                                        \
        look(shape, 1, gathered);                                                                        \
        fill(shape, 2);                                                                                     \
        OK(MPI_Ineighbor_##name##large(__VA_ARGS__, &request));                                             \
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));                                                          \
        CHECK(request == MPI_REQUEST_NULL);                                                                 \
        look(shape, 2, gathered);                                                                        \
        OK(MPI_Neighbor_##name##_init##large(__VA_ARGS__, MPI_INFO_NULL, &request));                        \
        for (int round = 3; round < 6; round++) {                                                           \
            fill(shape, round);                                                                             \
            OK(MPI_Start(&request));                                                                        \
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));                                                      \
            look(shape, round, gathered);                                                                \
        }                                                                                                   \
        OK(MPI_Request_free(&request));                                                                     \
    } while (0)

static void every_form(const struct shape *shape) {
    MPI_Comm comm = shape->comm;
    MPI_Request request;
    MPI_Datatype ints[MOST];
    MPI_Aint at[MOST], long_places[MOST];
    MPI_Count many[MOST];
    int twos[MOST], places[MOST];
    for (int i = 0; i < MOST; i++) {
        twos[i] = 2, many[i] = 2, ints[i] = MPI_INT;
        places[i] = 2 * i, long_places[i] = 2 * i, at[i] = (MPI_Aint)(2 * (size_t)i * sizeof(int));
    }
    FORMS(allgather, , 1, EQUAL);
    FORMS(allgatherv, , 1, GATHERV);
    FORMS(alltoall, , 0, EQUAL);
    FORMS(alltoallv, , 0, ALLV);
    FORMS(alltoallw, , 0, ALLW);
    FORMS(allgather, _c, 1, EQUAL);
    FORMS(allgatherv, _c, 1, GATHERV_C);
    FORMS(alltoall, _c, 0, EQUAL);
    FORMS(alltoallv, _c, 0, ALLV_C);
    FORMS(alltoallw, _c, 0, ALLW_C);
}

/* Counts of each edge's own, displacements backwards, and a datatype with a gap at the receivers. */
static void uneven(const struct shape *shape) {
    MPI_Datatype spread;
    int one[MOST], places[MOST], wide[4 * MOST];
    OK(MPI_Type_vector(2, 1, 2, MPI_INT, &spread));
    OK(MPI_Type_commit(&spread));
    fill(shape, 7);
    for (int i = 0; i < 4 * MOST; i++) wide[i] = -5;
    MPI_Aint back[MOST], from[MOST];
    MPI_Datatype spreads[MOST], ints[MOST];
    for (int i = 0; i < MOST; i++) {
        one[i] = 1, places[i] = 2, spreads[i] = spread, ints[i] = MPI_INT;
        from[i] = (MPI_Aint)(2 * (size_t)i * sizeof(int)), back[i] = (MPI_Aint)((MOST - 1 - (size_t)i) * 4 * sizeof(int));
    }
    OK(MPI_Neighbor_alltoallw(sent, places, from, ints, wide, one, back, spreads, shape->comm));
    for (int i = 0; i < shape->in; i++) {
        const int *block = wide + 4 * (MOST - 1 - i);
        int there = shape->sources[i] != MPI_PROC_NULL;
        CHECK(block[1] == -5 && block[3] == -5);
        CHECK(block[0] == (there ? datum(shape->sources[i], shape->blocks[i], 7) : -5));
        CHECK(block[2] == (there ? datum(shape->sources[i], shape->blocks[i], 7) + 50 : -5));
    }
    OK(MPI_Type_free(&spread));
}

/* Several at once, completed in another order. */
static void at_once(const struct shape *shape) {
    enum { N = 5 };
    static int from[N][2 * MOST], to[N][2 * MOST];
    MPI_Request requests[N];
    for (int n = 0; n < N; n++) {
        fill(shape, n);
        memcpy(from[n], sent, sizeof sent);
        memcpy(to[n], received, sizeof received);
        OK(MPI_Ineighbor_alltoall(from[n], 2, MPI_INT, to[n], 2, MPI_INT, shape->comm, &requests[n]));
    }
    for (int n = N - 1; n >= 0; n--) {
        OK(MPI_Wait(&requests[n], MPI_STATUS_IGNORE));
        memcpy(received, to[n], sizeof received);
        look(shape, n, 0);
    }
}

static void try(struct shape *shape) {
    OK(MPI_Comm_set_errhandler(shape->comm, MPI_ERRORS_RETURN));
    every_form(shape);
    uneven(shape);
    at_once(shape);
    OK(MPI_Comm_free(&shape->comm));
}

/* A grid: what is sent backwards comes from behind, whether or not both neighbours are the same rank. */
static void grid(int n, const int *widths, const int *rings) {
    struct shape shape = {.in = 2 * n, .out = 2 * n};
    OK(MPI_Cart_create(MPI_COMM_WORLD, n, widths, rings, 0, &shape.comm));
    /* A grid without dimensions has one rank. */
    if (shape.comm == MPI_COMM_NULL) return;
    for (int i = 0; i < n; i++) {
        OK(MPI_Cart_shift(shape.comm, i, 1, &shape.sources[2 * i], &shape.sources[2 * i + 1]));
        shape.blocks[2 * i] = 2 * i + 1, shape.blocks[2 * i + 1] = 2 * i;
    }
    try(&shape);
}

static void grids(void) {
    int flat[] = {size_}, two[] = {1, size_}, three[] = {0, 0, 1};
    grid(1, flat, (int[]){0});
    grid(1, flat, (int[]){1});
    grid(2, two, (int[]){1, 0});
    OK(MPI_Dims_create(size_, 3, three));
    grid(3, three, (int[]){1, 1, 0});
    grid(0, NULL, NULL);
}

static void ring_graph(void) {
    int ends[64], edges[128];
    for (int i = 0; i < size_; i++) {
        edges[2 * i] = (i + size_ - 1) % size_, edges[2 * i + 1] = (i + 1) % size_;
        ends[i] = 2 * i + 2;
    }
    struct shape shape = {.in = 2, .out = 2};
    OK(MPI_Graph_create(MPI_COMM_WORLD, size_, ends, edges, 0, &shape.comm));
    memcpy(shape.sources, edges + 2 * rank_, 2 * sizeof *edges);
    /* Where both are one rank, the first block of the one is the first of the other. */
    shape.blocks[0] = size_ > 2 ? 1 : 0, shape.blocks[1] = size_ > 2 ? 0 : 1;
    try(&shape);
}

/* Two edges to the next rank, around one to this rank; and one from rank 0 to each. */
static void doubled(void) {
    int next = (rank_ + 1) % size_, last = (rank_ + size_ - 1) % size_;
    struct shape shape = {.in = 3, .out = 3, .sources = {last, rank_, last}, .blocks = {0, 1, 2}};
    int to[] = {next, rank_, next};
    OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 3, shape.sources, MPI_UNWEIGHTED, 3, to, MPI_UNWEIGHTED,
                                      MPI_INFO_NULL, 0, &shape.comm));
    try(&shape);
    struct shape star = {.in = 1, .out = rank_ == 0 ? size_ : 0, .blocks = {rank_}};
    int all[64];
    for (int i = 0; i < size_; i++) all[i] = i;
    OK(MPI_Dist_graph_create(MPI_COMM_WORLD, rank_ == 0, &(int){0}, &size_, all, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                             &star.comm));
    try(&star);
}

/* A message that is too long, large blocks. */
static void lengths(void) {
    enum { LARGE = 300000 };
    int *from = calloc(2 * LARGE, sizeof *from), *to = calloc(2 * LARGE, sizeof *to), before, behind;
    MPI_Comm ring;
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &size_, (int[]){1}, 0, &ring));
    OK(MPI_Comm_set_errhandler(ring, MPI_ERRORS_RETURN));
    OK(MPI_Cart_shift(ring, 0, 1, &before, &behind));
    for (int i = 0; i < 2 * LARGE; i++) from[i] = rank_ * 1000 + i;
    OK(MPI_Neighbor_alltoall(from, LARGE, MPI_INT, to, LARGE, MPI_INT, ring));
    for (int i = 0; i < LARGE; i++) CHECK(to[i] == before * 1000 + LARGE + i && to[LARGE + i] == behind * 1000 + i);
    FAILS(MPI_Neighbor_alltoall(from, 4, MPI_INT, to, 3, MPI_INT, ring), MPI_ERR_TRUNCATE);
    OK(MPI_Neighbor_alltoall(from, 3, MPI_INT, to, 4, MPI_INT, ring));
    OK(MPI_Comm_free(&ring));
    free(from), free(to);
}

static void wrong(void) {
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Request request = MPI_REQUEST_NULL;
    int minus[] = {-1, -1}, places[] = {0, 1}, ones[] = {1, 1};
    FAILS(MPI_Neighbor_allgather(EQUAL), MPI_ERR_TOPOLOGY);
    FAILS(MPI_Ineighbor_alltoall(EQUAL, &request), MPI_ERR_TOPOLOGY);
    FAILS(MPI_Neighbor_alltoall_init(EQUAL, MPI_INFO_NULL, &request), MPI_ERR_TOPOLOGY);
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, &size_, (int[]){1}, 0, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    FAILS(MPI_Neighbor_allgather(sent, 1, MPI_INT, received, 1, MPI_INT, MPI_COMM_NULL), MPI_ERR_COMM);
    FAILS(MPI_Neighbor_allgather(sent, -1, MPI_INT, received, 1, MPI_INT, comm), MPI_ERR_COUNT);
    FAILS(MPI_Neighbor_allgather(sent, 1, MPI_INT, received, -1, MPI_INT, comm), MPI_ERR_COUNT);
    FAILS(MPI_Neighbor_allgather(sent, 1, MPI_DATATYPE_NULL, received, 1, MPI_INT, comm), MPI_ERR_TYPE);
    FAILS(MPI_Neighbor_alltoall(sent, 1, MPI_INT, received, 1, MPI_DATATYPE_NULL, comm), MPI_ERR_TYPE);
    FAILS(MPI_Neighbor_alltoall(MPI_IN_PLACE, 1, MPI_INT, received, 1, MPI_INT, comm), MPI_ERR_BUFFER);
    FAILS(MPI_Neighbor_alltoall(NULL, 5000, MPI_INT, received, 1, MPI_INT, comm), MPI_ERR_BUFFER);
    FAILS(MPI_Neighbor_alltoall(sent, 1, MPI_INT, NULL, 1, MPI_INT, comm), MPI_ERR_BUFFER);
    FAILS(MPI_Neighbor_alltoallv(sent, minus, places, MPI_INT, received, ones, places, MPI_INT, comm), MPI_ERR_COUNT);
    FAILS(MPI_Neighbor_alltoallv(sent, ones, NULL, MPI_INT, received, ones, places, MPI_INT, comm), MPI_ERR_ARG);
    FAILS(MPI_Neighbor_allgatherv(sent, 1, MPI_INT, received, NULL, places, MPI_INT, comm), MPI_ERR_ARG);
    FAILS(MPI_Neighbor_alltoallw(sent, ones, NULL, NULL, received, ones, NULL, NULL, comm), MPI_ERR_ARG);
    FAILS(MPI_Neighbor_alltoall_init(EQUAL, (MPI_Info)(intptr_t)77, &request), MPI_ERR_INFO);
    FAILS(MPI_Neighbor_alltoall_init(EQUAL, MPI_INFO_NULL, NULL), MPI_ERR_ARG);
    OK(MPI_Comm_free(&comm));
}

PROGRAM(grids, ring_graph, doubled, lengths, wrong)
