/* Environment, error handlers, error codes, info objects (MPI-4.1 chapters 9, 10, 11). */
#include "check.h"

static int called, last;

static void handler(MPI_Comm *comm, int *code, ...) {
    CHECK(*comm == MPI_COMM_WORLD);
    called++;
    last = *code;
}

static void of_window(MPI_Win *win, int *code, ...) {
    CHECK(*win != MPI_WIN_NULL);
    called++;
    last = *code;
}

/* A handler that calls what is missing, and what fails. */
static void clumsy(MPI_Comm *comm, int *code, ...) {
    char port[MPI_MAX_PORT_NAME];
    last = *code;
    called++;
    CHECK(class_of(MPI_Open_port(MPI_INFO_NULL, port)) == MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK(class_of(MPI_Send(port, 1, MPI_CHAR, size_, 0, *comm)) == MPI_ERR_RANK);
}

static void handlers_that_fail(void) {
    MPI_Errhandler mine;
    char port[MPI_MAX_PORT_NAME];
    OK(MPI_Comm_create_errhandler(clumsy, &mine));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, mine));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, mine));
    called = 0;
    FAILS(MPI_Open_port(MPI_INFO_NULL, port), MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK(called == 1 && last == MPI_ERR_UNSUPPORTED_OPERATION);
    FAILS(MPI_Send(port, 1, MPI_CHAR, size_, 0, MPI_COMM_WORLD), MPI_ERR_RANK);
    CHECK(called == 2 && last == MPI_ERR_RANK);
    errors_return();
    OK(MPI_Errhandler_free(&mine));
}

static void errors(void) {
    MPI_Errhandler mine, current, again;
    int len, class_, code, flag, *used;
    char text[MPI_MAX_ERROR_STRING];

    OK(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &current));
    CHECK(current == MPI_ERRORS_ARE_FATAL);
    OK(MPI_Comm_create_errhandler(handler, &mine));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, mine));
    OK(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &again));
    CHECK(again == mine);
    OK(MPI_Errhandler_free(&again));
    OK(MPI_Errhandler_free(&mine));
    CHECK(mine == MPI_ERRHANDLER_NULL);
    FAILS(MPI_Send(text, 1, MPI_CHAR, size_, 0, MPI_COMM_WORLD), MPI_ERR_RANK);
    CHECK(called == 1 && last == MPI_ERR_RANK);
    OK(MPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_OTHER));
    CHECK(called == 2 && last == MPI_ERR_OTHER);
    errors_return();
    FAILS(MPI_Send(text, 1, MPI_CHAR, size_, 0, MPI_COMM_WORLD), MPI_ERR_RANK);
    CHECK(called == 2);
    OK(MPI_Error_string(MPI_ERR_RANK, text, &len));
    CHECK(strlen(text) == (size_t)len && strstr(text, "MPI_ERR_RANK") && strstr(text, "MPI_Send"));
    FAILS(MPI_Comm_size(MPI_COMM_NULL, &len), MPI_ERR_COMM);
    /* What is missing says so, by the handler. */
    FAILS(MPI_Open_port(MPI_INFO_NULL, text), MPI_ERR_UNSUPPORTED_OPERATION);
    OK(MPI_Error_string(MPI_ERR_UNSUPPORTED_OPERATION, text, &len));
    CHECK(strstr(text, "MPI_Open_port"));

    OK(MPI_Add_error_class(&class_));
    OK(MPI_Add_error_code(class_, &code));
    OK(MPI_Add_error_string(code, "out of cheese"));
    CHECK(class_ > MPI_ERR_LASTCODE && code > class_ && class_of(code) == class_);
    OK(MPI_Error_string(code, text, &len));
    CHECK(strcmp(text, "out of cheese") == 0);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &used, &flag));
    CHECK(flag && *used == code);
    FAILS(MPI_Remove_error_class(class_), MPI_ERR_ARG);
    FAILS(MPI_Remove_error_code(code), MPI_ERR_ARG);
    OK(MPI_Remove_error_string(code));
    OK(MPI_Remove_error_code(code));
    OK(MPI_Remove_error_class(class_));

    MPI_Win win;
    OK(MPI_Win_create(text, sizeof text, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_get_errhandler(win, &current));
    CHECK(current == MPI_ERRORS_ARE_FATAL);
    OK(MPI_Win_create_errhandler(of_window, &mine));
    OK(MPI_Win_set_errhandler(win, mine));
    FAILS(MPI_Put(text, 1, MPI_CHAR, 0, 0, 1, MPI_CHAR, win), MPI_ERR_RMA_SYNC);
    CHECK(called == 3 && last == MPI_ERR_RMA_SYNC);
    /* A handler of windows is not one of communicators. */
    FAILS(MPI_Comm_set_errhandler(MPI_COMM_WORLD, mine), MPI_ERR_ERRHANDLER);
    OK(MPI_Errhandler_free(&mine));
    OK(MPI_Win_free(&win));
}

static void infos(void) {
    MPI_Info info, copy;
    char value[MPI_MAX_INFO_VAL + 1], key[MPI_MAX_INFO_KEY];
    int n, flag, len;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "b", "two"));
    OK(MPI_Info_set(info, "a", "one"));
    OK(MPI_Info_dup(info, &copy));
    OK(MPI_Info_set(info, "b", "three"));
    OK(MPI_Info_get_nkeys(copy, &n));
    OK(MPI_Info_get_nthkey(copy, 0, key));
    CHECK(n == 2 && strcmp(key, "b") == 0);
    OK(MPI_Info_get(copy, "b", 2, value, &flag));
    CHECK(flag && strcmp(value, "tw") == 0);
    len = sizeof value;
    OK(MPI_Info_get_string(info, "b", &len, value, &flag));
    CHECK(flag && len == 6 && strcmp(value, "three") == 0);
    OK(MPI_Info_get_valuelen(info, "b", &len, &flag));
    CHECK(flag && len == 5);
    OK(MPI_Info_delete(info, "b"));
    FAILS(MPI_Info_delete(info, "b"), MPI_ERR_INFO_NOKEY);
    FAILS(MPI_Info_set(info, "", "x"), MPI_ERR_INFO_KEY);
    memset(value, 'x', MPI_MAX_INFO_VAL);
    value[MPI_MAX_INFO_VAL] = 0;
    FAILS(MPI_Info_set(info, "k", value), MPI_ERR_INFO_VALUE);
    OK(MPI_Info_free(&copy));
    CHECK(copy == MPI_INFO_NULL);
    FAILS(MPI_Info_free(&copy), MPI_ERR_INFO);
    copy = info;
    OK(MPI_Info_free(&info));
    FAILS(MPI_Info_get_nkeys(copy, &n), MPI_ERR_INFO);
}

/* The tools' interface has nothing to tell, and says so. */
static void tools(void) {
    int provided, n, index;
    MPI_T_pvar_session session;
    CHECK(MPI_T_cvar_get_num(&n) == MPI_T_ERR_NOT_INITIALIZED);
    OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    OK(MPI_T_cvar_get_num(&n));
    CHECK(n == 0 && MPI_T_cvar_get_index("x", &index) == MPI_T_ERR_INVALID_NAME);
    OK(MPI_T_pvar_session_create(&session));
    OK(MPI_T_pvar_session_free(&session));
    CHECK(session == MPI_T_PVAR_SESSION_NULL);
    OK(MPI_T_finalize());
}

/* What hardware restricts this process, and communicators of the processes on one piece of it. */
static void hardware(void) {
    MPI_Info info, guide;
    MPI_Comm part;
    char key[MPI_MAX_INFO_KEY + 1], value[8];
    int n, flag, machine = 0, size;
    OK(MPI_Get_hw_resource_info(&info));
    OK(MPI_Info_get_nkeys(info, &n));
    CHECK(n >= 1);
    OK(MPI_Info_create(&guide));
    for (int i = 0; i < n; i++) {
        OK(MPI_Info_get_nthkey(info, i, key));
        OK(MPI_Info_get(info, key, 7, value, &flag));
        CHECK(flag && strstr(key, "://") && (strcmp(value, "true") == 0 || strcmp(value, "false") == 0));
        OK(MPI_Info_set(guide, "mpi_hw_resource_type", key));
        OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, guide, &part));
        CHECK((part != MPI_COMM_NULL) == (strcmp(value, "true") == 0));
        if (strcmp(key, "hwloc://Machine") == 0) {
            OK(MPI_Comm_size(part, &size));
            machine = size == size_;
        }
        if (part != MPI_COMM_NULL) OK(MPI_Comm_free(&part));
    }
    CHECK(machine);
    OK(MPI_Info_set(guide, "mpi_hw_resource_type", "hwloc://Moon"));
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_HW_GUIDED, 0, guide, &part));
    CHECK(part == MPI_COMM_NULL);
    OK(MPI_Info_free(&guide));
    OK(MPI_Info_free(&info));
    FAILS(MPI_Get_hw_resource_info(NULL), MPI_ERR_ARG);
}

int main(int argc, char **argv) {
    int flag, version, subversion, len, provided, *value;
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    OK(MPI_Initialized(&flag));
    CHECK(!flag);
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    CHECK(provided == MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    OK(MPI_Query_thread(&provided));
    CHECK(provided == MPI_THREAD_MULTIPLE);
    OK(MPI_Is_thread_main(&flag));
    CHECK(flag);
    OK(MPI_Initialized(&flag));
    CHECK(flag);
    OK(MPI_Finalized(&flag));
    CHECK(!flag);
    OK(MPI_Get_version(&version, &subversion));
    CHECK(version == MPI_VERSION && subversion == MPI_SUBVERSION);
    OK(MPI_Abi_get_version(&version, &subversion));
#ifdef MPI_ABI_VERSION
    CHECK(version == MPI_ABI_VERSION && subversion == MPI_ABI_SUBVERSION);
#else
    /* Another ABI (MPI-5.0 section 20.2) */
    CHECK(version == -1 && subversion == -1);
#endif
    OK(MPI_Get_library_version(text, &len));
    CHECK(strncmp(text, "Transom", 7) == 0 && strlen(text) == (size_t)len);
    OK(MPI_Get_processor_name(text, &len));
    CHECK(strlen(text) == (size_t)len);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag));
    CHECK(flag && *value >= 32767);
    double start = MPI_Wtime();
    while (MPI_Wtime() - start < 0.01) {
    }
    CHECK(MPI_Wtick() > 0 && MPI_Wtick() < 0.001);
    void *memory = NULL;
    OK(MPI_Alloc_mem(1000, MPI_INFO_NULL, &memory));
    CHECK(memory != NULL);
    memset(memory, 1, 1000);
    OK(MPI_Free_mem(memory));
    MPI_Aint a, b;
    OK(MPI_Get_address(text, &a));
    OK(MPI_Get_address(text + 5, &b));
    CHECK(MPI_Aint_diff(b, a) == 5 && MPI_Aint_add(a, 5) == b);
    errors();
    handlers_that_fail();
    infos();
    tools();
    hardware();
    return end();
}
