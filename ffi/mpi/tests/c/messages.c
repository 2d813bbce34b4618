/* Messages and requests (MPI-4.1 chapter 3). */
#include "check.h"

enum { MANY = 200000 };
static int out[MANY], in[MANY];

static void is_of_nobody(const MPI_Status *status) {
    int n;
    CHECK(status->MPI_SOURCE == MPI_PROC_NULL && status->MPI_TAG == MPI_ANY_TAG);
    OK(MPI_Get_count(status, MPI_INT, &n));
    CHECK(n == 0);
}

/* Long buffered messages, all delivered when a request is complete that does not wait for receives itself (MPI-4.1 §3.6). */
static void flushed(int left, int right) {
    enum { LONG = 1 << 20, ROOM = 2 * (LONG + MPI_BSEND_OVERHEAD) };
    char *room = malloc(ROOM), *bytes = calloc(LONG, 1);
    MPI_Request request;
    void *detached;
    int flag, n, token = rank_;
    for (int own = 0; own < 2; own++) {
        OK(own ? MPI_Comm_attach_buffer(MPI_COMM_WORLD, room, ROOM) : MPI_Buffer_attach(room, ROOM));
        bytes[LONG - 1] = (char)(rank_ + 10 * own);
        for (int i = 0; i < 2; i++) OK(MPI_Bsend(bytes, LONG, MPI_CHAR, right, 91, MPI_COMM_WORLD));
        OK(own ? MPI_Comm_iflush_buffer(MPI_COMM_WORLD, &request) : MPI_Buffer_iflush(&request));
        OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
        CHECK(flag == (size_ == 1)); /* Nobody has received one; to oneself, all is a copy. */
        OK(MPI_Sendrecv_replace(&token, 1, MPI_INT, right, 92, left, 92, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int i = 0; i < 2; i++) {
            OK(MPI_Recv(bytes, LONG, MPI_CHAR, left, 91, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK(bytes[LONG - 1] == left + 10 * own);
        }
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK(request == MPI_REQUEST_NULL);
        OK(own ? MPI_Comm_iflush_buffer(MPI_COMM_WORLD, &request) : MPI_Buffer_iflush(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        OK(own ? MPI_Comm_detach_buffer(MPI_COMM_WORLD, &detached, &n) : MPI_Buffer_detach(&detached, &n));
        CHECK(detached == room && n == ROOM);
    }
    FAILS(MPI_Buffer_iflush(&request), MPI_ERR_BUFFER);
    free(bytes);
    free(room);
}

/* Messages to and from nobody have no buffer, not even a datatype (MPI-4.1 §3.10). */
static void nobody(int left, int right) {
    MPI_Request requests[4];
    MPI_Status status, statuses[4];
    MPI_Message message;
    int from = rank_, to = -1;
    OK(MPI_Send(NULL, 5, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    OK(MPI_Ssend(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    OK(MPI_Bsend(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, MPI_COMM_WORLD)); /* without a buffer */
    OK(MPI_Recv(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 10, MPI_COMM_WORLD, &status));
    is_of_nobody(&status);
    OK(MPI_Irecv(NULL, 7, MPI_DATATYPE_NULL, MPI_PROC_NULL, 10, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Isend(NULL, 7, MPI_DATATYPE_NULL, MPI_PROC_NULL, 10, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Recv_init(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 10, MPI_COMM_WORLD, &requests[2]));
    OK(MPI_Send_init(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 10, MPI_COMM_WORLD, &requests[3]));
    OK(MPI_Startall(2, requests + 2));
    for (int i = 0; i < 4; i++) statuses[i].MPI_ERROR = 77;
    OK(MPI_Waitall(4, requests, statuses));
    is_of_nobody(&statuses[0]);
    is_of_nobody(&statuses[2]);
    for (int i = 0; i < 4; i++) CHECK(statuses[i].MPI_ERROR == MPI_SUCCESS);
    OK(MPI_Request_free(&requests[2]));
    OK(MPI_Request_free(&requests[3]));
    OK(MPI_Mprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &message, &status));
    CHECK(message == MPI_MESSAGE_NO_PROC);
    OK(MPI_Mrecv(NULL, 0, MPI_DATATYPE_NULL, &message, &status));
    is_of_nobody(&status);
    /* One half of an exchange. */
    OK(MPI_Irecv(&to, 1, MPI_INT, left, 2, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Sendrecv(&from, 1, MPI_INT, right, 2, NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 2, MPI_COMM_WORLD, &status));
    is_of_nobody(&status);
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    CHECK(to == left);
    OK(MPI_Sendrecv_replace(&from, 1, MPI_INT, MPI_PROC_NULL, 2, MPI_PROC_NULL, 2, MPI_COMM_WORLD, &status));
    is_of_nobody(&status);
    FAILS(MPI_Sendrecv_replace(&from, 1, MPI_DATATYPE_NULL, MPI_PROC_NULL, 2, left, 2, MPI_COMM_WORLD, &status),
          MPI_ERR_TYPE);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    errors_return();
    int right = (rank_ + 1) % size_, left = (rank_ + size_ - 1) % size_, n, flag, index, done;
    MPI_Status status, statuses[3];
    MPI_Request request, requests[3];
    for (int i = 0; i < MANY; i++) out[i] = rank_ * 7 + i;

    nobody(left, right);
    /* Short and long ones, in every mode. */
    for (int long_ = 0; long_ < 2; long_++) {
        n = long_ ? MANY : 10;
        OK(MPI_Irecv(in, n, MPI_INT, left, 3, MPI_COMM_WORLD, &request));
        OK(MPI_Send(out, n, MPI_INT, right, 3, MPI_COMM_WORLD));
        OK(MPI_Wait(&request, &status));
        int got;
        OK(MPI_Get_count(&status, MPI_INT, &got));
        CHECK(request == MPI_REQUEST_NULL && status.MPI_SOURCE == left && status.MPI_TAG == 3 && got == n);
        CHECK(in[0] == left * 7 && in[n - 1] == left * 7 + n - 1);
        OK(MPI_Isend(out, n, MPI_INT, right, 4, MPI_COMM_WORLD, &requests[0]));
        OK(MPI_Issend(out, n, MPI_INT, right, 5, MPI_COMM_WORLD, &requests[1]));
        OK(MPI_Recv(in, n, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Recv(in, n, MPI_INT, left, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
        CHECK(status.MPI_TAG == 4);
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    }

    /* Every other number. */
    MPI_Datatype other;
    OK(MPI_Type_vector(5, 1, 2, MPI_INT, &other));
    OK(MPI_Type_commit(&other));
    memset(in, -1, sizeof in);
    OK(MPI_Sendrecv(out, 5, MPI_INT, right, 0, in, 1, other, left, 0, MPI_COMM_WORLD, &status));
    CHECK(in[0] == left * 7 && in[1] == -1 && in[8] == left * 7 + 4 && in[9] == -1);
    OK(MPI_Get_elements(&status, other, &n));
    CHECK(n == 5);
    OK(MPI_Type_free(&other));
    in[0] = rank_;
    OK(MPI_Sendrecv_replace(in, 1, MPI_INT, right, 0, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(in[0] == left);

    /* Several requests. */
    for (int i = 0; i < 3; i++) OK(MPI_Irecv(in + i, 1, MPI_INT, left, i, MPI_COMM_WORLD, &requests[i]));
    OK(MPI_Testall(3, requests, &flag, MPI_STATUSES_IGNORE));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Send(out + 1, 1, MPI_INT, right, 1, MPI_COMM_WORLD));
    OK(MPI_Waitany(3, requests, &index, &status));
    CHECK(index == 1 && requests[1] == MPI_REQUEST_NULL && status.MPI_TAG == 1);
    OK(MPI_Testany(3, requests, &index, &flag, &status));
    CHECK(!flag && index == MPI_UNDEFINED);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Send(out, 1, MPI_INT, right, 0, MPI_COMM_WORLD));
    OK(MPI_Send(out + 2, 1, MPI_INT, right, 2, MPI_COMM_WORLD));
    int indices[3];
    for (done = 0; done < 2; done += n) {
        OK(MPI_Waitsome(3, requests, &n, indices, statuses));
        CHECK(n > 0 && n <= 2);
    }
    OK(MPI_Waitsome(3, requests, &n, indices, statuses));
    CHECK(n == MPI_UNDEFINED);
    OK(MPI_Waitany(3, requests, &index, &status));
    CHECK(index == MPI_UNDEFINED && status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG);

    /* Looking first. */
    OK(MPI_Iprobe(left, 9, MPI_COMM_WORLD, &flag, &status));
    CHECK(!flag);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Isend(out, 3, MPI_INT, right, 9, MPI_COMM_WORLD, &request));
    OK(MPI_Probe(MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &status));
    OK(MPI_Get_count(&status, MPI_INT, &n));
    CHECK(n == 3 && status.MPI_SOURCE == left);
    MPI_Message message;
    OK(MPI_Mprobe(left, 9, MPI_COMM_WORLD, &message, &status));
    OK(MPI_Mrecv(in, 3, MPI_INT, &message, &status));
    CHECK(message == MPI_MESSAGE_NULL && in[2] == left * 7 + 2);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));

    /* Persistent ones. */
    OK(MPI_Send_init(out, 2, MPI_INT, right, 6, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Recv_init(in, 2, MPI_INT, left, 6, MPI_COMM_WORLD, &requests[1]));
    for (int round = 0; round < 3; round++) {
        out[0] = round;
        OK(MPI_Startall(2, requests));
        FAILS(MPI_Start(&requests[0]), MPI_ERR_REQUEST);
        OK(MPI_Waitall(2, requests, statuses));
        CHECK(in[0] == round && statuses[1].MPI_SOURCE == left && requests[0] != MPI_REQUEST_NULL);
    }
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));

    /* Buffered ones, and one that is taken back. */
    static char buffer[1000 + MPI_BSEND_OVERHEAD];
    FAILS(MPI_Bsend(out, 2, MPI_INT, right, 8, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    OK(MPI_Buffer_attach(buffer, sizeof buffer));
    OK(MPI_Bsend(out, 2, MPI_INT, right, 8, MPI_COMM_WORLD));
    FAILS(MPI_Bsend(out, 2000, MPI_INT, right, 8, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    OK(MPI_Recv(in, 2, MPI_INT, left, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    void *detached;
    OK(MPI_Buffer_detach(&detached, &n));
    CHECK(detached == buffer && n == sizeof buffer);
    OK(MPI_Irecv(in, 2, MPI_INT, left, 77, MPI_COMM_WORLD, &request));
    OK(MPI_Request_get_status(request, &flag, &status));
    CHECK(!flag);
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Test_cancelled(&status, &flag));
    CHECK(flag);

    static char vast[1 << 20];
    OK(MPI_Isend(vast, sizeof vast, MPI_CHAR, right, 78, MPI_COMM_WORLD, &request));
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Test_cancelled(&status, &flag));
    /* What a rank sends to itself is a copy, and complete at once. */
    CHECK(flag == (size_ > 1));
    if (size_ == 1) OK(MPI_Recv(vast, sizeof vast, MPI_CHAR, left, 78, MPI_COMM_WORLD, MPI_STATUS_IGNORE));

    flushed(left, right);

    /* To and from nobody; and what is wrong. */
    OK(MPI_Send(out, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    OK(MPI_Recv(in, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status));
    OK(MPI_Get_count(&status, MPI_INT, &n));
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG && n == 0);
    FAILS(MPI_Send(out, 1, MPI_INT, right, -1, MPI_COMM_WORLD), MPI_ERR_TAG);
    /* What is wrong with the send is said before anybody waits for what it would have sent. */
    FAILS(MPI_Sendrecv(out, 1, MPI_INT, right, -5, in, 1, MPI_INT, left, 5, MPI_COMM_WORLD, &status), MPI_ERR_TAG);
    FAILS(MPI_Sendrecv(out, 1, MPI_INT, size_, 5, in, 1, MPI_INT, left, 5, MPI_COMM_WORLD, &status), MPI_ERR_RANK);
    FAILS(MPI_Sendrecv_replace(out, 1, MPI_INT, right, -5, left, 5, MPI_COMM_WORLD, &status), MPI_ERR_TAG);
    FAILS(MPI_Isendrecv(out, 1, MPI_INT, right, -5, in, 1, MPI_INT, left, 5, MPI_COMM_WORLD, &request), MPI_ERR_TAG);
    FAILS(MPI_Isendrecv_replace(out, 1, MPI_INT, size_, 5, left, 5, MPI_COMM_WORLD, &request), MPI_ERR_RANK);
    FAILS(MPI_Send(out, -1, MPI_INT, right, 0, MPI_COMM_WORLD), MPI_ERR_COUNT);
    FAILS(MPI_Send(out, 1, MPI_DATATYPE_NULL, right, 0, MPI_COMM_WORLD), MPI_ERR_TYPE);
    FAILS(MPI_Send(NULL, 1, MPI_INT, right, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    OK(MPI_Isend(out, 3, MPI_INT, right, 1, MPI_COMM_WORLD, &request));
    FAILS(MPI_Recv(in, 2, MPI_INT, left, 1, MPI_COMM_WORLD, &status), MPI_ERR_TRUNCATE);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    return end();
}
