/* Loops of one call each, for callgrind to count: two ranks, an allocated window, an epoch of lock_all, elements of 8 bytes
 * at the other rank. Rank 0 runs each loop three times, the first to warm up, and prints name and length of each. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum row {
    PUT, GET, PUT_FLUSH, FETCH_AND_OP, COMPARE_AND_SWAP, ACCUMULATE, ACCUMULATE_DOUBLE, GET_ACCUMULATE, RPUT_WAIT,
    LOCK_PUT_UNLOCK, LOCK_SHARED, FLUSH_ALL, FLUSH_LOCAL_ALL, LOCK_ALL_UNLOCK_ALL
};
static const char *const names[] = {
    "put", "get", "put_flush", "fetch_and_op", "compare_and_swap", "accumulate", "accumulate_double", "get_accumulate",
    "rput_wait", "lock_put_unlock", "lock_shared", "flush_all", "flush_local_all", "lock_all_unlock_all"
};

static MPI_Win win, locked;
static int64_t origin = 1, result, compare;
static double real = 1;
static const int target = 1;

/* `times` turns of a loop: callgrind counts inside this function alone, which therefore must not be part of another. */
__attribute__((noinline)) void turns(enum row row, long times) {
    MPI_Request request;
    switch (row) {
    case PUT:
        for (long i = 0; i < times; i++) MPI_Put(&origin, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, win);
        break;
    case GET:
        for (long i = 0; i < times; i++) MPI_Get(&result, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, win);
        break;
    case PUT_FLUSH:
        for (long i = 0; i < times; i++) {
            MPI_Put(&origin, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, win);
            MPI_Win_flush(target, win);
        }
        break;
    case FETCH_AND_OP:
        for (long i = 0; i < times; i++) MPI_Fetch_and_op(&origin, &result, MPI_INT64_T, target, 0, MPI_SUM, win);
        break;
    case COMPARE_AND_SWAP:
        for (long i = 0; i < times; i++)
            MPI_Compare_and_swap(&origin, &compare, &result, MPI_INT64_T, target, 0, win);
        break;
    case ACCUMULATE:
        for (long i = 0; i < times; i++)
            MPI_Accumulate(&origin, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, MPI_SUM, win);
        break;
    case ACCUMULATE_DOUBLE:
        for (long i = 0; i < times; i++) MPI_Accumulate(&real, 1, MPI_DOUBLE, target, 1, 1, MPI_DOUBLE, MPI_SUM, win);
        break;
    case GET_ACCUMULATE:
        for (long i = 0; i < times; i++)
            MPI_Get_accumulate(&origin, 1, MPI_INT64_T, &result, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, MPI_SUM, win);
        break;
    case RPUT_WAIT:
        for (long i = 0; i < times; i++) {
            MPI_Rput(&origin, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, win, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        break;
    case LOCK_PUT_UNLOCK:
        for (long i = 0; i < times; i++) {
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, locked);
            MPI_Put(&origin, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, locked);
            MPI_Win_unlock(target, locked);
        }
        break;
    case LOCK_SHARED:
        for (long i = 0; i < times; i++) {
            MPI_Win_lock(MPI_LOCK_SHARED, target, 0, locked);
            MPI_Win_unlock(target, locked);
        }
        break;
    case FLUSH_ALL:
        for (long i = 0; i < times; i++) MPI_Win_flush_all(win);
        break;
    case FLUSH_LOCAL_ALL:
        for (long i = 0; i < times; i++) MPI_Win_flush_local_all(win);
        break;
    case LOCK_ALL_UNLOCK_ALL:
        for (long i = 0; i < times; i++) {
            MPI_Win_lock_all(0, locked);
            MPI_Win_unlock_all(locked);
        }
        break;
    }
}

int main(int argc, char **argv) {
    const long lengths[] = {50, 200, 1200};
    int64_t *memory, *other;
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win_allocate(4096, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_allocate(4096, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &other, &locked);
    MPI_Win_lock_all(0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    for (enum row row = 0; rank == 0 && row < COUNT(names); row++)
        for (size_t length = 0; length < COUNT(lengths); length++) {
            turns(row, lengths[length]);
            printf("%s %ld\n", names[row], lengths[length]);
        }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&locked);
    MPI_Win_free(&win);
    return MPI_Finalize();
}
