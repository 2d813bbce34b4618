/* A distributed counter: each rank draws 1,000 tickets from one word at rank 0. No two ranks draw the same, and rank 0 does nothing for it. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>

enum { DRAWS = 1000 };
enum { TICKET, SUM, WORDS }; /* rank 0's words */

int main(int argc, char **argv) {
    int rank;
    int64_t *words;
    MPI_Win window;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Aint bytes = rank == 0 ? WORDS * sizeof(int64_t) : 0;
    MPI_Win_allocate(bytes, sizeof(int64_t), MPI_INFO_NULL, MPI_COMM_WORLD, &words, &window);
    for (int i = 0; rank == 0 && i < WORDS; i++) words[i] = 0;
    MPI_Barrier(MPI_COMM_WORLD); /* nobody draws before the words are set */

    MPI_Win_lock_all(0, window);
    int64_t one = 1, ticket, sum = 0;
    for (int draw = 0; draw < DRAWS; draw++) {
        MPI_Fetch_and_op(&one, &ticket, MPI_INT64_T, 0, TICKET, MPI_SUM, window);
        MPI_Win_flush(0, window); /* now the ticket is here */
        sum += ticket;
    }
    MPI_Accumulate(&sum, 1, MPI_INT64_T, 0, SUM, 1, MPI_INT64_T, MPI_SUM, window);
    MPI_Win_unlock_all(window);

    MPI_Barrier(MPI_COMM_WORLD); /* all have drawn */
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window); /* to read one's own memory */
        printf("%lld tickets, which sum up to %lld\n", (long long)words[TICKET], (long long)words[SUM]);
        MPI_Win_unlock(0, window);
    }
    MPI_Win_free(&window);
    return MPI_Finalize();
}
