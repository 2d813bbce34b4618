/* Heat in a rod: each rank has a part of its cells, and before each step puts its outermost cells beside those of its neighbours. The
 * window holds two fields of the part, for odd and for even steps, so that one fence a step is enough. */
#include <mpi.h>
#include <stdio.h>

enum { CELLS = 960, STEPS = 2000 };
static const double HOT = 100.0, COLD = 0.0, RATE = 0.25;

/* The first cell of a rank. */
static int first(int rank, int size) { return (int)((long)CELLS * rank / size); }

int main(int argc, char **argv) {
    int rank, size;
    double *fields;
    MPI_Win window;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int own = first(rank + 1, size) - first(rank, size);
    int left = rank > 0 ? rank - 1 : MPI_PROC_NULL, right = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
    /* A field: the left neighbour's cell, the own ones, the right neighbour's; as long as the longest part at all ranks. */
    int longest = CELLS / size + 1, length = longest + 2;
    MPI_Win_allocate(2 * length * sizeof(double), sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &fields, &window);
    for (int i = 0; i < 2 * length; i++) fields[i] = COLD;
    if (rank == 0) fields[0] = fields[length] = HOT;

    MPI_Win_fence(MPI_MODE_NOPRECEDE, window);
    for (int step = 0; step < STEPS; step++) {
        int at = step % 2 * length;
        double *now = fields + at, *next = fields + (length - at);
        int behind = rank > 0 ? first(rank, size) - first(rank - 1, size) + 1 : 0; /* the left one's right halo */
        MPI_Put(&now[1], 1, MPI_DOUBLE, left, at + behind, 1, MPI_DOUBLE, window);
        MPI_Put(&now[own], 1, MPI_DOUBLE, right, at, 1, MPI_DOUBLE, window);
        MPI_Win_fence(0, window);
        for (int i = 1; i <= own; i++) next[i] = now[i] + RATE * (now[i - 1] - 2 * now[i] + now[i + 1]);
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);

    /* Rank 0 looks at some cells, wherever they are. */
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
    for (int cell = 0; rank == 0 && cell < 100; cell += 20) {
        int owner = 0;
        while (first(owner + 1, size) <= cell) owner++;
        double heat;
        int at = STEPS % 2 * length + cell - first(owner, size) + 1;
        MPI_Get(&heat, 1, MPI_DOUBLE, owner, at, 1, MPI_DOUBLE, window);
        MPI_Win_flush(owner, window);
        printf("cell %2d: %10.6f\n", cell, heat);
    }
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    return MPI_Finalize();
}
