/* Performance variables of the tools' interface (MPI-4.1 section 15.3.7): what one-sided operations are counted as. */
#include "check.h"
#include <string.h>

static MPI_T_pvar_session session;

static MPI_T_pvar_handle open_variable(const char *name, int class) {
    int index = -1, count = 0;
    MPI_T_pvar_handle handle;
    OK(MPI_T_pvar_get_index(name, class, &index));
    OK(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count));
    CHECK(count == 1);
    return handle;
}

static unsigned long long value(MPI_T_pvar_handle handle) {
    unsigned long long got = 99;
    OK(MPI_T_pvar_read(session, handle, &got));
    return got;
}

/* Each has a name of its own, by which it is found, and says what it is. */
static void all_variables(void) {
    int number = 0;
    OK(MPI_T_pvar_get_num(&number));
    CHECK(number > 20);
    for (int i = 0; i < number; i++) {
        char name[100], text[200], few[6];
        int name_len = sizeof name, text_len = sizeof text, verbosity, class, bind, readonly, continuous, atomic, found = -1;
        MPI_Datatype type;
        MPI_T_enum values;
        OK(MPI_T_pvar_get_info(i, name, &name_len, &verbosity, &class, &type, &values, text, &text_len, &bind, &readonly,
                               &continuous, &atomic));
        CHECK(name_len == (int)strlen(name) + 1 && text_len == (int)strlen(text) + 1 && text_len > 20);
        CHECK(type == MPI_UNSIGNED_LONG_LONG && values == MPI_T_ENUM_NULL && bind == MPI_T_BIND_NO_OBJECT);
        CHECK(readonly == 1 && continuous == 1 && atomic == 0 && verbosity == MPI_T_VERBOSITY_TUNER_BASIC);
        CHECK(class == MPI_T_PVAR_CLASS_COUNTER || class == MPI_T_PVAR_CLASS_AGGREGATE);
        OK(MPI_T_pvar_get_index(name, class, &found));
        CHECK(found == i);
        CHECK(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_TIMER, &found) == MPI_T_ERR_INVALID_NAME);
        int few_len = sizeof few, none = 0;
        OK(MPI_T_pvar_get_info(i, few, &few_len, NULL, NULL, NULL, NULL, NULL, &none, NULL, NULL, NULL, NULL));
        CHECK(few_len == (int)sizeof few && strncmp(few, name, 5) == 0 && few[5] == 0);
        CHECK(none == text_len);
    }
    int len = 0;
    CHECK(MPI_T_pvar_get_info(number, NULL, &len, NULL, NULL, NULL, NULL, NULL, &len, NULL, NULL, NULL, NULL) ==
          MPI_T_ERR_INVALID_INDEX);
    CHECK(MPI_T_pvar_get_info(-1, NULL, &len, NULL, NULL, NULL, NULL, NULL, &len, NULL, NULL, NULL, NULL) ==
          MPI_T_ERR_INVALID_INDEX);
}

static void refused(MPI_T_pvar_handle handle) {
    unsigned long long got = 7;
    CHECK(MPI_T_pvar_start(session, handle) == MPI_T_ERR_PVAR_NO_STARTSTOP);
    CHECK(MPI_T_pvar_stop(session, handle) == MPI_T_ERR_PVAR_NO_STARTSTOP);
    CHECK(MPI_T_pvar_write(session, handle, &got) == MPI_T_ERR_PVAR_NO_WRITE);
    CHECK(MPI_T_pvar_reset(session, handle) == MPI_T_ERR_PVAR_NO_WRITE);
    CHECK(MPI_T_pvar_readreset(session, handle, &got) == MPI_T_ERR_PVAR_NO_WRITE && got == 7);
    OK(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES));
    OK(MPI_T_pvar_stop(session, MPI_T_PVAR_ALL_HANDLES));
    MPI_T_pvar_session other;
    OK(MPI_T_pvar_session_create(&other));
    CHECK(MPI_T_pvar_read(other, handle, &got) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_pvar_handle_free(other, &handle) == MPI_T_ERR_INVALID_HANDLE);
    MPI_T_pvar_session kept = other;
    OK(MPI_T_pvar_session_free(&other));
    CHECK(other == MPI_T_PVAR_SESSION_NULL && MPI_T_pvar_session_free(&kept) == MPI_T_ERR_INVALID_SESSION);
    CHECK(MPI_T_pvar_read(kept, handle, &got) == MPI_T_ERR_INVALID_SESSION);
}

int main(int argc, char **argv) {
    int provided, n;
    CHECK(MPI_T_pvar_get_num(&n) == MPI_T_ERR_NOT_INITIALIZED);
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_T_pvar_session_create(&session));
    all_variables();
    /* Before the job begins nothing has been counted. */
    MPI_T_pvar_handle puts = open_variable("transom_operations_of_put", MPI_T_PVAR_CLASS_COUNTER);
    MPI_T_pvar_handle bytes = open_variable("transom_bytes_of_put", MPI_T_PVAR_CLASS_AGGREGATE);
    MPI_T_pvar_handle adds = open_variable("transom_operations_of_fetch_and_op", MPI_T_PVAR_CLASS_COUNTER);
    MPI_T_pvar_handle direct = open_variable("transom_operations_by_direct", MPI_T_PVAR_CLASS_COUNTER);
    MPI_T_pvar_handle cpu = open_variable("transom_operations_by_cpu", MPI_T_PVAR_CLASS_COUNTER);
    CHECK(value(puts) == 0 && value(bytes) == 0);
    begin(&argc, &argv);

    /* Windows are counted that are made from now on, by no hint. */
    long *base, one = 1, old;
    MPI_Win win;
    OK(MPI_Win_allocate(64, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Win_lock_all(0, win));
    for (int i = 0; i < 5; i++) {
        OK(MPI_Put(&one, 1, MPI_LONG, (rank_ + 1) % size_, 1, 1, MPI_LONG, win));
        OK(MPI_Win_flush((rank_ + 1) % size_, win));
    }
    OK(MPI_Fetch_and_op(&one, &old, MPI_LONG, rank_, 2, MPI_SUM, win));
    OK(MPI_Win_unlock_all(win));
    CHECK(value(puts) == 5 && value(bytes) == 5 * sizeof(long) && value(adds) == 1);
    /* Own memory is reached directly, whatever the network. */
    CHECK(size_ > 1 || (value(direct) == 5 && value(cpu) == 1));
    refused(puts);
    OK(MPI_Win_free(&win));
    CHECK(value(puts) == 5 && value(adds) == 1);

    MPI_T_pvar_handle gone = puts;
    unsigned long long got;
    OK(MPI_T_pvar_handle_free(session, &puts));
    CHECK(puts == MPI_T_PVAR_HANDLE_NULL && MPI_T_pvar_read(session, gone, &got) == MPI_T_ERR_INVALID_HANDLE);
    end();
    OK(MPI_T_pvar_session_free(&session));
    OK(MPI_T_finalize());
    CHECK(MPI_T_pvar_get_num(&n) == MPI_T_ERR_NOT_INITIALIZED);
    return 0;
}
