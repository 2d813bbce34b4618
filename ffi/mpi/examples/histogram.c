/* A histogram whose bins are spread over the ranks. Each rank counts its samples for itself, and adds its counts to each rank's bins by
 * one accumulate. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>

enum { SAMPLES = 20000, BINS = 12 };

/* The minimal standard generator of random numbers. */
static int64_t random_number(int64_t *state) { return *state = *state * 16807 % 2147483647; }

/* The first bin of a rank. */
static int first(int rank, int size) { return BINS * rank / size; }

int main(int argc, char **argv) {
    int rank, size;
    int64_t *bins, counts[BINS] = {0}, state;
    MPI_Win window;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int own = first(rank + 1, size) - first(rank, size);
    MPI_Win_allocate(own * sizeof(int64_t), sizeof(int64_t), MPI_INFO_NULL, MPI_COMM_WORLD, &bins, &window);
    for (int bin = 0; bin < own; bin++) bins[bin] = 0;

    /* The sum of three dice of 0 to 99 that have fallen 20,000 times. */
    state = rank + 1;
    for (int i = 0; i < SAMPLES; i++) {
        int64_t sum = 0;
        for (int die = 0; die < 3; die++) sum += random_number(&state) % 100;
        counts[sum * BINS / 298]++;
    }
    MPI_Win_fence(MPI_MODE_NOPRECEDE, window);
    for (int target = 0; target < size; target++) {
        int from = first(target, size), number = first(target + 1, size) - from;
        MPI_Accumulate(&counts[from], number, MPI_INT64_T, target, 0, number, MPI_INT64_T, MPI_SUM, window);
    }
    MPI_Win_fence(0, window);
    if (rank == 0) {
        for (int target = 0; target < size; target++) {
            int from = first(target, size), number = first(target + 1, size) - from;
            MPI_Get(&counts[from], number, MPI_INT64_T, target, 0, number, MPI_INT64_T, window);
        }
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
    for (int bin = 0; rank == 0 && bin < BINS; bin++) {
        printf("bin %2d: %6lld", bin, (long long)counts[bin]);
        if (counts[bin] * 200 / ((int64_t)size * SAMPLES) > 0) putchar(' ');
        for (int64_t mark = 0; mark < counts[bin] * 200 / ((int64_t)size * SAMPLES); mark++) putchar('#');
        putchar('\n');
    }
    MPI_Win_free(&window);
    return MPI_Finalize();
}
