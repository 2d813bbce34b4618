/* Partitioned messages (MPI-4.1 chapter 4): partitions become ready in any order and in any thread, and each end cuts as it
 * likes. */
#include <pthread.h>
#include <stdint.h>

#include "check.h"

static int next, last;

static int datum(int rank, int round, int i) { return 1000000 * (rank + 1) + 10000 * round + i; }

/* Sends to the next rank in `out` partitions and receives from the one before in `in`: `total` integers, in three rounds. */
static void ring(int out, int in, int total, int tag) {
    int *from = calloc((size_t)total + 1, sizeof *from), *to = calloc((size_t)total + 1, sizeof *to), flag, n;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    OK(MPI_Precv_init(to, in, total / in, MPI_INT, last, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
    OK(MPI_Psend_init(from, out, total / out, MPI_INT, next, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < total; i++) from[i] = datum(rank_, round, i), to[i] = -5;
        OK(MPI_Startall(2, requests));
        OK(MPI_Test(&requests[1], &flag, statuses));
        CHECK(!flag);
        /* The last first. */
        for (int i = out - 1; i >= 0; i--) OK(MPI_Pready(i, requests[1]));
        for (int i = in - 1; i >= 0; i--) {
            do OK(MPI_Parrived(requests[0], i, &flag));
            while (!flag);
            for (int k = i * (total / in); k < (i + 1) * (total / in); k++) CHECK(to[k] == datum(last, round, k));
        }
        OK(MPI_Waitall(2, requests, statuses));
        OK(MPI_Get_count(statuses, MPI_INT, &n));
        CHECK(n == total && statuses[0].MPI_SOURCE == last && statuses[0].MPI_TAG == tag);
        for (int k = 0; k < total; k++) CHECK(to[k] == datum(last, round, k));
        /* Of nothing under way, all has arrived. */
        OK(MPI_Parrived(requests[0], in - 1, &flag));
        CHECK(flag);
    }
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
    free(from), free(to);
}

/* What is not ready has not arrived, not even of nothing. */
static void one_by_one(int each) {
    int from[8] = {0}, to[8], flag;
    MPI_Request send, receive;
    OK(MPI_Psend_init(from, 4, each, MPI_INT, rank_, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
    OK(MPI_Precv_init(to, 4, each, MPI_INT, rank_, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &receive));
    for (int round = 0; round < 2; round++) {
        static const int order[] = {2, 0, 3, 1};
        int arrived[4] = {0};
        OK(MPI_Start(&receive));
        OK(MPI_Parrived(receive, 0, &flag));
        CHECK(!flag);
        OK(MPI_Start(&send));
        for (int i = 0; i < 4; i++) {
            for (int k = 0; k < 4; k++) {
                OK(MPI_Parrived(receive, k, &flag));
                CHECK(flag == arrived[k]);
            }
            for (int k = 0; k < each; k++) from[order[i] * each + k] = 100 * round + i;
            OK(MPI_Test(&receive, &flag, MPI_STATUS_IGNORE));
            CHECK(!flag);
            OK(MPI_Pready(order[i], send));
            arrived[order[i]] = 1;
            if (each > 0) {
                do OK(MPI_Parrived(receive, order[i], &flag));
                while (!flag);
                CHECK(to[order[i] * each] == 100 * round + i);
            }
        }
        OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
        OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
    }
    OK(MPI_Request_free(&send));
    OK(MPI_Request_free(&receive));
}

/* Two of the same tag meet in the order in which they were made, whatever order they start in; messages are others. */
static void order(void) {
    int from[2] = {10 * rank_, 10 * rank_ + 1}, to[2] = {-1, -1}, plain = 77, got = 0;
    MPI_Request sends[2], receives[2], message;
    for (int i = 0; i < 2; i++) {
        OK(MPI_Psend_init(&from[i], 1, 1, MPI_INT, next, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &sends[i]));
        OK(MPI_Precv_init(&to[i], 1, 1, MPI_INT, last, 4, MPI_COMM_WORLD, MPI_INFO_NULL, &receives[i]));
    }
    OK(MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &message));
    for (int i = 1; i >= 0; i--) {
        OK(MPI_Start(&sends[i]));
        OK(MPI_Pready_range(0, 0, sends[i]));
    }
    OK(MPI_Start(&receives[0]));
    OK(MPI_Wait(&receives[0], MPI_STATUS_IGNORE));
    CHECK(to[0] == 10 * last && to[1] == -1);
    OK(MPI_Start(&receives[1]));
    OK(MPI_Wait(&receives[1], MPI_STATUS_IGNORE));
    CHECK(to[1] == 10 * last + 1);
    OK(MPI_Waitall(2, sends, MPI_STATUSES_IGNORE));
    OK(MPI_Send(&plain, 1, MPI_INT, next, 4, MPI_COMM_WORLD));
    OK(MPI_Wait(&message, MPI_STATUS_IGNORE));
    CHECK(got == 77);
    for (int i = 0; i < 2; i++) {
        OK(MPI_Request_free(&sends[i]));
        OK(MPI_Request_free(&receives[i]));
    }
}

enum { THREADS = 4, EACH = 5, INTS = 600 };

struct piece {
    MPI_Request request;
    int thread;
};

static void *make_ready(void *extra) {
    const struct piece *piece = extra;
    int list[EACH];
    for (int i = 0; i < EACH; i++) list[i] = i * THREADS + piece->thread;
    OK(MPI_Pready_list(EACH, list, piece->request));
    return NULL;
}

/* Several threads, and a datatype with gaps at the receiver. */
static void threads(void) {
    static int from[THREADS * EACH * INTS], to[2 * THREADS * EACH * INTS];
    MPI_Request send, receive;
    MPI_Datatype gapped;
    pthread_t all[THREADS];
    struct piece pieces[THREADS];
    OK(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &gapped));
    OK(MPI_Type_commit(&gapped));
    OK(MPI_Psend_init(from, THREADS * EACH, INTS, MPI_INT, next, 8, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
    OK(MPI_Precv_init(to, 3, THREADS * EACH * INTS / 3, gapped, last, 8, MPI_COMM_WORLD, MPI_INFO_NULL, &receive));
    OK(MPI_Type_free(&gapped));
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < THREADS * EACH * INTS; i++) from[i] = datum(rank_, round, i);
        for (int i = 0; i < 2 * THREADS * EACH * INTS; i++) to[i] = -5;
        OK(MPI_Start(&receive));
        OK(MPI_Start(&send));
        for (int i = 0; i < THREADS; i++) {
            pieces[i] = (struct piece){send, i};
            CHECK(pthread_create(&all[i], NULL, make_ready, &pieces[i]) == 0);
        }
        OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
        OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
        for (int i = 0; i < THREADS; i++) CHECK(pthread_join(all[i], NULL) == 0);
        for (int i = 0; i < THREADS * EACH * INTS; i++)
            CHECK(to[2 * i] == datum(last, round, i) && to[2 * i + 1] == -5);
    }
    OK(MPI_Request_free(&send));
    OK(MPI_Request_free(&receive));
}

static void nobody(void) {
    int data[2] = {1, 2}, flag;
    MPI_Request request;
    MPI_Status status;
    OK(MPI_Psend_init(data, 2, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    OK(MPI_Start(&request));
    OK(MPI_Pready_range(0, 1, request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&request));
    OK(MPI_Precv_init(data, 2, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    OK(MPI_Start(&request));
    OK(MPI_Parrived(request, 1, &flag));
    OK(MPI_Wait(&request, &status));
    CHECK(flag && status.MPI_SOURCE == MPI_PROC_NULL && data[1] == 2);
    OK(MPI_Request_free(&request));
    OK(MPI_Parrived(MPI_REQUEST_NULL, 0, &flag));
    CHECK(flag);
}

#define SEND(buffer, n, each, type, to, tag) \
    MPI_Psend_init(buffer, n, each, type, to, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &request)
#define RECEIVE(buffer, n, each, type, from, tag) \
    MPI_Precv_init(buffer, n, each, type, from, tag, MPI_COMM_WORLD, MPI_INFO_NULL, &request)

static void wrong(void) {
    int data[4] = {0}, room[4], flag;
    MPI_Request request = MPI_REQUEST_NULL, receive, plain;
    FAILS(SEND(data, -1, 1, MPI_INT, 0, 0), MPI_ERR_ARG);
    FAILS(SEND(data, 1, -1, MPI_INT, 0, 0), MPI_ERR_COUNT);
    FAILS(SEND(data, 1, 1, MPI_DATATYPE_NULL, 0, 0), MPI_ERR_TYPE);
    FAILS(SEND(data, 1, 1, MPI_INT, size_, 0), MPI_ERR_RANK);
    FAILS(SEND(data, 1, 1, MPI_INT, -7, 0), MPI_ERR_RANK);
    FAILS(SEND(data, 1, 1, MPI_INT, 0, -1), MPI_ERR_TAG);
    FAILS(RECEIVE(data, 1, 1, MPI_INT, MPI_ANY_SOURCE, 0), MPI_ERR_RANK);
    FAILS(RECEIVE(data, 1, 1, MPI_INT, 0, MPI_ANY_TAG), MPI_ERR_TAG);
    FAILS(RECEIVE(data, 1, 1, MPI_DATATYPE_NULL, 0, 0), MPI_ERR_TYPE);
    FAILS(MPI_Psend_init(data, 1, 1, MPI_INT, 0, 0, MPI_COMM_NULL, MPI_INFO_NULL, &request), MPI_ERR_COMM);
    /* The count has 64 bits in the only form that there is. */
    FAILS(MPI_Psend_init(data, 1, -((MPI_Count)1 << 32), MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request), MPI_ERR_COUNT);
    FAILS(MPI_Psend_init(data, 1, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, (MPI_Info)(intptr_t)77, &request), MPI_ERR_INFO);
    FAILS(MPI_Psend_init(data, 1, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, NULL), MPI_ERR_ARG);
    OK(SEND(data, 4, 1, MPI_INT, rank_, 0));
    OK(MPI_Precv_init(room, 2, 2, MPI_INT, rank_, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &receive));
    FAILS(MPI_Pready(0, request), MPI_ERR_REQUEST);
    OK(MPI_Start(&request));
    FAILS(MPI_Start(&request), MPI_ERR_REQUEST);
    FAILS(MPI_Pready(4, request), MPI_ERR_ARG);
    FAILS(MPI_Pready(-1, request), MPI_ERR_ARG);
    FAILS(MPI_Pready_range(1, 0, request), MPI_ERR_ARG);
    FAILS(MPI_Pready_range(4, 5, request), MPI_ERR_ARG);
    FAILS(MPI_Pready_list(-1, data, request), MPI_ERR_ARG);
    FAILS(MPI_Pready_list(1, NULL, request), MPI_ERR_ARG);
    FAILS(MPI_Parrived(request, 0, &flag), MPI_ERR_REQUEST);
    OK(MPI_Pready(0, request));
    FAILS(MPI_Pready(0, request), MPI_ERR_ARG);
    OK(MPI_Start(&receive));
    FAILS(MPI_Pready(0, receive), MPI_ERR_REQUEST);
    FAILS(MPI_Parrived(receive, 2, &flag), MPI_ERR_ARG);
    FAILS(MPI_Parrived(receive, 0, NULL), MPI_ERR_ARG);
    OK(MPI_Pready_range(1, 3, request));
    OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    FAILS(MPI_Pready(1, request), MPI_ERR_REQUEST);
    OK(MPI_Request_free(&request));
    OK(MPI_Request_free(&receive));
    FAILS(MPI_Pready(0, MPI_REQUEST_NULL), MPI_ERR_REQUEST);
    OK(MPI_Irecv(data, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &plain));
    FAILS(MPI_Pready(0, plain), MPI_ERR_REQUEST);
    FAILS(MPI_Parrived(plain, 0, &flag), MPI_ERR_REQUEST);
    OK(MPI_Wait(&plain, MPI_STATUS_IGNORE));
    /* More than there is room for. */
    OK(SEND(data, 4, 1, MPI_INT, rank_, 1));
    OK(MPI_Precv_init(room, 2, 1, MPI_INT, rank_, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &receive));
    OK(MPI_Start(&receive));
    OK(MPI_Start(&request));
    OK(MPI_Pready_range(0, 3, request));
    FAILS(MPI_Wait(&receive, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&request));
    OK(MPI_Request_free(&receive));
}

int main(void) {
    int provided;
    OK(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size_));
    errors_return();
    next = (rank_ + 1) % size_, last = (rank_ + size_ - 1) % size_;
    static const int cuts[][3] = {{1, 1, 1}, {4, 4, 8}, {1, 6, 12}, {6, 1, 12}, {3, 7, 2100}, {7, 3, 210000}, {64, 8, 640}};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) ring(cuts[i][0], cuts[i][1], cuts[i][2], (int)(i % 2));
    one_by_one(2);
    one_by_one(0);
    order();
    threads();
    nobody();
    wrong();
    return end();
}
