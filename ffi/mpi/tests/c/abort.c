/* MPI_Abort with the code that is given, by the last rank (MPI-4.1 section 9.8). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == size - 1) {
        /* Not flushed by the program. */
        printf("about to abort\n");
        MPI_Abort(MPI_COMM_WORLD, atoi(argv[1]));
        printf("aborted and alive\n");
        return 99;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return 98;
}
