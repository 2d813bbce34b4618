/* A distributed hash table: ranks insert words, numbers here, by compare-and-swap of a slot's key, and count them by accumulate. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>

enum { WORDS = 1000, SLOTS = 2048, EMPTY = 0 }; /* each rank's */
/* A rank's window: keys, their counts, and at rank 0 what is found in the end. */
enum { KEYS = 0, COUNTS = SLOTS, DIFFERENT = 2 * SLOTS, MOST, ALL };

/* The minimal standard generator of random numbers. */
static int64_t random_number(int64_t *state) { return *state = *state * 16807 % 2147483647; }

/* Counts a word: from its first slot on, the first that is empty or has it. */
static void insert(int64_t word, int size, MPI_Win window) {
    int owner = (int)(word % size);
    int64_t empty = EMPTY, one = 1, found;
    for (int64_t slot = word / size * 7919 % SLOTS;; slot = (slot + 1) % SLOTS) {
        MPI_Compare_and_swap(&word, &empty, &found, MPI_INT64_T, owner, KEYS + slot, window);
        MPI_Win_flush(owner, window);
        if (found == EMPTY || found == word) {
            MPI_Accumulate(&one, 1, MPI_INT64_T, owner, COUNTS + slot, 1, MPI_INT64_T, MPI_SUM, window);
            MPI_Win_flush_local(owner, window); /* `one` is free again */
            return;
        }
    }
}

int main(int argc, char **argv) {
    int rank, size;
    int64_t *table;
    MPI_Win window;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Win_allocate(ALL * sizeof(int64_t), sizeof(int64_t), MPI_INFO_NULL, MPI_COMM_WORLD, &table, &window);
    for (int i = 0; i < ALL; i++) table[i] = EMPTY;
    MPI_Barrier(MPI_COMM_WORLD);

    MPI_Win_lock_all(0, window);
    int64_t state = rank + 1;
    for (int i = 0; i < WORDS; i++) insert(random_number(&state) % 500 + 1, size, window);
    MPI_Win_flush_all(window);
    MPI_Barrier(MPI_COMM_WORLD); /* all is inserted */

    /* Each rank looks at its own part. Of words that are as frequent the smallest is wanted. */
    MPI_Win_sync(window);
    int64_t different = 0, most = 0;
    for (int slot = 0; slot < SLOTS; slot++) {
        if (table[KEYS + slot] == EMPTY) continue;
        int64_t order = table[COUNTS + slot] * 1000 + (999 - table[KEYS + slot]);
        different++;
        most = order > most ? order : most;
    }
    MPI_Accumulate(&different, 1, MPI_INT64_T, 0, DIFFERENT, 1, MPI_INT64_T, MPI_SUM, window);
    MPI_Accumulate(&most, 1, MPI_INT64_T, 0, MOST, 1, MPI_INT64_T, MPI_MAX, window);
    MPI_Win_flush(0, window);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Win_sync(window);
        printf("%d words, %lld different\n", size * WORDS, (long long)table[DIFFERENT]);
        printf("%lld is there %lld times\n", (long long)(999 - table[MOST] % 1000), (long long)(table[MOST] / 1000));
    }
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    return MPI_Finalize();
}
