/* Barriers of more communicators than there are signal lines for, made and freed meanwhile, among other collectives, by ranks that are
 * out of step: who leaves a barrier finds that all have entered it. */
#include <stdint.h>
#include <time.h>
#include "check.h"

enum { COMMS = 40, ROUNDS = 250, LATE = 50 };

/* Of each communicator: how often its ranks have come, counted at rank 0 of the world. */
static int64_t *counts;
static MPI_Comm comms[COMMS];
static int64_t passed[COMMS];
static MPI_Win win;

static unsigned draw(uint64_t *state, unsigned below) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(*state >> 33) % below;
}

static void make(int c, uint64_t *common) {
    /* The world's order, the opposite one, halves of it. */
    switch (draw(common, 3)) {
    case 0: OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[c])); break;
    case 1: OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -rank_, &comms[c])); break;
    default: OK(MPI_Comm_split(MPI_COMM_WORLD, rank_ % 2, rank_, &comms[c]));
    }
}

/* Each half of the world counts by itself. */
static MPI_Aint counter(int c) { return 2 * c + rank_ % 2; }

static void come(int c, int64_t one) {
    int64_t before;
    OK(MPI_Fetch_and_op(&one, &before, MPI_INT64_T, 0, counter(c), MPI_SUM, win));
    OK(MPI_Win_flush(0, win));
}

static void pass(int c) {
    int same, members = 0;
    MPI_Group all, own, halves;
    come(c, 1);
    OK(MPI_Barrier(comms[c]));
    passed[c]++;
    /* Members of this rank's half of the world. */
    int64_t now, none = 0;
    OK(MPI_Fetch_and_op(&none, &now, MPI_INT64_T, 0, counter(c), MPI_NO_OP, win));
    OK(MPI_Win_flush(0, win));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Comm_group(comms[c], &own));
    OK(MPI_Group_intersection(all, own, &halves));
    OK(MPI_Group_size(halves, &same));
    for (int i = 0; i < same; i++) {
        int world;
        OK(MPI_Group_translate_ranks(halves, 1, &i, all, &world));
        members += world % 2 == rank_ % 2;
    }
    CHECK(now >= passed[c] * members);
    /* Nobody can have come to the barrier after the next, which this rank has yet to enter. */
    CHECK(now <= (passed[c] + 1) * members);
    OK(MPI_Group_free(&all));
    OK(MPI_Group_free(&own));
    OK(MPI_Group_free(&halves));
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    uint64_t common = 7, own = 1000003u * (unsigned)(rank_ + 1);
    OK(MPI_Win_allocate(2 * COMMS * sizeof(int64_t), sizeof(int64_t), MPI_INFO_NULL, MPI_COMM_WORLD, &counts, &win));
    for (int i = 0; i < 2 * COMMS; i++) counts[i] = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, win));
    for (int c = 0; c < COMMS; c++) make(c, &common);
    for (int round = 0; round < ROUNDS; round++) {
        int c = (int)draw(&common, COMMS), value = round, turns = 1 + (int)draw(&common, 3), what = (int)draw(&common, 8);
        for (unsigned spin = draw(&own, LATE) ? 0 : draw(&own, 1000000); spin > 0; spin--) __asm__ volatile("" ::: "memory");
        if (draw(&own, 200) == 0) nanosleep(&(struct timespec){0, 7000000}, NULL);
        while (turns-- > 0) pass(c);
        if (what == 0) {
            /* Its context is no other's; its lines may be. */
            OK(MPI_Comm_free(&comms[c]));
            make(c, &common);
            /* Halves and wholes count differently. */
            OK(MPI_Barrier(MPI_COMM_WORLD));
            if (rank_ == 0)
                for (int half = 0; half < 2; half++) {
                    int64_t zero = 0, old;
                    OK(MPI_Fetch_and_op(&zero, &old, MPI_INT64_T, 0, 2 * c + half, MPI_REPLACE, win));
                    OK(MPI_Win_flush(0, win));
                }
            passed[c] = 0;
            OK(MPI_Barrier(MPI_COMM_WORLD));
        } else if (what == 1) {
            OK(MPI_Bcast(&value, 1, MPI_INT, 0, comms[c]));
            CHECK(value == round);
        } else if (what == 2) {
            MPI_Request request;
            OK(MPI_Ibarrier(comms[c], &request));
            pass(c);
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        }
    }
    OK(MPI_Win_unlock_all(win));
    for (int c = 0; c < COMMS; c++) OK(MPI_Comm_free(&comms[c]));
    OK(MPI_Win_free(&win));
    return end();
}
