/* Memory that leaves the program while it is still a window's: a get from it ends, with what was there or with an error. */
#define _DEFAULT_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { BYTES = 1 << 20 };

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, failed = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *copy = calloc(BYTES, 1);
    memory[5] = 7;
    MPI_Win win;
    MPI_Win_create(memory, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_lock_all(0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) munmap(memory, BYTES);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        failed = MPI_Get(copy, BYTES, MPI_CHAR, 1, 0, BYTES, MPI_CHAR, win) || MPI_Win_flush(1, win);
        if (!failed && copy[5] != 7) {
            printf("what came was never there\n");
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        printf("the get ended, %s\n", failed ? "with an error" : "as if nothing had happened");
        fflush(stdout);
        /* After an error there may be no way to the other rank. */
        MPI_Abort(MPI_COMM_WORLD, 9);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return 0;
}
