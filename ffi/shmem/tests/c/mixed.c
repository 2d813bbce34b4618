/* OpenSHMEM and MPI in one program: mixed FIRST END, where FIRST is what is initialised first (mpi, shmem) and END is what ends first (mpi,
 * shmem), or both do by the program's end (return, or exit after MPI_Finalize), or one has ended before the other begins (apart). */
#include "check.h"
#include <mpi.h>
#include <string.h>

static long word, heard; /* symmetric */
static int me, n, right, left;
static MPI_Win win;
static long *part;

/* Puts by both ways, completed by one and told by the other. */
static void puts_of_both(void) {
    long *heap = shmem_calloc(4, sizeof *heap);
    long value = 100 + me;
    shmem_long_put(heap, &value, 1, right);
    shmem_long_p(&word, value, right);
    shmem_quiet();
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(heap[0] == 100 + left && word == 100 + left);
    MPI_Put(&value, 1, MPI_LONG, right, 1, 1, MPI_LONG, win);
    MPI_Win_flush(right, win);
    shmem_sync_all();
    CHECK(part[1] == 100 + left);
    /* One waits by OpenSHMEM for what another does after it was told so by MPI, in both directions. */
    if (me == 0) {
        for (int pe = 1; pe < n; pe++) MPI_Send(&value, 1, MPI_LONG, pe, 5, MPI_COMM_WORLD);
        if (n > 1) shmem_long_wait_until(&heard, SHMEM_CMP_EQ, n - 1);
    } else {
        MPI_Recv(&value, 1, MPI_LONG, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(value == 100);
        shmem_long_atomic_inc(&heard, 0);
    }
    /* Elements that both update, one after the other. */
    long one = 1, before = -1;
    MPI_Win over;
    MPI_Win_create(heap, 4 * sizeof *heap, sizeof *heap, MPI_INFO_NULL, MPI_COMM_WORLD, &over);
    MPI_Win_lock_all(0, over);
    MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, 2, MPI_SUM, over);
    MPI_Win_unlock_all(over);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(before >= 0 && before < n);
    shmem_long_atomic_add(&heap[2], 1, 0);
    shmem_barrier_all();
    CHECK(shmem_long_g(&heap[2], 0) == 2 * n);
    MPI_Win_free(&over);
    shmem_free(heap);
}

static void by_mpi(void) {
    long sum = 0, mine = me + 1;
    MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == (long) n * (n + 1) / 2);
}

static void by_shmem(void) {
    shmem_barrier_all();
    shmem_long_p(&word, -me, right);
    shmem_barrier_all();
    CHECK(word == -left);
}

static void start(const char *what) {
    if (strcmp(what, "mpi")) shmem_init();
    else MPI_Init(NULL, NULL);
}

static void well(void) {
    if (me == 0) printf("all well with %d\n", n);
}

int main(int argc, char **argv) {
    const char *first = argc > 1 ? argv[1] : "mpi", *end = argc > 2 ? argv[2] : "mpi";
    start(first);
    if (!strcmp(end, "apart") && !strcmp(first, "mpi")) MPI_Finalize();
    if (!strcmp(end, "apart") && !strcmp(first, "shmem")) {
        me = shmem_my_pe();
        shmem_finalize();
    }
    start(strcmp(first, "mpi") ? "mpi" : "shmem");
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    if (strcmp(end, "apart")) {
        me = shmem_my_pe();
        CHECK(n == shmem_n_pes());
    }
    if (rank != me) MPI_Abort(MPI_COMM_WORLD, 4);
    right = (me + 1) % n, left = (me + n - 1) % n;
    if (!strcmp(end, "apart")) {
        by_mpi();
        well();
        return MPI_Finalize();
    }
    MPI_Win_allocate(4 * sizeof *part, sizeof *part, MPI_INFO_NULL, MPI_COMM_WORLD, &part, &win);
    MPI_Win_lock_all(0, win);
    for (int turn = 0; turn < 20; turn++) {
        word = heard = 0;
        shmem_barrier_all();
        puts_of_both();
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    by_mpi();
    by_shmem();
    if (!strcmp(end, "shmem")) {
        shmem_finalize();
        if (me == n - 1) MPI_Barrier(MPI_COMM_SELF);
        by_mpi();
        well();
        return MPI_Finalize();
    }
    if (strcmp(end, "return")) {
        MPI_Finalize();
        by_shmem();
    }
    well();
    if (!strcmp(end, "mpi")) shmem_finalize();
    if (!strcmp(end, "exit")) exit(0);
    return 0;
}
