/* Both of two ranks update one counter at rank 0 by MPI_Fetch_and_op and flush: one line a sample, "ROW UNIT NUMBER". Beside it what
 * the machine does: a locked addition to one word from both, and how long a cache line takes there and back. The last decides
 * more than anything else, so samples count apart where the two cores share a cache. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { BLOCKS = 9, ATTEMPTS = 40, ROUND_TRIPS = 500, TURNS = 64 };
static const double BLOCK = 2e-3; /* seconds */
static const double SHARED = 100; /* a round trip of so many nanoseconds is within one core's or one cluster's cache */

/* Memory of both ranks, a line each. */
static struct {
    _Alignas(128) atomic_long counter;
    _Alignas(128) atomic_long there;
    _Alignas(128) atomic_long back;
} *shared;
static MPI_Win win;
static int rank;

/* So many turns of each. */
static void add(void) {
    for (int turn = 0; turn < TURNS; turn++) atomic_fetch_add(&shared->counter, 1);
}

static const int64_t one = 1;
static int64_t tickets[TURNS];

static void fetch_and_op(void) {
    for (int turn = 0; turn < TURNS; turn++) {
        MPI_Fetch_and_op(&one, &tickets[0], MPI_INT64_T, 0, 0, MPI_SUM, win);
        MPI_Win_flush(0, win);
    }
}

static void fetch_and_ops(void) {
    for (int turn = 0; turn < TURNS; turn++)
        MPI_Fetch_and_op(&one, &tickets[turn], MPI_INT64_T, 0, 0, MPI_SUM, win);
    MPI_Win_flush(0, win);
}

static long preemptions(void) {
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nivcsw;
}

/* Nanoseconds that a cache line takes to the other core and back. */
static double round_trip(void) {
    if (rank == 0) shared->there = shared->back = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (long trip = 1; trip <= ROUND_TRIPS; trip++) {
        if (rank == 0) atomic_store_explicit(&shared->there, trip, memory_order_release);
        while (atomic_load_explicit(rank == 0 ? &shared->back : &shared->there, memory_order_acquire) < trip) {}
        if (rank == 1) atomic_store_explicit(&shared->back, trip, memory_order_release);
    }
    return 1e9 * (MPI_Wtime() - start) / ROUND_TRIPS;
}

/* Both do the same for a while: million a second of both, and the part of the one that did less. Tried again if the system took a
 * core away. */
static void contend(const char *name, void (*operation)(void)) {
    int64_t own[2], all[2], least; /* operations, preemptions */
    double seconds, trip = 0;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        long before = preemptions();
        trip = round_trip();
        double start = MPI_Wtime();
        own[0] = 0;
        do {
            operation();
            own[0] += TURNS;
            seconds = MPI_Wtime() - start;
        } while (seconds < BLOCK);
        own[1] = preemptions() - before;
        MPI_Allreduce(own, all, 2, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
        MPI_Allreduce(own, &least, 1, MPI_INT64_T, MPI_MIN, MPI_COMM_WORLD);
        if (all[1] == 0) break;
    }
    if (rank) return;
    const char *cores = trip < SHARED ? "shared-cache" : "contended";
    printf("%s-%s M/s %.3f\n", cores, name, 1e-6 * (double)all[0] / seconds);
    printf("%s-%s-lesser-rank %% %.1f\n", cores, name, 100 * (double)least / (double)all[0]);
    printf("%s-line-round-trip ns %.1f\n", cores, trip);
}

/* A file that both map: rank 0 makes it, and takes its name away when both have it. */
static int map_shared(void) {
    char name[64];
    snprintf(name, sizeof name, "/compare-%ld", (long)getpid());
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    int file = rank ? -1 : shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    int bad = rank == 0 && ftruncate(file, sizeof *shared);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank) file = shm_open(name, O_RDWR, 0);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) shm_unlink(name);
    return bad || shared == MAP_FAILED;
}

int main(int argc, char **argv) {
    void *memory;
    cpu_set_t cores;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    CPU_ZERO(&cores);
    CPU_SET(rank % (int)sysconf(_SC_NPROCESSORS_ONLN), &cores);
    sched_setaffinity(0, sizeof cores, &cores);
    if (map_shared()) MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Win_allocate(4096, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_lock_all(0, win);
    for (int block = 0; block < BLOCKS; block++) {
        contend("fetch_and_op+flush", fetch_and_op);
        contend("64-fetch_and_op+flush", fetch_and_ops);
        contend("locked-add", add);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    return MPI_Finalize();
}
