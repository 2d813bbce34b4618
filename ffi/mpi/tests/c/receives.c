/* Nonblocking receives of plain data from one rank, which are in slots as long as there are any: every call that takes a request, in
 * every order of message and receive (MPI-4.1 §3.7). */
#include "check.h"
#include <string.h>

enum { MANY = 700, LONG = 600000 };
static int in[MANY];
static char big[LONG];
static int right, left;

/* Sends to the right what the left sends here. */
static void send_one(int value, int tag) { OK(MPI_Send(&value, 1, MPI_INT, right, tag, MPI_COMM_WORLD)); }

static void receive(int place, int tag, MPI_Request *request) {
    in[place] = -1;
    OK(MPI_Irecv(&in[place], 1, MPI_INT, left, tag, MPI_COMM_WORLD, request));
    CHECK(*request != MPI_REQUEST_NULL);
}

static void is_of(const MPI_Status *status, int tag, int bytes) {
    int n;
    OK(MPI_Get_count(status, MPI_BYTE, &n));
    CHECK(status->MPI_SOURCE == left && status->MPI_TAG == tag && n == bytes);
}

/* One request by each call, before its message is sent, or when it is there. */
static void by_each_call(int before) {
    MPI_Request request, copy;
    MPI_Status status;
    int flag = 0, index = -1, done = 0, indices[1];
    for (int call = 0; call < 9; call++) {
        if (before) receive(0, call, &request);
        send_one(10 * rank_ + call, call);
        /* Behind the message. */
        OK(MPI_Sendrecv(NULL, 0, MPI_INT, right, 99, NULL, 0, MPI_INT, left, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        if (!before) receive(0, call, &request);
        copy = request;
        memset(&status, 0x7f, sizeof status);
        switch (call) {
        case 0: OK(MPI_Wait(&request, &status)); break;
        case 1: do OK(MPI_Test(&request, &flag, &status)); while (!flag); break;
        case 2: OK(MPI_Waitall(1, &request, &status)); break;
        case 3: do OK(MPI_Testall(1, &request, &flag, &status)); while (!flag); break;
        case 4: OK(MPI_Waitany(1, &request, &index, &status)); CHECK(index == 0); break;
        case 5: do OK(MPI_Testany(1, &request, &index, &flag, &status)); while (!flag); break;
        case 6: OK(MPI_Waitsome(1, &request, &done, indices, &status)); CHECK(done == 1 && indices[0] == 0); break;
        case 7: do OK(MPI_Testsome(1, &request, &done, indices, &status)); while (done != 1); break;
        case 8:
            for (int look = 0; look < 2; look++) {
                do OK(MPI_Request_get_status(request, &flag, &status)); while (!flag);
                is_of(&status, call, sizeof(int));
                CHECK(request == copy);
            }
            OK(MPI_Wait(&request, &status));
            break;
        }
        CHECK(request == MPI_REQUEST_NULL && in[0] == 10 * left + call);
        is_of(&status, call, sizeof(int));
        FAILS(MPI_Wait(&copy, &status), MPI_ERR_REQUEST);
        FAILS(MPI_Test(&copy, &flag, &status), MPI_ERR_REQUEST);
        FAILS(MPI_Request_free(&copy), MPI_ERR_REQUEST);
    }
}

/* More than there are slots, some of which have been looked at, waited for from behind. */
static void many(void) {
    static MPI_Request requests[MANY];
    static MPI_Status statuses[MANY];
    MPI_Request wrong[2];
    int flag;
    for (int i = 0; i < MANY; i++) receive(i, i, &requests[i]);
    for (int i = 0; i < MANY; i += 3) {
        OK(MPI_Request_get_status(requests[i], &flag, MPI_STATUS_IGNORE));
        CHECK(!flag);
    }
    /* A list with a wrong request is refused, and nothing of it is done. */
    wrong[0] = requests[1], wrong[1] = requests[2];
    OK(MPI_Cancel(&wrong[1]));
    OK(MPI_Wait(&requests[2], &statuses[2]));
    OK(MPI_Test_cancelled(&statuses[2], &flag));
    CHECK(flag);
    FAILS(MPI_Waitall(2, wrong, MPI_STATUSES_IGNORE), MPI_ERR_REQUEST);
    receive(2, 2, &requests[2]);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = MANY - 1; i >= 0; i--) send_one(i, i);
    OK(MPI_Wait(&requests[MANY - 1], &statuses[0]));
    is_of(&statuses[0], MANY - 1, sizeof(int));
    OK(MPI_Waitall(MANY, requests, statuses));
    for (int i = 0; i < MANY; i++) {
        CHECK(in[i] == i && requests[i] == MPI_REQUEST_NULL);
        if (i < MANY - 1) is_of(&statuses[i], i, sizeof(int));
    }
}

/* Long messages, messages that do not fit, and receives that are freed, cancelled, or of a communicator that is. */
static void odd_ones(void) {
    MPI_Request requests[3], sent;
    MPI_Status statuses[3];
    MPI_Comm other;
    int flag, code;
    static char data[LONG];
    memset(data, 'a' + rank_, LONG);
    for (int bytes = 1; bytes <= LONG; bytes *= 7) {
        OK(MPI_Irecv(big, LONG, MPI_CHAR, left, bytes, MPI_COMM_WORLD, &requests[0]));
        OK(MPI_Isend(data, bytes, MPI_CHAR, right, bytes, MPI_COMM_WORLD, &sent));
        OK(MPI_Wait(&requests[0], &statuses[0]));
        is_of(&statuses[0], bytes, bytes);
        CHECK(big[0] == 'a' + left && big[bytes - 1] == 'a' + left);
        OK(MPI_Wait(&sent, MPI_STATUS_IGNORE));
        /* Too long. */
        OK(MPI_Irecv(big, bytes - 1, MPI_CHAR, left, bytes, MPI_COMM_WORLD, &requests[0]));
        OK(MPI_Isend(data, bytes, MPI_CHAR, right, bytes, MPI_COMM_WORLD, &sent));
        code = MPI_Waitall(1, requests, statuses);
        CHECK(code == MPI_ERR_IN_STATUS && statuses[0].MPI_ERROR == MPI_ERR_TRUNCATE);
        CHECK(requests[0] == MPI_REQUEST_NULL);
        OK(MPI_Wait(&sent, MPI_STATUS_IGNORE));
    }

    /* Nobody waits for what is freed, but it comes. */
    receive(0, 1, &requests[0]);
    OK(MPI_Request_free(&requests[0]));
    CHECK(requests[0] == MPI_REQUEST_NULL);
    receive(1, 1, &requests[1]);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    send_one(5, 1);
    send_one(6, 1);
    OK(MPI_Wait(&requests[1], &statuses[1]));
    CHECK(in[0] == 5 && in[1] == 6);

    /* Taken back once, and the message goes to the next. */
    receive(0, 2, &requests[0]);
    receive(1, 2, &requests[1]);
    OK(MPI_Cancel(&requests[0]));
    OK(MPI_Wait(&requests[0], &statuses[0]));
    OK(MPI_Test_cancelled(&statuses[0], &flag));
    CHECK(flag && in[0] == -1);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    send_one(7, 2);
    OK(MPI_Wait(&requests[1], &statuses[1]));
    OK(MPI_Test_cancelled(&statuses[1], &flag));
    CHECK(!flag && in[1] == 7);

    /* A communicator is there as long as a receive needs it. */
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &other));
    for (int i = 0; i < 3; i++) {
        in[i] = -1;
        OK(MPI_Irecv(&in[i], 1, MPI_INT, left, i, other, &requests[i]));
        OK(MPI_Isend(&i, 1, MPI_INT, right, i, other, &sent));
        OK(MPI_Wait(&sent, MPI_STATUS_IGNORE));
    }
    OK(MPI_Comm_free(&other));
    OK(MPI_Request_get_status(requests[1], &flag, MPI_STATUS_IGNORE));
    OK(MPI_Waitall(3, requests, statuses));
    for (int i = 0; i < 3; i++) {
        CHECK(in[i] == i);
        is_of(&statuses[i], i, sizeof(int));
    }
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    errors_return();
    right = (rank_ + 1) % size_, left = (rank_ + size_ - 1) % size_;
    for (int round = 0; round < 5; round++) {
        by_each_call(0);
        by_each_call(1);
        many();
        odd_ones();
    }
    return end();
}
