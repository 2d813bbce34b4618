/* Two-sided messages and collectives, to compare one-sided communication with. */
#include "rma.h"
#include <stdlib.h>
#include <string.h>

struct work {
    int bytes;
    char *out, *in;
};

static void ping_pong(void *context, long repeats) {
    const struct work *w = context;
    for (long turn = 0; turn < repeats; turn++) {
        if (rank == ORIGIN) MPI_Send(w->out, w->bytes, MPI_BYTE, TARGET, 5, MPI_COMM_WORLD);
        MPI_Recv(w->in, w->bytes, MPI_BYTE, 1 - rank, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == TARGET) MPI_Send(w->out, w->bytes, MPI_BYTE, ORIGIN, 5, MPI_COMM_WORLD);
    }
}

/* Around a ring. */
static void exchange(void *context, long repeats) {
    const struct work *w = context;
    int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    for (long turn = 0; turn < repeats; turn++) {
        MPI_Request requests[2];
        MPI_Irecv(w->in, w->bytes, MPI_BYTE, before, 6, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(w->out, w->bytes, MPI_BYTE, next, 6, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
}

static void broadcast(void *context, long repeats) {
    const struct work *w = context;
    for (long turn = 0; turn < repeats; turn++) MPI_Bcast(w->out, w->bytes, MPI_BYTE, ORIGIN, MPI_COMM_WORLD);
}

static void allreduce(void *context, long repeats) {
    const struct work *w = context;
    for (long turn = 0; turn < repeats; turn++)
        MPI_Allreduce(w->out, w->in, w->bytes / (int)sizeof(double), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void iallreduce(void *context, long repeats) {
    const struct work *w = context;
    for (long turn = 0; turn < repeats; turn++) {
        MPI_Request request;
        MPI_Iallreduce(w->out, w->in, w->bytes / (int)sizeof(double), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

static void all_to_all(void *context, long repeats) {
    const struct work *w = context;
    for (long turn = 0; turn < repeats; turn++)
        MPI_Alltoall(w->out, w->bytes, MPI_BYTE, w->in, w->bytes, MPI_BYTE, MPI_COMM_WORLD);
}

void messages(const char *name) {
    static const struct {
        const char *name;
        repeat loop;
        size_t multiple;
        double factor;
    } known[] = {
        /* Half of there and back. */
        {"ping-pong", ping_pong, 1, 0.5}, {"message-exchange", exchange, 1, 0}, {"broadcast", broadcast, 1, 0},
        {"allreduce", allreduce, sizeof(double), 0}, {"iallreduce", iallreduce, sizeof(double), 0},
        {"all-to-all", all_to_all, 1, 0},
    };
    for (size_t i = 0; i < COUNT(known); i++)
        for (int s = 0; !strcmp(known[i].name, name) && s < size_count; s++) {
            if (sizes[s] % known[i].multiple) continue;
            size_t blocks = sizes[s] * (size_t)ranks;
            struct work w = {(int)sizes[s], buffer(blocks), buffer(blocks)};
            fill(w.out, blocks);
            struct row row = {name, sizes[s], "time", 1, known[i].factor};
            measure(&row, TOGETHER, known[i].loop, &w);
            report(&row, UNSEEN, -1);
            free(w.out);
            free(w.in);
        }
}
