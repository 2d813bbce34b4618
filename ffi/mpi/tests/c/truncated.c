/* Messages that are longer than the room for them: which they were, and how each call that completes a receive says so
   (MPI-4.1 §3.2.5, §3.7.5). */
#include "check.h"

enum { MANY = 100000, FITS = 1, TOO_LONG = 2, OTHER = 3 };
static int out[MANY], in[3][MANY];
static int left, right, length;

/* Starts to receive what fits, what does not, and what comes last, from anybody. */
static void receive(MPI_Request *requests) {
    OK(MPI_Irecv(in[0], length, MPI_INT, MPI_ANY_SOURCE, FITS, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Irecv(in[1], length - 1, MPI_INT, MPI_ANY_SOURCE, TOO_LONG, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Irecv(in[2], length, MPI_INT, left, OTHER, MPI_COMM_WORLD, &requests[2]));
}

/* Sends the same to the right. */
static void send(int tag) {
    MPI_Request sent;
    OK(MPI_Isend(out, length, MPI_INT, right, tag, MPI_COMM_WORLD, &sent));
    OK(MPI_Request_free(&sent));
}

static void send_all(void) {
    for (int tag = FITS; tag <= OTHER; tag++) send(tag);
}

/* What a call leaves alone is told from what it sets. */
static void forget(MPI_Status *statuses, int n) {
    for (int i = 0; i < n; i++) statuses[i] = (MPI_Status){.MPI_SOURCE = -77, .MPI_TAG = -77, .MPI_ERROR = -77};
}

/* Of a call for one request: the error field is not its own. */
static void is_too_long(int code, const MPI_Status *status) {
    CHECK(class_of(code) == MPI_ERR_TRUNCATE);
    CHECK(status->MPI_SOURCE == left && status->MPI_TAG == TOO_LONG && status->MPI_ERROR == -77);
}

/* Of a call for several requests. */
static void is_of(const MPI_Status *status, int tag) {
    int expected = tag == TOO_LONG ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
    CHECK(status->MPI_SOURCE == left && status->MPI_TAG == tag && class_of(status->MPI_ERROR) == expected);
}

/* Completes a request by one of the calls that do. */
static int complete(int call, MPI_Request *request, MPI_Status *status) {
    int flag = 0, index = 0, code = MPI_SUCCESS;
    switch (call) {
    case 0: return MPI_Wait(request, status);
    case 1:
        while (!flag) code = MPI_Test(request, &flag, status);
        break;
    case 2: code = MPI_Waitany(1, request, &index, status); break;
    case 3:
        while (!flag) code = MPI_Testany(1, request, &index, &flag, status);
        break;
    default:
        while (!flag) code = MPI_Request_get_status(*request, &flag, status);
        is_too_long(code, status);
        forget(status, 1);
        code = MPI_Wait(request, status);
    }
    CHECK(index == 0 && *request == MPI_REQUEST_NULL);
    return code;
}

static void one_request(void) {
    MPI_Request request, requests[3];
    MPI_Status status;
    int index, code;
    for (int call = 0; call < 5; call++) {
        forget(&status, 1);
        OK(MPI_Irecv(in[1], length - 1, MPI_INT, MPI_ANY_SOURCE, TOO_LONG, MPI_COMM_WORLD, &request));
        send(TOO_LONG);
        is_too_long(complete(call, &request, &status), &status);
    }
    /* Several, one at a time. */
    receive(requests);
    send_all();
    for (int seen = 0, left_over = 3; left_over > 0; left_over--) {
        forget(&status, 1);
        code = MPI_Waitany(3, requests, &index, &status);
        CHECK(index >= 0 && !(seen & 1 << index));
        seen |= 1 << index;
        if (index == 1) is_too_long(code, &status);
        else CHECK(code == MPI_SUCCESS && status.MPI_TAG == index + 1);
    }
}

/* Completes all three by one call. */
static void all_at_once(int test) {
    MPI_Request requests[3];
    MPI_Status statuses[3];
    int flag = 0, code = MPI_SUCCESS;
    forget(statuses, 3);
    receive(requests);
    send_all();
    if (test) {
        while (!flag) code = MPI_Testall(3, requests, &flag, statuses);
    } else {
        code = MPI_Waitall(3, requests, statuses);
    }
    CHECK(class_of(code) == MPI_ERR_IN_STATUS);
    for (int i = 0; i < 3; i++) {
        is_of(&statuses[i], i + 1);
        CHECK(requests[i] == MPI_REQUEST_NULL);
    }
}

/* Completes them as they end. */
static void some_at_a_time(int test) {
    MPI_Request requests[3];
    MPI_Status statuses[3];
    int n, indices[3], failed = 0, here;
    receive(requests);
    send_all();
    for (int done = 0; done < 3; done += n) {
        forget(statuses, 3);
        int code = (test ? MPI_Testsome : MPI_Waitsome)(3, requests, &n, indices, statuses);
        here = 0;
        for (int i = 0; i < n; i++) {
            here += indices[i] == 1;
            if (code == MPI_SUCCESS) statuses[i].MPI_ERROR = MPI_SUCCESS; /* not set then */
            is_of(&statuses[i], indices[i] + 1);
        }
        CHECK(class_of(code) == (here ? MPI_ERR_IN_STATUS : MPI_SUCCESS));
        failed += here;
    }
    CHECK(failed == 1);
}

static void several_requests(void) {
    MPI_Request requests[3];
    for (int test = 0; test < 2; test++) {
        all_at_once(test);
        some_at_a_time(test);
    }
    receive(requests);
    send_all();
    FAILS(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE), MPI_ERR_IN_STATUS);
}

static void blocking(void) {
    MPI_Status status;
    MPI_Message message;
    MPI_Request request;
    forget(&status, 1);
    send(TOO_LONG);
    is_too_long(MPI_Recv(in[0], length - 1, MPI_INT, left, MPI_ANY_TAG, MPI_COMM_WORLD, &status), &status);
    forget(&status, 1);
    is_too_long(MPI_Sendrecv(out, length, MPI_INT, right, TOO_LONG, in[0], 1, MPI_INT, MPI_ANY_SOURCE,
                             MPI_ANY_TAG, MPI_COMM_WORLD, &status), &status);
    send(TOO_LONG);
    OK(MPI_Mprobe(left, TOO_LONG, MPI_COMM_WORLD, &message, &status));
    forget(&status, 1);
    is_too_long(MPI_Mrecv(in[0], length - 1, MPI_INT, &message, &status), &status);
    send(TOO_LONG);
    OK(MPI_Mprobe(left, TOO_LONG, MPI_COMM_WORLD, &message, &status));
    OK(MPI_Imrecv(in[0], length - 1, MPI_INT, &message, &request));
    forget(&status, 1);
    is_too_long(MPI_Wait(&request, &status), &status);
    /* A persistent receive is as good as new. */
    OK(MPI_Recv_init(in[0], length, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request));
    for (int more = 1; more >= 0; more--) {
        OK(MPI_Start(&request));
        OK(MPI_Send(out, length + more, MPI_INT, right, TOO_LONG, MPI_COMM_WORLD));
        forget(&status, 1);
        int code = MPI_Wait(&request, &status);
        if (more) is_too_long(code, &status);
        else CHECK(code == MPI_SUCCESS && status.MPI_SOURCE == left);
    }
    OK(MPI_Request_free(&request));
}

/* Three characters for integers that lie apart: what came is stored, and that it ends within an integer is an error. */
static void cut_within_an_element(void) {
    MPI_Datatype apart;
    MPI_Status status;
    int place[4] = {-1, -1, -1, -1};
    OK(MPI_Type_vector(2, 1, 2, MPI_INT, &apart));
    OK(MPI_Type_commit(&apart));
    MPI_Request request;
    OK(MPI_Irecv(place, 1, apart, left, OTHER, MPI_COMM_WORLD, &request));
    OK(MPI_Send("\0\0", 3, MPI_CHAR, right, OTHER, MPI_COMM_WORLD));
    FAILS(MPI_Wait(&request, &status), MPI_ERR_TYPE);
    CHECK(place[0] == (int)0xff000000 && place[2] == -1);
    OK(MPI_Irecv(place, 1, apart, left, OTHER, MPI_COMM_WORLD, &request));
    OK(MPI_Send(out, 1, MPI_INT, right, OTHER, MPI_COMM_WORLD));
    OK(MPI_Wait(&request, &status));
    CHECK(place[0] == out[0] && place[2] == -1);
    OK(MPI_Type_free(&apart));
}

static int told, told_words;

static void tell(MPI_Comm *comm, int *code, ...) {
    char words[MPI_MAX_ERROR_STRING];
    int size;
    (void)comm;
    told = class_of(*code);
    OK(MPI_Error_string(*code, words, &size));
    told_words = strstr(words, "MPI_Waitall") != NULL;
}

/* Of several requests an error handler is told the code of the one that has failed (MPI-4.1 9.3.1). */
static void handlers_are_told_of_the_request(void) {
    MPI_Errhandler handler;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    OK(MPI_Comm_create_errhandler(tell, &handler));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler));
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_Irecv(in[0], 1, MPI_INT, left, OTHER, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Irecv(in[1], 1, MPI_INT, left, TOO_LONG, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Send(out, 1, MPI_INT, right, OTHER, MPI_COMM_WORLD));
    OK(MPI_Send(out, 2, MPI_INT, right, TOO_LONG, MPI_COMM_WORLD));
    FAILS(MPI_Waitall(2, requests, statuses), MPI_ERR_IN_STATUS);
    CHECK(told == MPI_ERR_TRUNCATE && told_words);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    errors_return();
    right = (rank_ + 1) % size_, left = (rank_ + size_ - 1) % size_;
    int lengths[2] = {10, MANY - 1};
    for (int i = 0; i < 2; i++) {
        length = lengths[i];
        one_request();
        several_requests();
        blocking();
    }
    cut_within_an_element();
    handlers_are_told_of_the_request();
    return end();
}
