/* Whether a put can be read at the target once its flush has returned. Rank 0 puts, flushes, and says so by a word in memory that both
 * ranks map; rank 1, which sees that word, looks at its window without a call of MPI in between. As a flush may need the
 * target's calls, rank 1 makes some if the word does not come soon. */
#include "rma.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { TRIALS = 40 };
static const double PATIENCE = 2e6; /* without a call */

static struct {
    _Alignas(128) atomic_int ready;
    _Alignas(128) atomic_int flushed;
} *shared;

/* The target's part of a trial: whether it finds the mark at both ends of what was put. */
static int look(const volatile unsigned char *memory, size_t bytes, int trial, unsigned char mark) {
    atomic_store(&shared->ready, trial);
    double end = now() + PATIENCE;
    while (atomic_load(&shared->flushed) < trial)
        if (now() > end) {
            int is_there;
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
        }
    return memory[0] == mark && memory[bytes - 1] == mark;
}

void visible(const char *name) {
    static int trial;
    if (!shared) shared = shared_memory(sizeof *shared);
    if (!shared) {
        left_out(name, "the ranks map no memory together");
        return;
    }
    for (int s = 0; s < size_count; s++) {
        void *memory;
        size_t bytes = sizes[s];
        char *origin = buffer(bytes);
        int trials = samples_of(TRIALS), seen = 0;
        MPI_Win win = make_window(bytes, &memory);
        MPI_Win_lock_all(0, win);
        for (int i = 0; i < trials; i++) {
            unsigned char mark = (unsigned char)(i % 250 + 1);
            trial++;
            memset(origin, mark, bytes);
            MPI_Barrier(MPI_COMM_WORLD);
            if (rank == ORIGIN) {
                /* By then the target has left the barrier. */
                while (atomic_load(&shared->ready) < trial) {}
                MPI_Put(origin, (int)bytes, MPI_BYTE, TARGET, 0, (int)bytes, MPI_BYTE, win);
                MPI_Win_flush(TARGET, win);
                atomic_store(&shared->flushed, trial);
            } else {
                seen += look(memory, bytes, trial, mark);
            }
            MPI_Barrier(MPI_COMM_WORLD);
        }
        MPI_Bcast(&seen, 1, MPI_INT, TARGET, MPI_COMM_WORLD);
        for (int i = 0; i < trials; i++) push(i < seen ? 100 : 0, 0);
        report(&(struct row){name, bytes, "percent", 1, 0}, seen == trials ? RIGHT : WRONG, -1);
        MPI_Win_unlock_all(win);
        free_window(&win);
        free(origin);
    }
}
