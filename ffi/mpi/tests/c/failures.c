/* Jobs in which rank 1 dies and the others go on (transom run --on-failure notify). The first argument says in the midst of what. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <mpi-ext.h>

#include "check.h"

#if !defined OMPI_HAVE_MPI_EXT_ULFM || !defined OMPI_HAVE_MPI_EXT_FTMPI
#error "programs look for these names"
#endif

enum { VICTIM = 1, LONG = 1 << 18 };

static MPI_Comm world = MPI_COMM_WORLD;
static int *block;

static void die(void) { raise(SIGKILL); }

static void pause_ms(int ms) {
    struct timespec time = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&time, NULL);
}

/* All have come, and the one that dies knows that none is in a collective any more. */
static void settle(void) {
    int byte = 0;
    OK(MPI_Barrier(world));
    if (rank_ != VICTIM) {
        OK(MPI_Send(&byte, 1, MPI_INT, VICTIM, 7, world));
        return;
    }
    for (int i = 1; i < size_; i++) OK(MPI_Recv(&byte, 1, MPI_INT, MPI_ANY_SOURCE, 7, world, MPI_STATUS_IGNORE));
}

static void settle_and_die(void) {
    settle();
    if (rank_ == VICTIM) die();
}

static int size_of(MPI_Group group) {
    int size;
    OK(MPI_Group_size(group, &size));
    if (group != MPI_GROUP_EMPTY) OK(MPI_Group_free(&group));
    return size;
}

static int failures(MPI_Comm comm) {
    MPI_Group group;
    OK(MPIX_Comm_get_failed(comm, &group));
    return size_of(group);
}

static int acknowledged(MPI_Comm comm) {
    MPI_Group group;
    OK(MPIX_Comm_failure_get_acked(comm, &group));
    return size_of(group);
}

static void await_failure(void) {
    while (failures(world) == 0) pause_ms(1);
}

/* Those that live go on. */
static void go_on(void) {
    MPI_Comm living;
    int size, sum, one = 1, rank, got, errors;
    MPI_Errhandler handler;
    OK(MPIX_Comm_shrink(world, &living));
    OK(MPI_Comm_size(living, &size));
    OK(MPI_Comm_rank(living, &rank));
    CHECK(size == size_ - 1 && rank == rank_ - (rank_ > VICTIM));
    OK(MPI_Comm_get_errhandler(living, &handler));
    CHECK(handler == MPI_ERRORS_RETURN);
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, living));
    CHECK(sum == size && failures(living) == 0);
    OK(MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 3, &got, 1, MPI_INT, MPI_ANY_SOURCE, 3, living,
                    MPI_STATUS_IGNORE));
    CHECK(got == (rank + size - 1) % size);
    errors = MPI_Barrier(living);
    CHECK(errors == MPI_SUCCESS);
    OK(MPI_Comm_free(&living));
}

static void names(void) {
    char text[MPI_MAX_ERROR_STRING];
    int length, class_;
    const int codes[] = {MPIX_ERR_PROC_FAILED, MPIX_ERR_PROC_FAILED_PENDING, MPIX_ERR_REVOKED};
    const char *const known[] = {"MPIX_ERR_PROC_FAILED", "MPIX_ERR_PROC_FAILED_PENDING", "MPIX_ERR_REVOKED"};
    for (int i = 0; i < 3; i++) {
        OK(MPI_Error_class(codes[i], &class_));
        CHECK(class_ == codes[i]);
        OK(MPI_Error_string(codes[i], text, &length));
        CHECK(strstr(text, known[i]) != NULL && (size_t)length == strlen(text));
    }
}

static void *die_soon(void *ms) {
    pause_ms(*(int *)ms);
    die();
    return NULL;
}

/* In the midst of long collectives, which move the program's buffers: those are the program's again when it hears of the death. */
static void long_collectives(void) {
    int *to = block + LONG / 2, each = LONG / 2 / size_, ms = 1 + (int)(getpid() % 30), code = MPI_SUCCESS, flag;
    pthread_t thread;
    MPI_Request request;
    settle();
    if (rank_ == VICTIM) CHECK(pthread_create(&thread, NULL, die_soon, &ms) == 0);
    for (int turn = 0; code == MPI_SUCCESS; turn++) {
        int root = turn % size_;
        switch (turn % 5) {
        case 0: code = MPI_Iallreduce(block, to, LONG / 2, MPI_INT, MPI_SUM, world, &request); break;
        case 1: code = MPI_Ialltoall(block, each, MPI_INT, to, each, MPI_INT, world, &request); break;
        case 2: code = MPI_Iallgather(block, each, MPI_INT, to, each, MPI_INT, world, &request); break;
        case 3: code = MPI_Ireduce(block, to, LONG / 2, MPI_INT, MPI_SUM, root, world, &request); break;
        default: code = MPI_Ibcast(to, LONG / 2, MPI_INT, root, world, &request);
        }
        if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    CHECK(class_of(code) == MPIX_ERR_PROC_FAILED);
    memset(to, 90, sizeof *to * (LONG / 2));
    for (int i = 0; i < 20; i++, pause_ms(1)) OK(MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE));
    for (int i = 0; i < LONG / 2; i++) CHECK(to[i] == 0x5a5a5a5a);
    await_failure();
    go_on();
}

static void collectives(void) {
    int one = 1, sum;
    MPI_Request request;
    MPI_Comm other;
    names();
    settle_and_die();
    FAILS(MPI_Barrier(world), MPIX_ERR_PROC_FAILED);
    FAILS(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, world), MPIX_ERR_PROC_FAILED);
    await_failure();
    FAILS(MPI_Bcast(&one, 1, MPI_INT, VICTIM, world), MPIX_ERR_PROC_FAILED);
    FAILS(MPI_Alltoall(block, 1, MPI_INT, block + LONG / 2, 1, MPI_INT, world), MPIX_ERR_PROC_FAILED);
    FAILS(MPI_Comm_dup(world, &other), MPIX_ERR_PROC_FAILED);
    FAILS(MPI_Comm_split(world, 0, 0, &other), MPIX_ERR_PROC_FAILED);
    OK(MPI_Ibarrier(world, &request));
    FAILS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
    CHECK(request == MPI_REQUEST_NULL);
    go_on();
}

static int test(MPI_Request *request) {
    int ended = 0, code = MPI_SUCCESS;
    while (!ended && code == MPI_SUCCESS) code = MPI_Test(request, &ended, MPI_STATUS_IGNORE);
    return code;
}

static void messages(void) {
    int value, ended, index;
    MPI_Request requests[3];
    MPI_Status statuses[3];
    OK(MPI_Irecv(&value, 1, MPI_INT, VICTIM, 5, world, &requests[0]));
    OK(MPI_Isend(block, LONG, MPI_INT, VICTIM, 5, world, &requests[1]));
    OK(MPI_Irecv(&value, 1, MPI_INT, VICTIM, 5, world, &requests[2]));
    settle_and_die();
    FAILS(MPI_Recv(&value, 1, MPI_INT, VICTIM, 4, world, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
    FAILS(test(&requests[0]), MPIX_ERR_PROC_FAILED);
    FAILS(MPI_Wait(&requests[1], MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
    FAILS(MPI_Waitany(3, requests, &index, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
    CHECK(index == 2 && requests[2] == MPI_REQUEST_NULL);
    await_failure();
    FAILS(MPI_Send(&value, 1, MPI_INT, VICTIM, 4, world), MPIX_ERR_PROC_FAILED);
    FAILS(MPI_Ssend(&value, 1, MPI_INT, VICTIM, 4, world), MPIX_ERR_PROC_FAILED);
    FAILS(MPI_Send(block, LONG, MPI_INT, VICTIM, 4, world), MPIX_ERR_PROC_FAILED);
    FAILS(MPI_Probe(VICTIM, 4, world, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
    FAILS(MPI_Sendrecv(&value, 1, MPI_INT, VICTIM, 4, &index, 1, MPI_INT, VICTIM, 4, world, MPI_STATUS_IGNORE),
          MPIX_ERR_PROC_FAILED);
    /* Those that live talk on, beside what fails. */
    int right = (rank_ + 1) % size_, left = (rank_ + size_ - 1) % size_;
    if (right == VICTIM) right++;
    if (left == VICTIM) left--;
    OK(MPI_Irecv(&index, 1, MPI_INT, VICTIM, 6, world, &requests[0]));
    OK(MPI_Irecv(&value, 1, MPI_INT, left, 6, world, &requests[1]));
    OK(MPI_Isend(&rank_, 1, MPI_INT, right, 6, world, &requests[2]));
    FAILS(MPI_Waitall(3, requests, statuses), MPI_ERR_IN_STATUS);
    CHECK(statuses[0].MPI_ERROR == MPIX_ERR_PROC_FAILED && value == left);
    CHECK(statuses[1].MPI_ERROR == MPI_SUCCESS && statuses[2].MPI_ERROR == MPI_SUCCESS);
    OK(MPI_Iprobe(left, 9, world, &ended, MPI_STATUS_IGNORE));
    CHECK(!ended);
    go_on();
}

/* Messages of which the one that dies has sent no more than word: who matches them is told, and does not wait for others. */
static void half_sent(void) {
    /* Too long to be sent at once, and on shared memory too short to be fetched. */
    const char *transport = getenv("TRANSOM_TRANSPORT");
    const int later = transport && strcmp(transport, "shm") == 0 ? 67584 : (int)sizeof(int) * LONG;
    MPI_Request requests[8];
    MPI_Message message;
    int flag = 0, code = MPI_SUCCESS, sent = 0;
    for (int to = 0; rank_ == VICTIM && to < size_; to++) {
        if (to == VICTIM) continue;
        for (int tag = 5; tag < 7; tag++) OK(MPI_Isend(block, later, MPI_CHAR, to, tag, world, &requests[sent++]));
    }
    settle_and_die();
    await_failure();
    OK(MPI_Irecv(block, later, MPI_CHAR, MPI_ANY_SOURCE, 5, world, &requests[0]));
    FAILS(MPI_Wait(&requests[0], MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
    CHECK(requests[0] == MPI_REQUEST_NULL);
    OK(MPI_Mprobe(VICTIM, 6, world, &message, MPI_STATUS_IGNORE));
    OK(MPI_Imrecv(block, later, MPI_CHAR, &message, &requests[0]));
    FAILS(test(&requests[0]), MPIX_ERR_PROC_FAILED);
    CHECK(requests[0] == MPI_REQUEST_NULL);
    while (!flag && code == MPI_SUCCESS) code = MPI_Iprobe(VICTIM, 4, world, &flag, MPI_STATUS_IGNORE);
    CHECK(class_of(code) == MPIX_ERR_PROC_FAILED);
    FAILS(MPI_Improbe(MPI_ANY_SOURCE, 4, world, &flag, &message, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
    OK(MPIX_Comm_failure_ack(world));
    OK(MPI_Iprobe(MPI_ANY_SOURCE, 4, world, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag);
    go_on();
}

/* Receives from any source end by a death of which the program does not know yet, and go on when it does. */
static void any_source(void) {
    int value = -1, other = -1, got = 0, count;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    OK(MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 5, world, &requests[0]));
    OK(MPI_Irecv(&other, 1, MPI_INT, MPI_ANY_SOURCE, 6, world, &requests[1]));
    settle_and_die();
    FAILS(MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 4, world, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
    FAILS(MPI_Probe(MPI_ANY_SOURCE, 4, world, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
    FAILS(MPI_Sendrecv(&got, 1, MPI_INT, MPI_PROC_NULL, 4, &count, 1, MPI_INT, MPI_ANY_SOURCE, 4, world,
                       MPI_STATUS_IGNORE),
          MPIX_ERR_PROC_FAILED);
    for (int i = 0; i < 2; i++) {
        FAILS(MPI_Wait(&requests[0], MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED_PENDING);
        FAILS(test(&requests[0]), MPIX_ERR_PROC_FAILED_PENDING);
        FAILS(MPI_Waitall(2, requests, statuses), MPI_ERR_IN_STATUS);
        CHECK(statuses[0].MPI_ERROR == MPIX_ERR_PROC_FAILED_PENDING);
        CHECK(statuses[1].MPI_ERROR == MPIX_ERR_PROC_FAILED_PENDING);
        FAILS(MPI_Waitany(2, requests, &count, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED_PENDING);
        CHECK(requests[0] != MPI_REQUEST_NULL && requests[1] != MPI_REQUEST_NULL);
    }
    CHECK(acknowledged(world) == 0);
    OK(MPIX_Comm_ack_failed(world, 0, &count));
    CHECK(count == 0);
    if (rank_ == 0) {
        OK(MPIX_Comm_failure_ack(world));
    } else {
        OK(MPIX_Comm_ack_failed(world, 1, &count));
        CHECK(count == 1);
    }
    CHECK(acknowledged(world) == 1);
    OK(MPI_Test(&requests[0], &count, MPI_STATUS_IGNORE));
    CHECK(!count && requests[0] != MPI_REQUEST_NULL);
    for (int i = 0; i < 2; i++) OK(MPI_Cancel(&requests[i]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    go_on();
}

static void any_source_and_on(void) {
    int value = -1, flag = 0, count;
    MPI_Request request;
    OK(MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 5, world, &request));
    settle_and_die();
    FAILS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED_PENDING);
    OK(MPIX_Comm_failure_ack(world));
    OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag);
    /* Nobody sends before all have met the error. */
    OK(MPIX_Comm_agree(world, &flag));
    /* It was posted before, and is what the message comes to. */
    for (int to = 0; to < size_; to++) {
        if (to != VICTIM) OK(MPI_Send(&rank_, 1, MPI_INT, to, 5, world));
    }
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(request == MPI_REQUEST_NULL && value >= 0 && value != VICTIM);
    count = 1;
    while (count < size_ - 1) {
        OK(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 5, world, MPI_STATUS_IGNORE));
        count++;
    }
    go_on();
}

static void agree(void) {
    int flag = 12 | 1 << rank_;
    OK(MPIX_Comm_agree(world, &flag));
    CHECK(flag == 12);
    if (rank_ == VICTIM) die();
    flag = rank_ == 2 ? ~1 : ~0;
    FAILS(MPIX_Comm_agree(world, &flag), MPIX_ERR_PROC_FAILED);
    CHECK(flag == ~1);
    if (rank_ == 0) OK(MPIX_Comm_failure_ack(world));
    flag = 5;
    FAILS(MPIX_Comm_agree(world, &flag), MPIX_ERR_PROC_FAILED);
    OK(MPIX_Comm_failure_ack(world));
    flag = rank_ == 0 ? 5 : 7;
    OK(MPIX_Comm_agree(world, &flag));
    CHECK(flag == 5);
    go_on();
}

/* Several agreements at once, which end in any order while messages are exchanged. */
static void agree_meanwhile(void) {
    enum { MANY = 20 };
    int flags[MANY], sum = 0;
    MPI_Request requests[MANY], shrinking;
    MPI_Comm living;
    if (rank_ == VICTIM) {
        flags[0] = 7;
        OK(MPIX_Comm_iagree(world, &flags[0], &requests[0]));
        pause_ms(50);
        die();
    }
    for (int i = 0; i < MANY; i++) {
        flags[i] = 1 << i | 1 << (rank_ + MANY);
        OK(MPIX_Comm_iagree(world, &flags[i], &requests[i]));
    }
    OK(MPIX_Comm_ishrink(world, &living, &shrinking));
    /* The second and all later ones wait for the death. */
    int right = rank_ == 0 ? 2 : (rank_ + 1) % size_, left = rank_ == 2 ? 0 : (rank_ + size_ - 1) % size_, got;
    OK(MPI_Sendrecv(&rank_, 1, MPI_INT, right, 9, &got, 1, MPI_INT, left, 9, world, MPI_STATUS_IGNORE));
    CHECK(got == left);
    OK(MPI_Wait(&shrinking, MPI_STATUS_IGNORE));
    OK(MPI_Allreduce(&rank_, &sum, 1, MPI_INT, MPI_SUM, living));
    CHECK(sum == size_ * (size_ - 1) / 2 - VICTIM);
    for (int i = MANY - 1; i > 0; i--) {
        FAILS(MPI_Wait(&requests[i], MPI_STATUS_IGNORE), MPIX_ERR_PROC_FAILED);
        CHECK(requests[i] == MPI_REQUEST_NULL && flags[i] == 1 << i);
    }
    /* Whether the first was reached before the death is the same at all. */
    int first = class_of(MPI_Wait(&requests[0], MPI_STATUS_IGNORE)), least, most;
    CHECK(flags[0] == 1 && (first == MPI_SUCCESS || first == MPIX_ERR_PROC_FAILED));
    OK(MPI_Allreduce(&first, &least, 1, MPI_INT, MPI_MIN, living));
    OK(MPI_Allreduce(&first, &most, 1, MPI_INT, MPI_MAX, living));
    CHECK(least == most);
    OK(MPIX_Comm_failure_ack(world));
    flags[0] = 3;
    OK(MPIX_Comm_iagree(world, &flags[0], &requests[0]));
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    CHECK(flags[0] == 3);
    OK(MPI_Comm_free(&living));
    go_on();
}

/* Two threads agree on two communicators, not all in the same order. */
static MPI_Comm pair[2];

static void *agree_in_thread(void *which) {
    MPI_Comm comm = *(MPI_Comm *)which;
    for (int i = 0; i < 200; i++) {
        int flag = i | 1 << (rank_ + 8);
        OK(MPIX_Comm_agree(comm, &flag));
        CHECK(flag == i);
    }
    return NULL;
}

static void agree_in_threads(void) {
    pthread_t other;
    OK(MPI_Comm_dup(world, &pair[0]));
    OK(MPI_Comm_dup(world, &pair[1]));
    settle();
    CHECK(pthread_create(&other, NULL, agree_in_thread, &pair[rank_ % 2]) == 0);
    agree_in_thread(&pair[1 - rank_ % 2]);
    CHECK(pthread_join(other, NULL) == 0);
    if (rank_ == VICTIM) die();
    OK(MPI_Comm_free(&pair[0]));
    OK(MPI_Comm_free(&pair[1]));
    await_failure();
    OK(MPIX_Comm_failure_ack(world));
    go_on();
}

/* One revokes what the others wait on. */
static void is_useless(MPI_Comm comm) {
    int value = 0, flag, sum;
    MPI_Request request;
    MPI_Comm other;
    OK(MPIX_Comm_is_revoked(comm, &flag));
    CHECK(flag);
    FAILS(MPI_Send(&value, 1, MPI_INT, 0, 1, comm), MPIX_ERR_REVOKED);
    FAILS(MPI_Recv(&value, 1, MPI_INT, 0, 1, comm, MPI_STATUS_IGNORE), MPIX_ERR_REVOKED);
    FAILS(MPI_Iprobe(MPI_ANY_SOURCE, 1, comm, &flag, MPI_STATUS_IGNORE), MPIX_ERR_REVOKED);
    FAILS(MPI_Bcast(&value, 1, MPI_INT, 0, comm), MPIX_ERR_REVOKED);
    FAILS(MPI_Barrier(comm), MPIX_ERR_REVOKED);
    FAILS(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm), MPIX_ERR_REVOKED);
    FAILS(MPI_Comm_dup(comm, &other), MPIX_ERR_REVOKED);
    OK(MPI_Ibarrier(comm, &request));
    FAILS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPIX_ERR_REVOKED);
    OK(MPI_Comm_size(comm, &value));
    CHECK(value == size_);
}

/* Calls that wait when it is revoked. */
static void wait_for_revocation(MPI_Comm comm) {
    int value, index;
    MPI_Request requests[2];
    switch (rank_) {
    case 0: FAILS(MPI_Recv(&value, 1, MPI_INT, VICTIM, 1, comm, MPI_STATUS_IGNORE), MPIX_ERR_REVOKED); break;
    case 2: FAILS(MPI_Barrier(comm), MPIX_ERR_REVOKED); break;
    default:
        OK(MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 1, comm, &requests[0]));
        OK(MPI_Isend(block, LONG, MPI_INT, VICTIM, 1, comm, &requests[1]));
        FAILS(MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE), MPIX_ERR_REVOKED);
        FAILS(test(&requests[1 - index]), MPIX_ERR_REVOKED);
    }
}

static void revoke(void) {
    int flag = 6 | 1 << rank_, size;
    MPI_Comm comm, again;
    OK(MPI_Comm_dup(world, &comm));
    OK(MPIX_Comm_is_revoked(comm, &flag));
    CHECK(!flag);
    if (rank_ == VICTIM) {
        pause_ms(100);
        OK(MPIX_Comm_revoke(comm));
    } else {
        wait_for_revocation(comm);
    }
    is_useless(comm);
    flag = 48 | 1 << rank_;
    OK(MPIX_Comm_agree(comm, &flag));
    CHECK(flag == 48);
    OK(MPIX_Comm_shrink(comm, &again));
    OK(MPI_Comm_size(again, &size));
    CHECK(size == size_);
    OK(MPI_Barrier(again));
    OK(MPIX_Comm_failure_ack(comm));
    OK(MPI_Comm_free(&again));
    OK(MPI_Comm_free(&comm));
    /* What is of another communicator goes on. */
    OK(MPI_Barrier(world));
}

static void *revoke_soon(void *comm) {
    pause_ms(1 + (int)(getpid() % 30));
    OK(MPIX_Comm_revoke(*(MPI_Comm *)comm));
    return NULL;
}

/* In the midst of long messages: their buffers are the program's again when it hears of it. */
static void revoke_long_messages(void) {
    enum { VAST = 1 << 22 };
    int *data = calloc(2 * VAST, sizeof *data), *to = data + VAST, right = (rank_ + 1) % size_, left = (rank_ + size_ - 1) % size_;
    int codes[2] = {MPI_SUCCESS, MPI_SUCCESS}, flag;
    MPI_Request requests[2];
    pthread_t thread;
    MPI_Comm comm;
    OK(MPI_Comm_dup(world, &comm));
    OK(MPI_Barrier(comm));
    if (rank_ == VICTIM) CHECK(pthread_create(&thread, NULL, revoke_soon, &comm) == 0);
    for (int turn = 0; codes[0] == MPI_SUCCESS && codes[1] == MPI_SUCCESS; turn++) {
        /* In a slot, and not. */
        int from = turn % 2 ? left : MPI_ANY_SOURCE;
        requests[0] = requests[1] = MPI_REQUEST_NULL;
        codes[0] = MPI_Irecv(to, VAST, MPI_INT, from, turn, comm, &requests[0]);
        codes[1] = MPI_Isend(data, VAST, MPI_INT, right, turn, comm, &requests[1]);
        for (int i = 0; i < 2; i++) {
            if (codes[i] == MPI_SUCCESS) codes[i] = MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        }
    }
    for (int i = 0; i < 2; i++) CHECK(codes[i] == MPI_SUCCESS || class_of(codes[i]) == MPIX_ERR_REVOKED);
    memset(to, 90, sizeof *to * VAST);
    for (int i = 0; i < 20; i++, pause_ms(1)) OK(MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE));
    for (int i = 0; i < VAST; i++) CHECK(to[i] == 0x5a5a5a5a);
    if (rank_ == VICTIM) CHECK(pthread_join(thread, NULL) == 0);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Barrier(world));
    free(data);
}

/* All revoke, and end at once: messages are on their way, and connections yet to be made, when others have left. */
static void revoke_and_end(void) { OK(MPIX_Comm_revoke(world)); }

/* The one that revokes dies then. */
static void revoke_and_die(void) {
    MPI_Comm comm;
    OK(MPI_Comm_dup(world, &comm));
    settle();
    if (rank_ == VICTIM) {
        pause_ms(50);
        OK(MPIX_Comm_revoke(comm));
        die();
    }
    int value, flag = 0, code = MPI_Recv(&value, 1, MPI_INT, rank_ == 0 ? 2 : 0, 1, comm, MPI_STATUS_IGNORE);
    CHECK(class_of(code) == MPIX_ERR_REVOKED);
    is_useless(comm);
    await_failure();
    OK(MPIX_Comm_failure_ack(comm));
    flag = 3;
    OK(MPIX_Comm_agree(comm, &flag));
    CHECK(flag == 3);
    OK(MPI_Comm_free(&comm));
    go_on();
}

static void use(MPI_Comm comm, MPI_Win win, int *base) {
    int rank, size, one = 1;
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    base[0] = 0;
    OK(MPI_Barrier(comm));
    OK(MPI_Win_lock_all(0, win));
    for (int to = 0; to < size; to++) OK(MPI_Accumulate(&one, 1, MPI_INT, to, 0, 1, MPI_INT, MPI_SUM, win));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(comm));
    CHECK(base[0] == size);
}

/* Windows of which a member is dead are freed, and made anew by those that live. */
static void windows(void) {
    int *base, own[4];
    MPI_Win allocated, created, dynamic, shared;
    MPI_Comm living;
    OK(MPI_Win_allocate(16, 4, MPI_INFO_NULL, world, &base, &allocated));
    OK(MPI_Win_create(own, sizeof own, 4, MPI_INFO_NULL, world, &created));
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, world, &dynamic));
    use(world, allocated, base);
    use(world, created, own);
    OK(MPI_Win_set_errhandler(allocated, MPI_ERRORS_RETURN));
    OK(MPI_Win_set_errhandler(created, MPI_ERRORS_RETURN));
    OK(MPI_Win_fence(0, allocated));
    settle_and_die();
    FAILS(MPI_Win_fence(0, allocated), MPIX_ERR_PROC_FAILED);
    FAILS(MPI_Win_create(own, sizeof own, 4, MPI_INFO_NULL, world, &shared), MPIX_ERR_PROC_FAILED);
    /* What is open ends with the window. */
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank_, 0, created));
    OK(MPI_Win_unlock(rank_, created));
    if (rank_ == 2) OK(MPI_Win_lock_all(0, dynamic));
    /* Locks of those that live are good yet. */
    int to = rank_ == 0 ? 2 : 0, found;
    OK(MPI_Win_lock(MPI_LOCK_SHARED, to, 0, created));
    OK(MPI_Get(&found, 1, MPI_INT, to, 0, 1, MPI_INT, created));
    OK(MPI_Win_unlock(to, created));
    CHECK(found == size_);
    OK(MPI_Win_free(&allocated));
    OK(MPI_Win_free(&created));
    OK(MPI_Win_free(&dynamic));
    CHECK(allocated == MPI_WIN_NULL && created == MPI_WIN_NULL);
    OK(MPIX_Comm_shrink(world, &living));
    OK(MPI_Win_allocate(16, 4, MPI_INFO_NULL, living, &base, &allocated));
    OK(MPI_Win_create(own, sizeof own, 4, MPI_INFO_NULL, living, &created));
    use(living, allocated, base);
    use(living, created, own);
    OK(MPI_Win_free(&allocated));
    OK(MPI_Win_free(&created));
    OK(MPI_Comm_free(&living));
}

/* By default an error ends the job. */
static void fatal(void) {
    settle_and_die();
    OK(MPI_Comm_set_errhandler(world, MPI_ERRORS_ARE_FATAL));
    if (rank_ == 0) MPI_Barrier(world);
    pause_ms(60000);
}

static const struct {
    const char *name;
    void (*program)(void);
} programs[] = {{"collectives", collectives}, {"long_collectives", long_collectives}, {"messages", messages}, {"half_sent", half_sent}, {"any_source", any_source},
                {"any_source_and_on", any_source_and_on}, {"agree", agree}, {"agree_meanwhile", agree_meanwhile},
                {"agree_in_threads", agree_in_threads}, {"revoke", revoke}, {"revoke_long_messages", revoke_long_messages}, {"revoke_and_end", revoke_and_end},
                {"revoke_and_die", revoke_and_die}, {"windows", windows}, {"fatal", fatal}};

int main(int argc, char **argv) {
    begin(&argc, &argv);
    errors_return();
    CHECK(argc == 2 && size_ == 4);
    int *goes_on, found = 0;
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPIX_FT, &goes_on, &found));
    CHECK(found && *goes_on == (getenv("TRANSOM_ON_FAILURE") != NULL));
    block = calloc(LONG, sizeof *block);
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        if (strcmp(argv[1], programs[i].name) == 0) programs[i].program();
    }
    printf("SURVIVED %d\n", rank_);
    fflush(stdout);
    free(block);
    return MPI_Finalize() == MPI_SUCCESS ? 0 : 1;
}
