/* Messages of all lengths and kinds of sends, received by all kinds of receives in an order of the receiver's: those with one tag come in
 * the order in which they were sent, whole, and with their status (MPI-4.1 §3.5). */
#include <time.h>
#include "check.h"

enum { BATCHES = 300, BATCH = 16, TAGS = 3, LONGEST = 300000 };
static const int lengths[] = {0, 1, 8, 16, 17, 64, 900, 5000, 17000, LONGEST};

static unsigned state;
static unsigned any(unsigned most) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % most;
}

struct message {
    int tag, length, kind;
};
static struct message batch[BATCH];
static unsigned char out[BATCH][LONGEST], in[LONGEST];

/* What both know of a batch. */
static void make(unsigned seed) {
    state = seed;
    for (int i = 0; i < BATCH; i++) {
        int length = lengths[any(sizeof lengths / sizeof *lengths)];
        batch[i] = (struct message){(int)any(TAGS), length, (int)any(4)};
    }
}

static void pause_for(unsigned microseconds) {
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - start.tv_sec) * 1000000 + (now.tv_nsec - start.tv_nsec) / 1000 < microseconds);
}

static void send_batch(int to) {
    MPI_Request requests[BATCH];
    int n = 0;
    for (int i = 0; i < BATCH; i++) {
        struct message m = batch[i];
        memset(out[i], i + 1, m.length);
        if (any(4) == 0) pause_for(any(20));
        if (m.kind == 0 && m.length <= 1000) MPI_Send(out[i], m.length, MPI_BYTE, to, m.tag, MPI_COMM_WORLD);
        else if (m.kind == 1) MPI_Issend(out[i], m.length, MPI_BYTE, to, m.tag, MPI_COMM_WORLD, &requests[n++]);
        else MPI_Isend(out[i], m.length, MPI_BYTE, to, m.tag, MPI_COMM_WORLD, &requests[n++]);
    }
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
}

static void receive_one(int from, int tag, MPI_Status *status) {
    MPI_Request request;
    unsigned char none;
    switch (any(5)) {
    case 0:
        /* Of others the next batch may be under way. */
        MPI_Recv(in, LONGEST, MPI_BYTE, size_ == 2 ? MPI_ANY_SOURCE : from, tag, MPI_COMM_WORLD, status);
        break;
    case 1:
        MPI_Irecv(in, LONGEST, MPI_BYTE, from, tag, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, status);
        break;
    case 2:
        MPI_Sendrecv(&none, 0, MPI_BYTE, MPI_PROC_NULL, 0, in, LONGEST, MPI_BYTE, from, tag, MPI_COMM_WORLD, status);
        break;
    default: MPI_Recv(in, LONGEST, MPI_BYTE, from, tag, MPI_COMM_WORLD, status);
    }
}

static void receive_batch(int from) {
    int taken[BATCH] = {0};
    /* A receive that no message of the batches matches keeps others from the shortest way. */
    MPI_Request other = MPI_REQUEST_NULL;
    if (any(3) == 0) MPI_Irecv(in, 0, MPI_BYTE, from, TAGS, MPI_COMM_WORLD, &other);
    for (int left = BATCH; left > 0; left--) {
        int tag = (int)any(TAGS + 1), next = 0, count;
        while (next < BATCH && (taken[next] || (tag < TAGS && batch[next].tag != tag))) next++;
        if (next == BATCH) {
            left++; /* none with that tag is left */
            continue;
        }
        MPI_Status status;
        memset(in, 0, LONGEST);
        if (any(4) == 0) pause_for(any(20));
        receive_one(from, tag < TAGS ? tag : MPI_ANY_TAG, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        CHECK(status.MPI_SOURCE == from && status.MPI_TAG == batch[next].tag && count == batch[next].length);
        for (int i = 0; i < count; i++) CHECK(in[i] == next + 1);
        CHECK(count == LONGEST || in[count] == 0);
        taken[next] = 1;
    }
    if (other != MPI_REQUEST_NULL) {
        MPI_Cancel(&other);
        MPI_Wait(&other, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    for (int number = 0; number < BATCHES; number++) {
        int from = number % size_, to = (from + 1 + number / size_ % (size_ > 1 ? size_ - 1 : 1)) % size_;
        if (from == to) continue;
        make((unsigned)number * 7919u + 1u);
        state += (unsigned)rank_;
        if (rank_ == from) send_batch(to);
        if (rank_ == to) receive_batch(from);
    }
    return end();
}
