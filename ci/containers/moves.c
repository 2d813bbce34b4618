// moves window|messages|created: moves data between all ranks, each way that a program may, and checks every byte.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 400 * 1024, MOST = 64 };
static int rank, size, wrong;

static unsigned char value(int from, int to, int at) { return (unsigned char)(from * 31 + to * 7 + at * 3 + at / 251); }

static void fill(unsigned char *data, int from, int to) {
    for (int at = 0; at < BYTES; at++) data[at] = value(from, to, at);
}

static void check(const unsigned char *data, int from, int to, const char *what) {
    for (int at = 0; at < BYTES; at++)
        if (data[at] != value(from, to, at)) {
            fprintf(stderr, "rank %d, %s from %d to %d: byte %d is %d, not %d\n", rank, what, from, to, at, data[at],
                    value(from, to, at));
            wrong = 1;
            return;
        }
}

// 400 KB to the right and from the left: blocking, without waiting, and synchronous.
static void messages(unsigned char *out, unsigned char *in) {
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    fill(out, rank, right);
    MPI_Sendrecv(out, BYTES, MPI_BYTE, right, 1, in, BYTES, MPI_BYTE, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check(in, left, rank, "sendrecv");
    memset(in, 0, BYTES);
    MPI_Request requests[2];
    MPI_Irecv(in, BYTES, MPI_BYTE, left, 2, MPI_COMM_WORLD, &requests[0]);
    MPI_Issend(out, BYTES, MPI_BYTE, right, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    check(in, left, rank, "issend");
    if (rank == 0) fill(in, 0, 0);
    MPI_Bcast(in, BYTES, MPI_BYTE, 0, MPI_COMM_WORLD);
    check(in, 0, 0, "bcast");
}

// Every rank puts to its right, gets from its left, and adds to words of all.
static void window(MPI_Win win, unsigned char *base, unsigned char *buffer, const char *what) {
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    memset(base, 0, BYTES + MOST);
    MPI_Barrier(MPI_COMM_WORLD);
    fill(buffer, rank, right);
    MPI_Win_fence(0, win);
    MPI_Put(buffer, BYTES, MPI_BYTE, right, 0, BYTES, MPI_BYTE, win);
    MPI_Win_fence(0, win);
    check(base, left, rank, what);
    memset(buffer, 0, BYTES);
    MPI_Win_lock(MPI_LOCK_SHARED, left, 0, win);
    MPI_Get(buffer, BYTES, MPI_BYTE, left, 0, BYTES, MPI_BYTE, win);
    MPI_Win_unlock(left, win);
    check(buffer, (left + size - 1) % size, left, what);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    long one = 1, before;
    for (int target = 0; target < size; target++) {
        for (int i = 0; i < 100; i++) MPI_Accumulate(&one, 1, MPI_LONG, target, BYTES, 1, MPI_LONG, MPI_SUM, win);
        MPI_Fetch_and_op(&one, &before, MPI_LONG, target, BYTES, MPI_SUM, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    MPI_Get(&before, 1, MPI_LONG, rank, BYTES, 1, MPI_LONG, win);
    MPI_Win_unlock(rank, win);
    if (before != 101L * size) {
        fprintf(stderr, "rank %d, %s: %ld, not %ld\n", rank, what, before, 101L * size);
        wrong = 1;
    }
    MPI_Win_free(&win);
}

int main(int argc, char **argv) {
    MPI_Win win;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *what = argc > 1 ? argv[1] : "";
    unsigned char *buffer = malloc(BYTES), *base = malloc(BYTES + MOST), *shared;
    if (!strcmp(what, "messages")) {
        messages(buffer, base);
    } else if (!strcmp(what, "window")) {
        unsigned char *allocated;
        MPI_Win_allocate(BYTES + MOST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &allocated, &win);
        window(win, allocated, buffer, "allocated window");
        MPI_Comm node;
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
        int of_node;
        MPI_Comm_size(node, &of_node);
        MPI_Win_allocate_shared(BYTES + MOST, 1, MPI_INFO_NULL, node, &shared, &win);
        if (of_node == size) window(win, shared, buffer, "shared window");
        else MPI_Win_free(&win);
    } else if (!strcmp(what, "created")) {
        MPI_Info info;
        MPI_Info_create(&info);
        const char *ways[] = {"auto", "share", "attach"};
        for (int i = 0; i < 3; i++) {
            MPI_Info_set(info, "transom_created", ways[i]);
            MPI_Win_create(base, BYTES + MOST, 1, info, MPI_COMM_WORLD, &win);
            window(win, base, buffer, ways[i]);
        }
        MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        MPI_Aint own, left;
        MPI_Win_attach(win, base, BYTES);
        MPI_Get_address(base, &own);
        MPI_Sendrecv(&own, 1, MPI_AINT, (rank + 1) % size, 0, &left, 1, MPI_AINT, (rank + size - 1) % size, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        fill(base, rank, rank);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_lock_all(0, win);
        int from = (rank + size - 1) % size;
        MPI_Get(buffer, BYTES, MPI_BYTE, from, left, BYTES, MPI_BYTE, win);
        MPI_Win_unlock_all(win);
        check(buffer, from, from, "dynamic window");
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_detach(win, base);
        MPI_Win_free(&win);
    } else {
        fprintf(stderr, "usage: moves window|messages|created\n");
        wrong = 1;
    }
    int any;
    MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0 && !any) puts("right");
    MPI_Finalize();
    return any;
}
