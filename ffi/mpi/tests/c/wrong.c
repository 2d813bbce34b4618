/* Wrong arguments of every call of windows: the standard's error class, and never a crash. */
#include "check.h"

static long word, result;
static MPI_Request request;
static MPI_Group all;
static MPI_Info info;
static int flag, len, *value;
static MPI_Aint size;
static MPI_Count large;
static char name[MPI_MAX_OBJECT_NAME];
static void *base;

#define TRANSFER &word, 1, MPI_LONG, 0, 0, 1, MPI_LONG
#define FETCH &word, 1, MPI_LONG, &result, 1, MPI_LONG, 0, 0, 1, MPI_LONG

/* Every call on an existing window, with one that does not exist. */
static void no_window(MPI_Win win) {
    MPI_Win copy = win;
    const int codes[] = {
        MPI_Put(TRANSFER, win),
        MPI_Put_c(TRANSFER, win),
        MPI_Get(TRANSFER, win),
        MPI_Get_c(TRANSFER, win),
        MPI_Accumulate(TRANSFER, MPI_SUM, win),
        MPI_Accumulate_c(TRANSFER, MPI_SUM, win),
        MPI_Get_accumulate(FETCH, MPI_SUM, win),
        MPI_Get_accumulate_c(FETCH, MPI_SUM, win),
        MPI_Rput(TRANSFER, win, &request),
        MPI_Rput_c(TRANSFER, win, &request),
        MPI_Rget(TRANSFER, win, &request),
        MPI_Rget_c(TRANSFER, win, &request),
        MPI_Raccumulate(TRANSFER, MPI_SUM, win, &request),
        MPI_Raccumulate_c(TRANSFER, MPI_SUM, win, &request),
        MPI_Rget_accumulate(FETCH, MPI_SUM, win, &request),
        MPI_Rget_accumulate_c(FETCH, MPI_SUM, win, &request),
        MPI_Fetch_and_op(&word, &result, MPI_LONG, 0, 0, MPI_SUM, win),
        MPI_Compare_and_swap(&word, &word, &result, MPI_LONG, 0, 0, win),
        MPI_Win_fence(0, win),
        MPI_Win_post(all, 0, win),
        MPI_Win_start(all, 0, win),
        MPI_Win_complete(win),
        MPI_Win_wait(win),
        MPI_Win_test(win, &flag),
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win),
        MPI_Win_unlock(0, win),
        MPI_Win_lock_all(0, win),
        MPI_Win_unlock_all(win),
        MPI_Win_flush(0, win),
        MPI_Win_flush_all(win),
        MPI_Win_flush_local(0, win),
        MPI_Win_flush_local_all(win),
        MPI_Win_sync(win),
        MPI_Win_attach(win, &word, sizeof word),
        MPI_Win_detach(win, &word),
        MPI_Win_free(&copy),
        MPI_Win_shared_query(win, 0, &size, &len, &base),
        MPI_Win_shared_query_c(win, 0, &size, &size, &base),
        MPI_Win_get_group(win, &all),
        MPI_Win_set_name(win, "x"),
        MPI_Win_set_info(win, MPI_INFO_NULL),
        MPI_Win_get_info(win, &info),
        MPI_Win_get_attr(win, MPI_WIN_BASE, &value, &flag),
        MPI_Win_set_attr(win, MPI_WIN_BASE, &word),
        MPI_Win_delete_attr(win, MPI_WIN_BASE),
        MPI_Win_get_errhandler(win, (MPI_Errhandler *)&base),
        MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN),
        MPI_Win_call_errhandler(win, MPI_ERR_OTHER),
    };
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        if (class_of(codes[i]) == MPI_ERR_WIN) continue;
        /* Predefined attributes cannot be set, whatever the window. */
        if (class_of(codes[i]) == MPI_ERR_KEYVAL) continue;
        fprintf(stderr, "call %zu with window %p: class %d\n", i, (void *)win, class_of(codes[i]));
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    if (win != MPI_WIN_NULL) FAILS(MPI_Win_get_name(win, name, &len), MPI_ERR_WIN);
}

/* Each argument of each operation, in an epoch to rank 0. `call` has the names of the arguments. */
struct arguments {
    void *origin;
    int count;
    MPI_Datatype type;
    int rank;
    MPI_Aint at;
    int target_count;
    MPI_Datatype target_type;
    MPI_Op op;
};

static const char *const calls[] = {"Put", "Get", "Accumulate", "Get_accumulate", "Rput", "Rget", "Raccumulate", "Rget_accumulate",
                              "Fetch_and_op", "Compare_and_swap"};

static int call(int which, struct arguments a, MPI_Win win) {
    switch (which) {
    case 0: return MPI_Put(a.origin, a.count, a.type, a.rank, a.at, a.target_count, a.target_type, win);
    case 1: return MPI_Get(a.origin, a.count, a.type, a.rank, a.at, a.target_count, a.target_type, win);
    case 2: return MPI_Accumulate(a.origin, a.count, a.type, a.rank, a.at, a.target_count, a.target_type, a.op, win);
    case 3:
        return MPI_Get_accumulate(a.origin, a.count, a.type, &result, a.count, a.type, a.rank, a.at, a.target_count,
                                  a.target_type, a.op, win);
    case 4: return MPI_Rput(a.origin, a.count, a.type, a.rank, a.at, a.target_count, a.target_type, win, &request);
    case 5: return MPI_Rget(a.origin, a.count, a.type, a.rank, a.at, a.target_count, a.target_type, win, &request);
    case 6:
        return MPI_Raccumulate(a.origin, a.count, a.type, a.rank, a.at, a.target_count, a.target_type, a.op, win,
                               &request);
    case 7:
        return MPI_Rget_accumulate(a.origin, a.count, a.type, &result, a.count, a.type, a.rank, a.at, a.target_count,
                                   a.target_type, a.op, win, &request);
    case 8: return MPI_Fetch_and_op(a.origin, &result, a.type, a.rank, a.at, a.op, win);
    default: return MPI_Compare_and_swap(a.origin, &word, &result, a.type, a.rank, a.at, win);
    }
}

/* Which calls have which arguments. */
enum { ALL = 0x3ff, COUNTS = 0xff, OPS = 0x1cc, REQUESTS = 0xf0 };

static void wrong_arguments(MPI_Win win, MPI_Datatype derived, MPI_Datatype uncommitted, MPI_Op own) {
    const struct arguments good = {&word, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM};
    struct {
        const char *what;
        struct arguments a;
        int calls, class;
    } table[] = {
        {"nothing", good, ALL, MPI_SUCCESS},
        {"rank of nobody", good, ALL, MPI_ERR_RANK},
        {"negative rank", good, ALL, MPI_ERR_RANK},
        {"wildcard as a rank", good, ALL, MPI_ERR_RANK},
        {"negative displacement", good, ALL, MPI_ERR_DISP},
        {"displacement behind the end", good, ALL, MPI_ERR_RMA_RANGE},
        {"absurd displacement", good, ALL, MPI_ERR_RMA_RANGE},
        {"null datatype", good, ALL, MPI_ERR_TYPE},
        {"garbage datatype", good, ALL, MPI_ERR_TYPE},
        {"null datatype at the target", good, COUNTS, MPI_ERR_TYPE},
        {"datatype that is not committed", good, COUNTS, MPI_ERR_TYPE},
        {"datatypes that do not match", good, COUNTS, MPI_ERR_TYPE},
        {"derived datatype of one element", good, ALL & ~COUNTS, MPI_ERR_TYPE},
        {"negative count", good, COUNTS, MPI_ERR_COUNT},
        {"negative count at the target", good, COUNTS, MPI_ERR_COUNT},
        {"null operation", good, OPS, MPI_ERR_OP},
        {"garbage operation", good, OPS, MPI_ERR_OP},
        {"operation of the program's", good, OPS, MPI_ERR_OP},
        {"operation not on this type", good, OPS, MPI_ERR_OP},
        {"null buffer", good, ALL, MPI_ERR_BUFFER},
    };
    int n = 0;
    table[++n].a.rank = size_;
    table[++n].a.rank = -7;
    table[++n].a.rank = MPI_ANY_SOURCE;
    table[++n].a.at = -1;
    table[++n].a.at = 4;
    table[++n].a.at = INTPTR_MAX / 4;
    table[++n].a.type = MPI_DATATYPE_NULL;
    table[++n].a.type = (MPI_Datatype)(intptr_t)0x7654321;
    table[++n].a.target_type = MPI_DATATYPE_NULL;
    n++;
    table[n].a.type = table[n].a.target_type = uncommitted;
    table[++n].a.target_type = MPI_DOUBLE;
    table[++n].a.type = derived;
    n++;
    table[n].a.count = table[n].a.target_count = -1;
    table[++n].a.target_count = -1;
    table[++n].a.op = MPI_OP_NULL;
    table[++n].a.op = (MPI_Op)(intptr_t)0x7654321;
    table[++n].a.op = own;
    table[++n].a.op = MPI_MINLOC;
    table[++n].a.origin = NULL;
    CHECK(n + 1 == sizeof table / sizeof *table);
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    for (int i = 0; i <= n; i++)
        for (int which = 0; which < 10; which++) {
            if (!(table[i].calls >> which & 1)) continue;
            int class = class_of(call(which, table[i].a, win));
            if (class == MPI_SUCCESS && REQUESTS >> which & 1) OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            if (class == table[i].class) continue;
            fprintf(stderr, "MPI_%s, %s: class %d, expected %d\n", calls[which], table[i].what, class,
                    table[i].class);
            MPI_Abort(MPI_COMM_WORLD, 3);
        }
    OK(MPI_Win_unlock(0, win));
}

static void wrong_synchronisation(MPI_Win win) {
    for (int which = 0; which < 10; which++) {
        struct arguments a = {&word, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM};
        FAILS(call(which, a, win), MPI_ERR_RMA_SYNC);
    }
    FAILS(MPI_Win_unlock(0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_unlock_all(win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_complete(win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_wait(win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_test(win, &flag), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_flush(0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_flush_all(win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_flush_local(0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_flush_local_all(win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_lock(7, 0, 0, win), MPI_ERR_LOCKTYPE);
    FAILS(MPI_Win_lock(MPI_LOCK_SHARED, size_, 0, win), MPI_ERR_RANK);
    FAILS(MPI_Win_lock(MPI_LOCK_SHARED, 0, 1, win), MPI_ERR_ASSERT);
    FAILS(MPI_Win_lock_all(MPI_MODE_NOPUT, win), MPI_ERR_ASSERT);
    FAILS(MPI_Win_fence(-1, win), MPI_ERR_ASSERT);
    FAILS(MPI_Win_post(MPI_GROUP_NULL, 0, win), MPI_ERR_GROUP);
    FAILS(MPI_Win_start(MPI_GROUP_NULL, 0, win), MPI_ERR_GROUP);
    FAILS(MPI_Win_attach(win, &word, sizeof word), MPI_ERR_RMA_FLAVOR);
    FAILS(MPI_Win_shared_query(win, size_, &size, &len, &base), MPI_ERR_RANK);
    OK(MPI_Win_lock_all(0, win));
    FAILS(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_fence(0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_free(&win), MPI_ERR_RMA_SYNC);
    CHECK(win != MPI_WIN_NULL);
    OK(MPI_Win_unlock_all(win));
}

static void wrong_creation(void) {
    MPI_Win win = MPI_WIN_NULL;
    FAILS(MPI_Win_create(&word, -1, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_SIZE);
    FAILS(MPI_Win_create(&word, 8, 0, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_DISP);
    FAILS(MPI_Win_create(NULL, 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_BASE);
    FAILS(MPI_Win_create(&word, 8, 1, (MPI_Info)(intptr_t)77, MPI_COMM_WORLD, &win), MPI_ERR_INFO);
    FAILS(MPI_Win_create(&word, 8, 1, MPI_INFO_NULL, MPI_COMM_NULL, &win), MPI_ERR_COMM);
    FAILS(MPI_Win_allocate(-1, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win), MPI_ERR_SIZE);
    FAILS(MPI_Win_allocate(8, -1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win), MPI_ERR_DISP);
    FAILS(MPI_Win_allocate_shared(8, 1, MPI_INFO_NULL, MPI_COMM_NULL, &base, &win), MPI_ERR_COMM);
    FAILS(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_NULL, &win), MPI_ERR_COMM);
    CHECK(win == MPI_WIN_NULL);
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_SELF, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    FAILS(MPI_Win_detach(win, &word), MPI_ERR_RMA_ATTACH);
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    FAILS(MPI_Put(&word, 1, MPI_LONG, 0, (MPI_Aint)&result, 1, MPI_LONG, win), MPI_ERR_RMA_RANGE);
    OK(MPI_Win_unlock(0, win));
    OK(MPI_Win_free(&win));
}

static void ignored(void *a, void *b, int *n, MPI_Datatype *t) { (void)a, (void)b, (void)n, (void)t; }

int main(int argc, char **argv) {
    begin(&argc, &argv);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    MPI_Win win, stale;
    MPI_Datatype derived, uncommitted;
    MPI_Op own;
    long memory[4] = {0};
    (void)large;
    OK(MPI_Type_contiguous(1, MPI_LONG, &derived));
    OK(MPI_Type_commit(&derived));
    OK(MPI_Type_contiguous(1, MPI_LONG, &uncommitted));
    OK(MPI_Op_create(ignored, 1, &own));

    OK(MPI_Win_create(memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    wrong_arguments(win, derived, uncommitted, own);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    wrong_synchronisation(win);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    stale = win;
    OK(MPI_Win_free(&win));
    no_window(MPI_WIN_NULL);
    no_window(stale);
    no_window((MPI_Win)MPI_COMM_WORLD);
    no_window((MPI_Win)(intptr_t)-1);
    no_window((MPI_Win)(void *)memory);
    wrong_creation();
    OK(MPI_Op_free(&own));
    OK(MPI_Type_free(&derived));
    OK(MPI_Type_free(&uncommitted));
    OK(MPI_Group_free(&all));
    return end();
}
