/* bytes FILE…: how many bytes files have, counted by the ranks together, each in every so many of a file's blocks. */
#include <mpi.h>
#include <stdio.h>

enum { BLOCK = 4096 };

int main(int argc, char **argv) {
    int rank, size;
    long own = 0, all = 0;
    static char block[BLOCK];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 1; i < argc; i++) {
        FILE *file = fopen(argv[i], "r");
        if (!file) {
            perror(argv[i]);
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
        for (long at = rank; fseek(file, at * BLOCK, SEEK_SET) == 0; at += size) {
            size_t some = fread(block, 1, BLOCK, file);
            if (some == 0) break;
            own += (long)some;
        }
        fclose(file);
    }
    MPI_Reduce(&own, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%ld bytes by %d ranks\n", all, size);
    MPI_Finalize();
    return 0;
}
