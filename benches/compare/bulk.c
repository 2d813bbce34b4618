/* Bytes a second of long puts, gets and accumulates: one and a flush, 64 to the same memory, and 64 to memory one behind the other.
 * One line a sample, "ROW UNIT NUMBER". Rank 0 measures; rank 1, the target, waits in a barrier. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
enum { SAMPLES = 7, ATTEMPTS = 10, BURST = 64, TARGET = 1 };
static const size_t LONGEST = 4u << 20;
static const double BYTES = 64u << 20; /* moved by a sample at least */

static MPI_Win win;
static char *origin;
static int rank;

enum kind { PUT, GET, ACCUMULATE };
static const char *const kinds[] = {"put", "get"};

/* So many operations of `bytes` bytes, each `step` bytes behind the one before. */
static void issue(enum kind kind, size_t bytes, MPI_Datatype type, MPI_Op op, int times, size_t step) {
    int size;
    MPI_Type_size(type, &size);
    int count = (int)(bytes / (size_t)size);
    for (int i = 0; i < times; i++) {
        char *here = origin + (size_t)i * step;
        MPI_Aint there = (MPI_Aint)((size_t)i * step);
        if (kind == PUT) MPI_Put(here, count, type, TARGET, there, count, type, win);
        else if (kind == GET) MPI_Get(here, count, type, TARGET, there, count, type, win);
        else MPI_Accumulate(here, count, type, TARGET, there, count, type, op, win);
    }
    MPI_Win_flush(TARGET, win);
}

static long preemptions(void) {
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nivcsw;
}

/* A sample in which the core was taken away is measured again. */
static void measure(const char *row, enum kind kind, size_t bytes, MPI_Datatype type, MPI_Op op, int times, size_t step) {
    long turns = (long)(BYTES / (double)(bytes * (size_t)times)) + 1;
    issue(kind, bytes, type, op, times, step);
    for (int sample = 0; sample < SAMPLES; sample++) {
        double seconds = 0;
        long before = -1;
        for (int attempt = 0; before != preemptions() && attempt < ATTEMPTS; attempt++) {
            before = preemptions();
            seconds = MPI_Wtime();
            for (long turn = 0; turn < turns; turn++) issue(kind, bytes, type, op, times, step);
            seconds = MPI_Wtime() - seconds;
        }
        printf("%s GB/s %.3f\n", row, 1e-9 * (double)bytes * (double)times * (double)turns / seconds);
    }
}

static void name(char *row, size_t length, const char *what, size_t bytes, const char *how) {
    if (bytes < 1u << 20) snprintf(row, length, "%s-%zuKiB%s", what, bytes >> 10, how);
    else snprintf(row, length, "%s-%zuMiB%s", what, bytes >> 20, how);
}

static void transfers(void) {
    static const size_t sizes[] = {4u << 10, 64u << 10, 1u << 20, 4u << 20};
    char row[64];
    for (enum kind kind = PUT; kind <= GET; kind++)
        for (size_t i = 0; i < COUNT(sizes); i++) {
            name(row, sizeof row, kinds[kind], sizes[i], "");
            measure(row, kind, sizes[i], MPI_BYTE, MPI_NO_OP, 1, 0);
            name(row, sizeof row, kinds[kind], sizes[i], "-64-same");
            measure(row, kind, sizes[i], MPI_BYTE, MPI_NO_OP, BURST, 0);
            name(row, sizeof row, kinds[kind], sizes[i], "-64-apart");
            measure(row, kind, sizes[i], MPI_BYTE, MPI_NO_OP, BURST, sizes[i]);
        }
}

static void accumulates(void) {
    static const size_t sizes[] = {4u << 10, 64u << 10, 1u << 20};
    const struct {
        const char *name;
        MPI_Datatype type;
        MPI_Op op;
    } rows[] = {
        {"sum-double", MPI_DOUBLE, MPI_SUM}, {"sum-float", MPI_FLOAT, MPI_SUM}, {"sum-int", MPI_INT, MPI_SUM},
        {"max-double", MPI_DOUBLE, MPI_MAX}, {"band-long", MPI_INT64_T, MPI_BAND},
        {"prod-complex", MPI_C_DOUBLE_COMPLEX, MPI_PROD},
    };
    char row[64];
    for (size_t i = 0; i < COUNT(rows); i++)
        for (size_t k = 0; k < COUNT(sizes); k++) {
            name(row, sizeof row, rows[i].name, sizes[k], "");
            measure(row, ACCUMULATE, sizes[k], rows[i].type, rows[i].op, 1, 0);
        }
}

int main(int argc, char **argv) {
    void *memory;
    const size_t all = BURST * LONGEST;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(rank % (int)sysconf(_SC_NPROCESSORS_ONLN), &cores);
    sched_setaffinity(0, sizeof cores, &cores);
    MPI_Win_allocate((MPI_Aint)all, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    origin = aligned_alloc(4096, all);
    /* Numbers that stay numbers whatever is done to them, in memory that is there. */
    for (size_t i = 0; i < all / sizeof(double); i++) ((double *)origin)[i] = ((double *)memory)[i] = 1;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
        transfers();
        accumulates();
        MPI_Win_unlock_all(win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    free(origin);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
