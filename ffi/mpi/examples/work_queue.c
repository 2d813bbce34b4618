/* A queue of work: tasks of different lengths, of which each rank takes the next when it is done with one. The numbers 1 to 3,000
 * are halved if even, else tripled and increased, until they are 1: which takes the most steps? */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>

enum { TASKS = 3000 };
/* Rank 0's words: how many tasks are taken, the steps of all, the longest; and behind them the steps of each task. */
enum { TAKEN, TOTAL, LONGEST, STEPS };

static int64_t work(int64_t number) {
    int64_t steps = 0;
    for (; number != 1; steps++) number = number % 2 == 0 ? number / 2 : 3 * number + 1;
    return steps;
}

int main(int argc, char **argv) {
    int rank;
    int64_t *words;
    MPI_Win window;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Aint bytes = rank == 0 ? (STEPS + TASKS) * sizeof(int64_t) : 0;
    MPI_Win_allocate(bytes, sizeof(int64_t), MPI_INFO_NULL, MPI_COMM_WORLD, &words, &window);
    for (int i = 0; rank == 0 && i < STEPS + TASKS; i++) words[i] = 0;
    MPI_Barrier(MPI_COMM_WORLD);

    MPI_Win_lock_all(0, window);
    for (;;) {
        int64_t one = 1, task;
        MPI_Fetch_and_op(&one, &task, MPI_INT64_T, 0, TAKEN, MPI_SUM, window);
        MPI_Win_flush(0, window);
        if (task >= TASKS) break;
        int64_t steps = work(task + 1), order = steps * 10000 + task + 1;
        MPI_Put(&steps, 1, MPI_INT64_T, 0, STEPS + task, 1, MPI_INT64_T, window);
        MPI_Accumulate(&steps, 1, MPI_INT64_T, 0, TOTAL, 1, MPI_INT64_T, MPI_SUM, window);
        MPI_Accumulate(&order, 1, MPI_INT64_T, 0, LONGEST, 1, MPI_INT64_T, MPI_MAX, window);
        MPI_Win_flush_local(0, window); /* `steps` and `order` are free again */
    }
    MPI_Win_unlock_all(window);

    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
        printf("%d numbers took %lld steps\n", TASKS, (long long)words[TOTAL]);
        printf("27 took %lld, the most took %lld: %lld\n", (long long)words[STEPS + 26], (long long)(words[LONGEST] % 10000),
               (long long)(words[LONGEST] / 10000));
        MPI_Win_unlock(0, window);
    }
    MPI_Win_free(&window);
    return MPI_Finalize();
}
