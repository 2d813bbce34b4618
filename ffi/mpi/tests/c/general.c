/* Generalised requests (MPI-4.1 §13.2): which of the program's functions are called when, and what calls return. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdint.h>
#include <time.h>

#include "check.h"

/* What the functions of one request are to return, and how often they were called. */
struct state {
    int query_code, free_code, cancel_code, queried, freed, cancelled, complete;
    MPI_Request request;
};

static int query(void *extra, MPI_Status *status) {
    struct state *state = extra;
    state->queried++;
    status->MPI_SOURCE = 3, status->MPI_TAG = 7, status->MPI_ERROR = 99;
    MPI_Status_set_elements(status, MPI_INT, 5);
    MPI_Status_set_cancelled(status, state->cancelled > 0);
    return state->query_code;
}

static int release(void *extra) {
    struct state *state = extra;
    state->freed++;
    return state->free_code;
}

/* Completes what is not complete, as a program would do. */
static int cancel(void *extra, int complete) {
    struct state *state = extra;
    state->cancelled++, state->complete = complete;
    if (!complete && state->cancel_code == MPI_SUCCESS) OK(MPI_Grequest_complete(state->request));
    return state->cancel_code;
}

static void begin_one(struct state *state) {
    memset(state, 0, sizeof *state);
    OK(MPI_Grequest_start(query, release, cancel, state, &state->request));
}

static void check_status(const MPI_Status *status, int error) {
    int n, cancelled;
    OK(MPI_Get_count(status, MPI_INT, &n));
    OK(MPI_Test_cancelled(status, &cancelled));
    CHECK(status->MPI_SOURCE == 3 && status->MPI_TAG == 7 && n == 5 && !cancelled && status->MPI_ERROR == error);
}

static void wait_and_test(void) {
    struct state state;
    MPI_Status status = {.MPI_ERROR = -4};
    MPI_Request copy;
    int flag = 1;
    begin_one(&state);
    OK(MPI_Test(&state.request, &flag, &status));
    CHECK(!flag && state.queried == 0);
    OK(MPI_Request_get_status(state.request, &flag, &status));
    CHECK(!flag && state.queried == 0);
    copy = state.request;
    OK(MPI_Grequest_complete(state.request));
    FAILS(MPI_Grequest_complete(state.request), MPI_ERR_REQUEST);
    /* Looking asks, and frees nothing. */
    OK(MPI_Request_get_status(state.request, &flag, &status));
    CHECK(flag && state.queried == 1 && state.freed == 0);
    check_status(&status, -4);
    OK(MPI_Test(&state.request, &flag, &status));
    CHECK(flag && state.request == MPI_REQUEST_NULL && state.queried == 2 && state.freed == 1);
    check_status(&status, -4);
    FAILS(MPI_Grequest_complete(copy), MPI_ERR_REQUEST);
    begin_one(&state);
    OK(MPI_Grequest_complete(state.request));
    OK(MPI_Wait(&state.request, MPI_STATUS_IGNORE));
    CHECK(state.queried == 1 && state.freed == 1);
}

static void *complete_later(void *extra) {
    struct state *state = extra;
    nanosleep(&(struct timespec){0, 20000000}, NULL);
    OK(MPI_Grequest_complete(state->request));
    return NULL;
}

/* Another thread completes what this one waits for, beside a message. */
static void wait_for_a_thread(void) {
    struct state state;
    pthread_t thread;
    MPI_Request requests[3];
    MPI_Status statuses[3];
    int data = rank_, got = -1, index, n, indices[3];
    for (int round = 0; round < 3; round++) {
        begin_one(&state);
        CHECK(pthread_create(&thread, NULL, complete_later, &state) == 0);
        requests[0] = MPI_REQUEST_NULL, requests[1] = state.request;
        if (round == 0) {
            OK(MPI_Waitany(2, requests, &index, statuses));
            CHECK(index == 1);
            check_status(statuses, statuses->MPI_ERROR);
        } else if (round == 1) {
            OK(MPI_Irecv(&got, 1, MPI_INT, (rank_ + size_ - 1) % size_, 5, MPI_COMM_WORLD, &requests[0]));
            OK(MPI_Isend(&data, 1, MPI_INT, (rank_ + 1) % size_, 5, MPI_COMM_WORLD, &requests[2]));
            OK(MPI_Waitall(3, requests, statuses));
            CHECK(got == (rank_ + size_ - 1) % size_ && statuses[0].MPI_TAG == 5);
            check_status(&statuses[1], statuses[1].MPI_ERROR);
        } else {
            OK(MPI_Waitsome(2, requests, &n, indices, statuses));
            CHECK(n == 1 && indices[0] == 1);
        }
        CHECK(requests[1] == MPI_REQUEST_NULL && state.queried == 1 && state.freed == 1);
        CHECK(pthread_join(thread, NULL) == 0);
    }
}

/* Whichever comes last of freeing and completing releases. */
static void freed(void) {
    struct state state;
    MPI_Request copy;
    begin_one(&state);
    copy = state.request;
    OK(MPI_Request_free(&state.request));
    CHECK(state.request == MPI_REQUEST_NULL && state.freed == 0);
    OK(MPI_Grequest_complete(copy));
    CHECK(state.freed == 1 && state.queried == 0);
    FAILS(MPI_Grequest_complete(copy), MPI_ERR_REQUEST);
    begin_one(&state);
    OK(MPI_Grequest_complete(state.request));
    CHECK(state.freed == 0);
    OK(MPI_Request_free(&state.request));
    CHECK(state.freed == 1 && state.queried == 0);
}

static void taken_back(void) {
    struct state state;
    MPI_Status status;
    int cancelled;
    begin_one(&state);
    OK(MPI_Cancel(&state.request));
    CHECK(state.cancelled == 1 && !state.complete && state.freed == 0);
    OK(MPI_Cancel(&state.request));
    CHECK(state.cancelled == 2 && state.complete);
    OK(MPI_Wait(&state.request, &status));
    OK(MPI_Test_cancelled(&status, &cancelled));
    CHECK(cancelled && state.freed == 1);
    begin_one(&state);
    state.cancel_code = MPI_ERR_PENDING;
    FAILS(MPI_Cancel(&state.request), MPI_ERR_PENDING);
    OK(MPI_Grequest_complete(state.request));
    OK(MPI_Wait(&state.request, MPI_STATUS_IGNORE));
}

/* The functions' errors are the calls'. */
static void errors(void) {
    struct state states[2];
    MPI_Status statuses[2];
    MPI_Request requests[2];
    int flag;
    begin_one(&states[0]);
    states[0].query_code = MPI_ERR_BUFFER;
    OK(MPI_Grequest_complete(states[0].request));
    FAILS(MPI_Request_get_status(states[0].request, &flag, statuses), MPI_ERR_BUFFER);
    FAILS(MPI_Wait(&states[0].request, statuses), MPI_ERR_BUFFER);
    CHECK(states[0].freed == 1 && states[0].request == MPI_REQUEST_NULL);
    begin_one(&states[0]);
    states[0].query_code = MPI_ERR_BUFFER, states[0].free_code = MPI_ERR_TAG;
    OK(MPI_Grequest_complete(states[0].request));
    FAILS(MPI_Test(&states[0].request, &flag, MPI_STATUS_IGNORE), MPI_ERR_TAG);
    for (int i = 0; i < 2; i++) {
        begin_one(&states[i]);
        requests[i] = states[i].request;
        OK(MPI_Grequest_complete(requests[i]));
    }
    states[1].free_code = MPI_ERR_TAG;
    FAILS(MPI_Waitall(2, requests, statuses), MPI_ERR_IN_STATUS);
    check_status(&statuses[0], MPI_SUCCESS);
    CHECK(class_of(statuses[1].MPI_ERROR) == MPI_ERR_TAG && states[1].freed == 1);
}

static void wrong(void) {
    MPI_Request request = MPI_REQUEST_NULL;
    int data = 0;
    FAILS(MPI_Grequest_start(NULL, release, cancel, NULL, &request), MPI_ERR_ARG);
    FAILS(MPI_Grequest_start(query, NULL, cancel, NULL, &request), MPI_ERR_ARG);
    FAILS(MPI_Grequest_start(query, release, NULL, NULL, &request), MPI_ERR_ARG);
    FAILS(MPI_Grequest_start(query, release, cancel, NULL, NULL), MPI_ERR_ARG);
    FAILS(MPI_Grequest_complete(MPI_REQUEST_NULL), MPI_ERR_REQUEST);
    OK(MPI_Irecv(&data, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request));
    FAILS(MPI_Grequest_complete(request), MPI_ERR_REQUEST);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    struct state state;
    begin_one(&state);
    FAILS(MPI_Start(&state.request), MPI_ERR_REQUEST);
    OK(MPI_Grequest_complete(state.request));
    OK(MPI_Request_free(&state.request));
}

int main(void) {
    int provided;
    OK(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided));
    CHECK(provided == MPI_THREAD_MULTIPLE);
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size_));
    errors_return();
    wait_and_test();
    wait_for_a_thread();
    freed();
    taken_back();
    errors();
    wrong();
    return end();
}
