/* Every function of windows with every kind of wrong argument that it can be given: the standard's error class, and never a
 * crash. FUNCTIONS is all of them (a test compares); each says which arguments it has, and WRONG what is wrong with those. */
#include <limits.h>
#include <stdint.h>

#include "check.h"

/* The arguments of a call. */
struct values {
    void *origin, *compare, *result, *base;
    int count, target_count, result_count;
    MPI_Datatype type, target_type, result_type;
    int rank;
    MPI_Aint at, size;
    int unit;
    MPI_Op op;
    MPI_Win win;
    MPI_Comm comm;
    MPI_Info info;
    MPI_Group group;
    MPI_Errhandler handler;
    int assertion, lock, keyval;
    char *name;
    /* Places for results. */
    MPI_Request *request;
    MPI_Win *win_place;
    MPI_Group *group_place;
    MPI_Info *info_place;
    MPI_Errhandler *handler_place;
    MPI_Aint *size_place;
    int *flag, *len, *keyval_place, *unit_place;
    void *base_place, *value;
    MPI_Win_errhandler_function *function;
};

/* Which arguments there are. */
#define WIN (1ull << 0)
#define RANK (1ull << 1)
#define AT (1ull << 2)
#define ORIGIN (1ull << 3)
#define COUNTS (1ull << 4)
#define TYPE (1ull << 5)
#define RESULT (1ull << 6)
#define RESULT_LAYOUT (1ull << 7)
#define COMPARE (1ull << 8)
#define OP (1ull << 9)
#define REQUEST (1ull << 10)
#define COMM (1ull << 11)
#define INFO (1ull << 12)
#define SIZE (1ull << 13)
#define UNIT (1ull << 14)
#define BASE (1ull << 15)
#define ASSERTION (1ull << 16)
#define LOCK (1ull << 17)
#define GROUP (1ull << 18)
#define KEYVAL (1ull << 19)
#define HANDLER (1ull << 20)
#define NAME (1ull << 21)
#define FLAG (1ull << 22)
#define LEN (1ull << 23)
#define TO_WIN (1ull << 24)
#define TO_GROUP (1ull << 25)
#define TO_INFO (1ull << 26)
#define TO_HANDLER (1ull << 27)
#define TO_SIZE (1ull << 28)
#define TO_BASE (1ull << 29)
#define TO_KEYVAL (1ull << 30)
#define VALUE (1ull << 31)
#define FUNCTION (1ull << 32)
#define NULL_WIN (1ull << 33) /* MPI_WIN_NULL is wrong */
#define ATTACHED (1ull << 34) /* memory is attached */

#define A_WIN (WIN | NULL_WIN)
#define TRANSFER (A_WIN | RANK | AT | ORIGIN | COUNTS | TYPE)
#define FETCH (TRANSFER | RESULT | RESULT_LAYOUT | OP)
#define ONE (A_WIN | RANK | AT | ORIGIN | TYPE | RESULT)
#define MADE (COMM | INFO | SIZE | UNIT | TO_WIN)

#define HERE v->origin, v->count, v->type
#define THERE v->rank, v->at, v->target_count, v->target_type
#define TO v->result, v->result_count, v->result_type

#define FUNCTIONS(X)                                                                                              \
    X(Accumulate, TRANSFER | OP, MPI_Accumulate(HERE, THERE, v->op, v->win))                                      \
    X(Accumulate_c, TRANSFER | OP, MPI_Accumulate_c(HERE, THERE, v->op, v->win))                                  \
    X(Compare_and_swap, ONE | COMPARE,                                                                            \
      MPI_Compare_and_swap(v->origin, v->compare, v->result, v->type, v->rank, v->at, v->win))                    \
    X(Fetch_and_op, ONE | OP, MPI_Fetch_and_op(v->origin, v->result, v->type, v->rank, v->at, v->op, v->win))     \
    X(Get, TRANSFER, MPI_Get(HERE, THERE, v->win))                                                                \
    X(Get_c, TRANSFER, MPI_Get_c(HERE, THERE, v->win))                                                            \
    X(Get_accumulate, FETCH, MPI_Get_accumulate(HERE, TO, THERE, v->op, v->win))                                  \
    X(Get_accumulate_c, FETCH, MPI_Get_accumulate_c(HERE, TO, THERE, v->op, v->win))                              \
    X(Put, TRANSFER, MPI_Put(HERE, THERE, v->win))                                                                \
    X(Put_c, TRANSFER, MPI_Put_c(HERE, THERE, v->win))                                                            \
    X(Raccumulate, TRANSFER | OP | REQUEST, MPI_Raccumulate(HERE, THERE, v->op, v->win, v->request))              \
    X(Raccumulate_c, TRANSFER | OP | REQUEST, MPI_Raccumulate_c(HERE, THERE, v->op, v->win, v->request))          \
    X(Rget, TRANSFER | REQUEST, MPI_Rget(HERE, THERE, v->win, v->request))                                        \
    X(Rget_c, TRANSFER | REQUEST, MPI_Rget_c(HERE, THERE, v->win, v->request))                                    \
    X(Rget_accumulate, FETCH | REQUEST, MPI_Rget_accumulate(HERE, TO, THERE, v->op, v->win, v->request))          \
    X(Rget_accumulate_c, FETCH | REQUEST, MPI_Rget_accumulate_c(HERE, TO, THERE, v->op, v->win, v->request))      \
    X(Rput, TRANSFER | REQUEST, MPI_Rput(HERE, THERE, v->win, v->request))                                        \
    X(Rput_c, TRANSFER | REQUEST, MPI_Rput_c(HERE, THERE, v->win, v->request))                                    \
    X(Win_allocate, MADE | TO_BASE,                                                                               \
      MPI_Win_allocate(v->size, v->unit, v->info, v->comm, v->base_place, v->win_place))                          \
    X(Win_allocate_c, MADE | TO_BASE,                                                                             \
      MPI_Win_allocate_c(v->size, v->unit, v->info, v->comm, v->base_place, v->win_place))                        \
    X(Win_allocate_shared, MADE | TO_BASE,                                                                        \
      MPI_Win_allocate_shared(v->size, v->unit, v->info, v->comm, v->base_place, v->win_place))                   \
    X(Win_allocate_shared_c, MADE | TO_BASE,                                                                      \
      MPI_Win_allocate_shared_c(v->size, v->unit, v->info, v->comm, v->base_place, v->win_place))                 \
    X(Win_attach, A_WIN | SIZE | ATTACHED, MPI_Win_attach(v->win, v->base, v->size))                              \
    X(Win_call_errhandler, A_WIN, MPI_Win_call_errhandler(v->win, MPI_ERR_OTHER))                                 \
    X(Win_complete, A_WIN, MPI_Win_complete(v->win))                                                              \
    X(Win_create, MADE | BASE, MPI_Win_create(v->base, v->size, v->unit, v->info, v->comm, v->win_place))         \
    X(Win_create_c, MADE | BASE, MPI_Win_create_c(v->base, v->size, v->unit, v->info, v->comm, v->win_place))     \
    X(Win_create_dynamic, COMM | INFO | TO_WIN, MPI_Win_create_dynamic(v->info, v->comm, v->win_place))           \
    X(Win_create_errhandler, FUNCTION | TO_HANDLER, MPI_Win_create_errhandler(v->function, v->handler_place))     \
    X(Win_create_keyval, TO_KEYVAL,                                                                               \
      MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, v->keyval_place, NULL))                 \
    X(Win_delete_attr, A_WIN | KEYVAL, MPI_Win_delete_attr(v->win, v->keyval))                                    \
    X(Win_detach, A_WIN, MPI_Win_detach(v->win, v->base))                                                         \
    X(Win_fence, A_WIN | ASSERTION, MPI_Win_fence(v->assertion, v->win))                                          \
    X(Win_flush, A_WIN | RANK, MPI_Win_flush(v->rank, v->win))                                                    \
    X(Win_flush_all, A_WIN, MPI_Win_flush_all(v->win))                                                            \
    X(Win_flush_local, A_WIN | RANK, MPI_Win_flush_local(v->rank, v->win))                                        \
    X(Win_flush_local_all, A_WIN, MPI_Win_flush_local_all(v->win))                                                \
    X(Win_free, A_WIN, free_it(v))                                                                                \
    X(Win_free_keyval, TO_KEYVAL, MPI_Win_free_keyval(v->keyval_place))                                           \
    X(Win_fromint, 0, MPI_Win_fromint(MPI_Win_toint(v->win)) == v->win ? MPI_SUCCESS : MPI_ERR_INTERN)            \
    X(Win_get_attr, A_WIN | KEYVAL | VALUE | FLAG, MPI_Win_get_attr(v->win, v->keyval, v->value, v->flag))        \
    X(Win_get_errhandler, A_WIN | TO_HANDLER, MPI_Win_get_errhandler(v->win, v->handler_place))                   \
    X(Win_get_group, A_WIN | TO_GROUP, MPI_Win_get_group(v->win, v->group_place))                                 \
    X(Win_get_info, A_WIN | TO_INFO, MPI_Win_get_info(v->win, v->info_place))                                     \
    X(Win_get_name, WIN | NAME | LEN, MPI_Win_get_name(v->win, v->name, v->len))                                  \
    X(Win_lock, A_WIN | LOCK | RANK | ASSERTION, MPI_Win_lock(v->lock, v->rank, v->assertion, v->win))            \
    X(Win_lock_all, A_WIN | ASSERTION, MPI_Win_lock_all(v->assertion, v->win))                                    \
    X(Win_post, A_WIN | GROUP | ASSERTION, MPI_Win_post(v->group, v->assertion, v->win))                          \
    X(Win_set_attr, A_WIN | KEYVAL, MPI_Win_set_attr(v->win, v->keyval, v->value))                                \
    X(Win_set_errhandler, A_WIN | HANDLER, MPI_Win_set_errhandler(v->win, v->handler))                            \
    X(Win_set_info, A_WIN | INFO, MPI_Win_set_info(v->win, v->info))                                              \
    X(Win_set_name, A_WIN | NAME, MPI_Win_set_name(v->win, v->name))                                              \
    X(Win_shared_query, A_WIN | RANK | TO_SIZE | TO_BASE,                                                         \
      MPI_Win_shared_query(v->win, v->rank, v->size_place, v->unit_place, v->base_place))                         \
    X(Win_shared_query_c, A_WIN | RANK | TO_SIZE | TO_BASE,                                                       \
      MPI_Win_shared_query_c(v->win, v->rank, v->size_place, &wide, v->base_place))                               \
    X(Win_start, A_WIN | GROUP | ASSERTION, MPI_Win_start(v->group, v->assertion, v->win))                        \
    X(Win_sync, A_WIN, MPI_Win_sync(v->win))                                                                      \
    X(Win_test, A_WIN | FLAG, MPI_Win_test(v->win, v->flag))                                                      \
    X(Win_toint, 0, MPI_Win_toint(v->win) != 0 ? MPI_SUCCESS : MPI_ERR_INTERN)                                    \
    X(Win_unlock, A_WIN | RANK, MPI_Win_unlock(v->rank, v->win))                                                  \
    X(Win_unlock_all, A_WIN, MPI_Win_unlock_all(v->win))                                                          \
    X(Win_wait, A_WIN, MPI_Win_wait(v->win))

static MPI_Aint wide;

static int free_it(struct values *v) {
    MPI_Win copy = v->win;
    return MPI_Win_free(&copy);
}

#define DEFINE(name, has, call) \
    static int call_##name(struct values *v) { return call; }
FUNCTIONS(DEFINE)

static const struct {
    const char *name;
    unsigned long long has;
    int (*call)(struct values *);
} functions[] = {
#define ENTRY(name, has, call) {"MPI_" #name, has, call_##name},
    FUNCTIONS(ENTRY)};

/* Handles that lead nowhere. */
static MPI_Win freed_win;
static MPI_Comm freed_comm;
static MPI_Info freed_info;
static MPI_Group freed_group;
static MPI_Errhandler comm_handler;
static MPI_Datatype uncommitted, freed_type;
static MPI_Op own_op, freed_op;
static int comm_keyval, freed_keyval;

#define GARBAGE(type) ((type)(intptr_t)0x7654321)

/* What is wrong: the functions that have an argument (and none of others), how it is set, the class. */
#define WRONG(X)                                                          \
    X("null window", NULL_WIN, 0, win, MPI_WIN_NULL, MPI_ERR_WIN)         \
    X("freed window", WIN, 0, win, freed_win, MPI_ERR_WIN)                \
    X("communicator as a window", WIN, 0, win, (MPI_Win)MPI_COMM_WORLD, MPI_ERR_WIN)      \
    X("garbage window", WIN, 0, win, GARBAGE(MPI_Win), MPI_ERR_WIN)       \
    X("address as a window", WIN, 0, win, (MPI_Win)(intptr_t)&wide, MPI_ERR_WIN)            \
    X("-1 as a window", WIN, 0, win, (MPI_Win)(intptr_t)-1, MPI_ERR_WIN)  \
    X("rank of nobody", RANK, 0, rank, size_, MPI_ERR_RANK)               \
    X("high rank", RANK, 0, rank, INT_MAX, MPI_ERR_RANK)                  \
    X("negative rank", RANK, 0, rank, -7, MPI_ERR_RANK)                   \
    X("wildcard as a rank", RANK, 0, rank, MPI_ANY_SOURCE, MPI_ERR_RANK)  \
    X("negative displacement", AT, 0, at, -1, MPI_ERR_DISP)               \
    X("displacement behind the end", AT, 0, at, 4, MPI_ERR_RMA_RANGE)     \
    X("absurd displacement", AT, 0, at, INTPTR_MAX / 4, MPI_ERR_RMA_RANGE)                \
    X("null buffer", ORIGIN, 0, origin, NULL, MPI_ERR_BUFFER)             \
    X("null result", RESULT, 0, result, NULL, MPI_ERR_BUFFER)             \
    X("null comparand", COMPARE, 0, compare, NULL, MPI_ERR_BUFFER)        \
    X("MPI_IN_PLACE as a buffer", ORIGIN, 0, origin, MPI_IN_PLACE, MPI_ERR_BUFFER)        \
    X("negative count", COUNTS, 0, count, -1, MPI_ERR_COUNT)              \
    X("negative count at the target", COUNTS, 0, target_count, -1, MPI_ERR_COUNT)         \
    X("negative count of results", RESULT_LAYOUT, 0, result_count, -1, MPI_ERR_COUNT)     \
    X("null datatype", TYPE, 0, type, MPI_DATATYPE_NULL, MPI_ERR_TYPE)    \
    X("garbage datatype", TYPE, 0, type, GARBAGE(MPI_Datatype), MPI_ERR_TYPE)             \
    X("freed datatype", TYPE, 0, type, freed_type, MPI_ERR_TYPE)          \
    X("datatype that is not committed", TYPE, 0, type, uncommitted, MPI_ERR_TYPE)         \
    X("null datatype at the target", COUNTS, 0, target_type, MPI_DATATYPE_NULL, MPI_ERR_TYPE)        \
    X("garbage datatype at the target", COUNTS, 0, target_type, GARBAGE(MPI_Datatype), MPI_ERR_TYPE) \
    X("datatype of the target not committed", COUNTS, 0, target_type, uncommitted, MPI_ERR_TYPE)     \
    X("datatypes that do not match", COUNTS, 0, target_type, MPI_DOUBLE, MPI_ERR_TYPE)    \
    X("null datatype of results", RESULT_LAYOUT, 0, result_type, MPI_DATATYPE_NULL, MPI_ERR_TYPE)    \
    X("results of another type", RESULT_LAYOUT, 0, result_type, MPI_DOUBLE, MPI_ERR_TYPE) \
    X("datatype of results not committed", RESULT_LAYOUT, 0, result_type, uncommitted, MPI_ERR_TYPE) \
    X("null operation", OP, 0, op, MPI_OP_NULL, MPI_ERR_OP)               \
    X("garbage operation", OP, 0, op, GARBAGE(MPI_Op), MPI_ERR_OP)        \
    X("freed operation", OP, 0, op, freed_op, MPI_ERR_OP)                 \
    X("operation of the program's", OP, 0, op, own_op, MPI_ERR_OP)        \
    X("operation not on this type", OP, 0, op, MPI_MINLOC, MPI_ERR_OP)    \
    X("null place for a request", REQUEST, 0, request, NULL, MPI_ERR_ARG) \
    X("null communicator", COMM, 0, comm, MPI_COMM_NULL, MPI_ERR_COMM)    \
    X("freed communicator", COMM, 0, comm, freed_comm, MPI_ERR_COMM)      \
    X("garbage communicator", COMM, 0, comm, GARBAGE(MPI_Comm), MPI_ERR_COMM)             \
    X("freed info", INFO, 0, info, freed_info, MPI_ERR_INFO)              \
    X("garbage info", INFO, 0, info, GARBAGE(MPI_Info), MPI_ERR_INFO)     \
    X("negative size", SIZE, 0, size, -1, MPI_ERR_SIZE)                   \
    X("no displacement unit", UNIT, 0, unit, 0, MPI_ERR_DISP)             \
    X("negative displacement unit", UNIT, 0, unit, -8, MPI_ERR_DISP)      \
    X("null base", BASE, 0, base, NULL, MPI_ERR_BASE)                     \
    X("null memory", ATTACHED, 0, base, NULL, MPI_ERR_ARG)                \
    X("bits that are no assertion", ASSERTION, 0, assertion, 1 << 30, MPI_ERR_ASSERT)     \
    X("type of no lock", LOCK, 0, lock, 7, MPI_ERR_LOCKTYPE)              \
    X("null group", GROUP, 0, group, MPI_GROUP_NULL, MPI_ERR_GROUP)       \
    X("freed group", GROUP, 0, group, freed_group, MPI_ERR_GROUP)         \
    X("garbage group", GROUP, 0, group, GARBAGE(MPI_Group), MPI_ERR_GROUP)                \
    X("no key", KEYVAL, 0, keyval, MPI_KEYVAL_INVALID, MPI_ERR_KEYVAL)    \
    X("garbage key", KEYVAL, 0, keyval, 0x7654321, MPI_ERR_KEYVAL)        \
    X("key of communicators", KEYVAL, 0, keyval, comm_keyval, MPI_ERR_KEYVAL)             \
    X("freed key", KEYVAL, 0, keyval, freed_keyval, MPI_ERR_KEYVAL)       \
    X("predefined key", KEYVAL, FLAG, keyval, MPI_WIN_BASE, MPI_ERR_KEYVAL)               \
    X("null handler", HANDLER, 0, handler, MPI_ERRHANDLER_NULL, MPI_ERR_ERRHANDLER)       \
    X("garbage handler", HANDLER, 0, handler, GARBAGE(MPI_Errhandler), MPI_ERR_ERRHANDLER)           \
    X("handler of communicators", HANDLER, 0, handler, comm_handler, MPI_ERR_ERRHANDLER)  \
    X("null function", FUNCTION, 0, function, NULL, MPI_ERR_ARG)          \
    X("null name", NAME, 0, name, NULL, MPI_ERR_ARG)                      \
    X("null place for a length", LEN, 0, len, NULL, MPI_ERR_ARG)          \
    X("null place for a flag", FLAG, 0, flag, NULL, MPI_ERR_ARG)          \
    X("null place for a window", TO_WIN, 0, win_place, NULL, MPI_ERR_ARG) \
    X("null place for a group", TO_GROUP, 0, group_place, NULL, MPI_ERR_ARG)              \
    X("null place for an info", TO_INFO, 0, info_place, NULL, MPI_ERR_ARG)                \
    X("null place for a handler", TO_HANDLER, 0, handler_place, NULL, MPI_ERR_ARG)        \
    X("null place for a size", TO_SIZE, 0, size_place, NULL, MPI_ERR_ARG) \
    X("null place for a base", TO_BASE, 0, base_place, NULL, MPI_ERR_ARG) \
    X("null place for a key", TO_KEYVAL, 0, keyval_place, NULL, MPI_ERR_ARG)              \
    X("null place for a value", VALUE, 0, value, NULL, MPI_ERR_ARG)

static int failures;

static void check(const char *what, unsigned long long has, unsigned long long not, struct values *v, int class) {
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (!(functions[i].has & has) || functions[i].has & not) continue;
        int found = class_of(functions[i].call(v));
        if (found == class) continue;
        failures++;
        fprintf(stderr, "%s, %s: class %d, expected %d\n", functions[i].name, what, found, class);
    }
}

static void ignored(void *a, void *b, int *n, MPI_Datatype *t) { (void)a, (void)b, (void)n, (void)t; }
static void handler(MPI_Win *win, int *code, ...) { (void)win, (void)code; }
static void other_handler(MPI_Comm *comm, int *code, ...) { (void)comm, (void)code; }

static void make_wrong_handles(void) {
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_SELF, &freed_win));
    MPI_Win win = freed_win;
    OK(MPI_Win_free(&win));
    OK(MPI_Comm_dup(MPI_COMM_SELF, &freed_comm));
    MPI_Comm comm = freed_comm;
    OK(MPI_Comm_free(&comm));
    OK(MPI_Info_create(&freed_info));
    MPI_Info info = freed_info;
    OK(MPI_Info_free(&info));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &freed_group));
    MPI_Group group = freed_group;
    OK(MPI_Group_free(&group));
    OK(MPI_Type_contiguous(1, MPI_LONG, &freed_type));
    MPI_Datatype type = freed_type;
    OK(MPI_Type_free(&type));
    OK(MPI_Type_contiguous(1, MPI_LONG, &uncommitted));
    OK(MPI_Op_create(ignored, 1, &freed_op));
    MPI_Op op = freed_op;
    OK(MPI_Op_free(&op));
    OK(MPI_Op_create(ignored, 1, &own_op));
    OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &comm_keyval, NULL));
    OK(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &freed_keyval, NULL));
    int keyval = freed_keyval;
    OK(MPI_Win_free_keyval(&keyval));
    OK(MPI_Comm_create_errhandler(other_handler, &comm_handler));
}

int main(int argc, char **argv) {
    static long memory[4], origin, compare, result;
    MPI_Win win, win_place;
    MPI_Group all, group_place;
    MPI_Info info, info_place;
    MPI_Errhandler handler_place;
    MPI_Request request;
    MPI_Aint size_place;
    int flag, len, keyval, keyval_place, unit_place;
    void *base_place, *value;
    char name[MPI_MAX_OBJECT_NAME] = "x";
    begin(&argc, &argv);
    errors_return();
    make_wrong_handles();
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Info_create(&info));
    OK(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &keyval, NULL));
    OK(MPI_Win_create(memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Win_set_attr(win, keyval, memory));
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    const struct values good = {
        &origin, &compare, &result, memory, 1, 1, 1, MPI_LONG, MPI_LONG, MPI_LONG, 0, 0, sizeof memory, 8, MPI_SUM, win,
        MPI_COMM_SELF, info, all, MPI_ERRORS_RETURN, 0, MPI_LOCK_SHARED, keyval, name, &request, &win_place, &group_place,
        &info_place, &handler_place, &size_place, &flag, &len, &keyval_place, &unit_place, &base_place, &value, handler,
    };
    struct values v;
#define ROW(what, has, not, field, wrong, class) \
    v = good;                                    \
    v.field = wrong;                             \
    check(what, has, not, &v, class);
    WRONG(ROW)
    /* Nothing of it has closed the epoch, or done anything. */
    long zero = 0;
    OK(MPI_Fetch_and_op(&origin, &zero, MPI_LONG, 0, 0, MPI_NO_OP, win));
    CHECK(zero == 0);
    OK(MPI_Win_unlock(0, win));
    CHECK(failures == 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_free(&win));
    OK(MPI_Win_free_keyval(&keyval));
    OK(MPI_Comm_free_keyval(&comm_keyval));
    OK(MPI_Errhandler_free(&comm_handler));
    OK(MPI_Op_free(&own_op));
    OK(MPI_Type_free(&uncommitted));
    OK(MPI_Info_free(&info));
    OK(MPI_Group_free(&all));
    return end();
}
