/* sizes OPERATION BYTES: one operation on that many bytes by each rank; collectives are nonblocking with an `i` before the name.
 * Buffers hold zeroes but for marks on both sides of where 32-bit numbers end, and at the end: they are looked at afterwards. Prints
 * what was right; anything else aborts the job. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef unsigned char byte;
enum { MARKS = 7, ROOT = 0, TARGET = 1 };
static const MPI_Comm world = MPI_COMM_WORLD;
static int rank, size;
static MPI_Count bytes;
static const char *operation;
static int nonblocking;

/* A collective, in one of its forms. */
#define COLLECTIVE(name, iname, ...)                                                                    \
    do {                                                                                                \
        if (nonblocking) {                                                                              \
            MPI_Request request;                                                                        \
            MPI_##iname##_c(__VA_ARGS__, &request);                                                     \
            MPI_Wait(&request, MPI_STATUS_IGNORE);                                                      \
        } else {                                                                                        \
            MPI_##name##_c(__VA_ARGS__);                                                                \
        }                                                                                               \
    } while (0)

static void fail(const char *what, long long number) {
    fprintf(stderr, "%s of %lld bytes: rank %d: %s %lld\n", operation, (long long)bytes, rank, what, number);
    MPI_Abort(world, 4);
}

static byte *memory(MPI_Count length) {
    void *found = mmap(NULL, (size_t)length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found == MAP_FAILED) fail("no memory, bytes", (long long)length);
    madvise(found, (size_t)length, MADV_HUGEPAGE);
    return found;
}

static MPI_Count place(int mark) {
    const MPI_Count places[MARKS] = {0, 1, (1LL << 31) - 1, 1LL << 31, (1LL << 32) - 1, 1LL << 32, bytes - 1};
    return places[mark] < bytes ? places[mark] : bytes - 1;
}

/* The marks are set from the first to the last: of those at one place the last one stays. */
static void set(byte *buffer, int value) {
    for (int mark = 0; mark < MARKS; mark++) buffer[place(mark)] = (byte)(value + mark);
}

static void check(const byte *buffer, int value) {
    for (int mark = 0; mark < MARKS; mark++) {
        if (mark + 1 < MARKS && place(mark) == bytes - 1) continue;
        if (buffer[place(mark)] != (byte)(value + mark)) fail("wrong at byte", (long long)place(mark));
    }
}

static void check_blocks(const byte *buffer, int first, int step) {
    for (int r = 0; r < size; r++) check(buffer + bytes * r, first + step * r);
}

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

static void reduce_scatter(void) {
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

static void message(void) {
    byte *buffer = memory(bytes);
    if (rank == ROOT) {
        set(buffer, 5);
        MPI_Send_c(buffer, bytes, MPI_BYTE, TARGET, 3, world);
    } else if (rank == TARGET) {
        MPI_Status status;
        MPI_Count count;
        MPI_Recv_c(buffer, bytes, MPI_BYTE, ROOT, 3, world, &status);
        MPI_Get_count_c(&status, MPI_BYTE, &count);
        if (count != bytes) fail("received", (long long)count);
        check(buffer, 5);
    }
}

/* One instance of a type of that size, by functions whose counts are ints. */
static void message_of_type(void) {
    byte *buffer = memory(bytes);
    MPI_Datatype type;
    MPI_Type_contiguous_c(bytes, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    if (rank == ROOT) {
        set(buffer, 5);
        MPI_Send(buffer, 1, type, TARGET, 3, world);
    } else if (rank == TARGET) {
        MPI_Recv(buffer, 1, type, ROOT, 3, world, MPI_STATUS_IGNORE);
        check(buffer, 5);
    }
    MPI_Type_free(&type);
}

/* Calls of windows: the origin's buffer and the target's memory, each marked if it is read from. */
enum access { PUT, GET, ACCUMULATE, GET_ACCUMULATE };

static void access_window(enum access access) {
    byte *buffer = memory(bytes), *exposed;
    int fetches = access == GET || access == GET_ACCUMULATE;
    MPI_Win win;
    MPI_Win_allocate_c(bytes, 1, MPI_INFO_NULL, world, &exposed, &win);
    if (fetches && rank == TARGET) set(exposed, 7);
    if (!fetches && rank == ROOT) set(buffer, 7);
    MPI_Win_fence(0, win);
    if (rank == ROOT) {
        if (access == PUT) MPI_Put_c(buffer, bytes, MPI_BYTE, TARGET, 0, bytes, MPI_BYTE, win);
        if (access == GET) MPI_Get_c(buffer, bytes, MPI_BYTE, TARGET, 0, bytes, MPI_BYTE, win);
        if (access == ACCUMULATE)
            MPI_Accumulate_c(buffer, bytes, MPI_UINT8_T, TARGET, 0, bytes, MPI_UINT8_T, MPI_SUM, win);
        if (access == GET_ACCUMULATE)
            MPI_Get_accumulate_c(NULL, 0, MPI_UINT8_T, buffer, bytes, MPI_UINT8_T, TARGET, 0, bytes, MPI_UINT8_T, MPI_NO_OP, win);
    }
    MPI_Win_fence(0, win);
    if (fetches && rank == ROOT) check(buffer, 7);
    if (!fetches && rank == TARGET) check(exposed, 7);
    MPI_Win_free(&win);
}

static void put(void) { access_window(PUT); }
static void get(void) { access_window(GET); }
static void accumulate(void) { access_window(ACCUMULATE); }
static void get_accumulate(void) { access_window(GET_ACCUMULATE); }

static const struct {
    const char *name;
    void (*run)(void);
} operations[] = {
    {"bcast", bcast},
    {"gather", gather},
    {"scatter", scatter},
    {"allgather", allgather},
    {"alltoall", alltoall},
    {"reduce", reduce},
    {"allreduce", allreduce},
    {"scan", scan},
    {"exscan", exscan},
    {"reduce_scatter", reduce_scatter},
    {"neighbor_allgather", neighbor_allgather},
    {"neighbor_alltoall", neighbor_alltoall},
    {"message", message},
    {"message_of_type", message_of_type},
    {"put", put},
    {"get", get},
    {"accumulate", accumulate},
    {"get_accumulate", get_accumulate},
};

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &size);
    operation = argc > 2 ? argv[1] : "";
    bytes = argc > 2 ? atoll(argv[2]) : 0;
    for (size_t i = 0; bytes > 0 && i < sizeof operations / sizeof *operations; i++) {
        nonblocking = operation[0] == 'i';
        if (strcmp(operations[i].name, operation + nonblocking) != 0) continue;
        double start = MPI_Wtime();
        operations[i].run();
        MPI_Barrier(world);
        if (rank == ROOT) printf("%-16s %lld bytes: right, %.1f s\n", operation, (long long)bytes, MPI_Wtime() - start);
        return MPI_Finalize();
    }
    fprintf(stderr, "usage: sizes OPERATION BYTES\n");
    MPI_Abort(world, 2);
}
