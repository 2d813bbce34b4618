/* Sessions, without MPI_Init (MPI-4.1 §11.3). */
#include "check.h"

/* Sends a message to this rank; the buffer that is there has room for one. */
static int send_one(MPI_Comm comm, int expected) {
    int from = 41, to = 0, rank, code;
    OK(MPI_Comm_rank(comm, &rank));
    code = MPI_Bsend(&from, 1, MPI_INT, rank, 3, comm);
    CHECK(class_of(code) == expected);
    if (expected != MPI_SUCCESS) return code;
    OK(MPI_Recv(&to, 1, MPI_INT, rank, 3, comm, MPI_STATUS_IGNORE));
    CHECK(to == 41);
    return code;
}

/* A session's buffer is for what comes from it, copies and parts included, and for nothing else. */
static void buffers(MPI_Session session, MPI_Comm comm) {
    static char room[MPI_BSEND_OVERHEAD + 64], small[1];
    MPI_Session other;
    MPI_Comm twin, part;
    MPI_Group group, first;
    MPI_Request request;
    void *found;
    MPI_Count size_c;
    int size, ranks[] = {0};
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    FAILS(MPI_Session_detach_buffer(session, &found, &size), MPI_ERR_BUFFER);
    FAILS(MPI_Session_flush_buffer(session), MPI_ERR_BUFFER);
    FAILS(MPI_Session_attach_buffer(session, room, -1), MPI_ERR_BUFFER);
    OK(MPI_Session_attach_buffer(session, room, sizeof room));
    FAILS(MPI_Session_attach_buffer(session, room, sizeof room), MPI_ERR_BUFFER);
    send_one(comm, MPI_SUCCESS);
    OK(MPI_Comm_dup(comm, &twin));
    send_one(twin, MPI_SUCCESS);
    OK(MPI_Comm_group(twin, &group));
    OK(MPI_Group_incl(group, 1, ranks, &first));
    if (rank_ == 0) {
        OK(MPI_Comm_create_from_group(first, "first", MPI_INFO_NULL, MPI_ERRORS_RETURN, &part));
        send_one(part, MPI_SUCCESS);
        OK(MPI_Comm_free(&part));
    }
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&first));
    /* Of another session. */
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &other));
    OK(MPI_Group_from_session_pset(other, "mpi://SELF", &group));
    OK(MPI_Comm_create_from_group(group, "other", MPI_INFO_NULL, MPI_ERRORS_RETURN, &part));
    OK(MPI_Group_free(&group));
    send_one(part, MPI_ERR_BUFFER);
    OK(MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0));
    send_one(part, MPI_SUCCESS);
    OK(MPI_Buffer_detach(&found, &size));
    CHECK(found == MPI_BUFFER_AUTOMATIC);
    OK(MPI_Comm_free(&part));
    /* The communicator's own goes first. */
    OK(MPI_Comm_attach_buffer(twin, small, sizeof small));
    send_one(twin, MPI_ERR_BUFFER);
    OK(MPI_Comm_detach_buffer(twin, &found, &size));
    send_one(twin, MPI_SUCCESS);
    OK(MPI_Comm_free(&twin));
    OK(MPI_Session_flush_buffer(session));
    OK(MPI_Session_iflush_buffer(session, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Session_detach_buffer(session, &found, &size));
    CHECK(found == room && size == (int)sizeof room);
    OK(MPI_Session_attach_buffer_c(session, MPI_BUFFER_AUTOMATIC, 0));
    send_one(comm, MPI_SUCCESS);
    OK(MPI_Session_detach_buffer_c(session, &found, &size_c));
    CHECK(found == MPI_BUFFER_AUTOMATIC && size_c == 0);
    send_one(comm, MPI_ERR_BUFFER);
    OK(MPI_Session_finalize(&other));
}

static int called, last;

static void on_session(MPI_Session *session, int *code, ...) {
    (void)session;
    called++;
    last = *code;
}

static void on_comm(MPI_Comm *comm, int *code, ...) {
    (void)comm;
    called++;
    last = *code;
}

/* A call that makes an object raises its own errors by the handler that it is given for that. */
static void handlers_of_calls(MPI_Group group) {
    MPI_Session session;
    MPI_Errhandler of_sessions, of_comms;
    MPI_Comm comm;
    MPI_Info info;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "thread_level", "as many as there are"));
    OK(MPI_Session_create_errhandler(on_session, &of_sessions));
    OK(MPI_Comm_create_errhandler(on_comm, &of_comms));
    FAILS(MPI_Session_init(info, MPI_ERRORS_RETURN, &session), MPI_ERR_INFO_VALUE);
    FAILS(MPI_Session_init(info, of_sessions, &session), MPI_ERR_INFO_VALUE);
    CHECK(called == 1 && class_of(last) == MPI_ERR_INFO_VALUE);
    OK(MPI_Info_set(info, "thread_level", "MPI_THREAD_SERIALIZED"));
    OK(MPI_Session_init(info, of_sessions, &session));
    OK(MPI_Session_finalize(&session));
    OK(MPI_Info_free(&info));
    FAILS(MPI_Comm_create_from_group(MPI_GROUP_NULL, "no group", MPI_INFO_NULL, of_comms, &comm), MPI_ERR_GROUP);
    CHECK(called == 2 && class_of(last) == MPI_ERR_GROUP);
    FAILS(MPI_Intercomm_create_from_groups(group, size_, MPI_GROUP_NULL, 0, "no leader", MPI_INFO_NULL, of_comms,
                                           &comm),
          MPI_ERR_RANK);
    CHECK(called == 3 && class_of(last) == MPI_ERR_RANK);
    OK(MPI_Errhandler_free(&of_sessions));
    OK(MPI_Errhandler_free(&of_comms));
}

/* All sessions were finalised, and there is another. */
static void again(void) {
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    int sum, one = 1;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    OK(MPI_Comm_create_from_group(group, "again", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm));
    OK(MPI_Group_free(&group));
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum == size_);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Session_finalize(&session));
}

int main(void) {
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    MPI_Info info;
    char name[MPI_MAX_PSET_NAME_LEN], value[16];
    int n, len = sizeof name, flag, sum, one = 1;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    OK(MPI_Initialized(&flag));
    CHECK(!flag);
    OK(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &n));
    CHECK(n == 2);
    OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &len, name));
    CHECK(strcmp(name, "mpi://WORLD") == 0 && len == (int)strlen(name) + 1);
    OK(MPI_Group_from_session_pset(session, name, &group));
    OK(MPI_Session_get_pset_info(session, name, &info));
    OK(MPI_Info_get(info, "mpi_size", 15, value, &flag));
    OK(MPI_Group_size(group, &size_));
    CHECK(flag && atoi(value) == size_);
    OK(MPI_Info_free(&info));
    FAILS(MPI_Group_from_session_pset(session, "mpi://NOBODY", &group), MPI_ERR_ARG);
    OK(MPI_Comm_create_from_group(group, "test", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm));
    handlers_of_calls(group);
    OK(MPI_Group_free(&group));
    OK(MPI_Comm_rank(comm, &rank_));
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum == size_);
    buffers(session, comm);
    OK(MPI_Comm_free(&comm));
    OK(MPI_Session_finalize(&session));
    CHECK(session == MPI_SESSION_NULL);
    again();
    again();
    if (rank_ == 0) printf("all well with %d\n", size_);
    if (size_ != 2) return 0; /* the job ends with the process */
    OK(MPI_Init(NULL, NULL));
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    OK(MPI_Finalize());
    OK(MPI_Session_finalize(&session));
    return 0;
}
