/* Latency, bandwidth and rates of operations of rank 0 on rank 1, in an epoch of lock_all, completed by flushes; rates also of more
 * pairs at once. */
#include "rma.h"
#include <stdlib.h>
#include <string.h>

enum { RATE = 1000 };
enum verb { PUT, GET, ACCUMULATE, GET_ACCUMULATE, FETCH_AND_OP, COMPARE_AND_SWAP, RPUT };

/* Operations that are completed together: `count` of them, each `stride` bytes behind the last at both ends. */
struct work {
    enum verb verb;
    size_t bytes, count, stride;
    char *origin, *result;
    int target;
    /* The first so many ranks are origins, the next so many their targets. */
    int pairs;
    MPI_Win win;
};

/* A loop of its own for each, and for one operation at a time: a choice between them would be in their times. Where data is and
 * the target's rank are read from memory each time, and what calls return is looked at: compilers leave programs no other way as a rule, and on
 * small operations both show. */
#define LOOP(name, call)                                                                                                           \
    static void name(void *context, long repeats) {                                                                                \
        const volatile struct work *w = context;                                                                                   \
        const size_t bytes = w->bytes, count = w->count, stride = w->stride;                                                       \
        const MPI_Win win = w->win;                                                                                                \
        (void)bytes;                                                                                                               \
        for (long turn = 0; count == 1 && turn < repeats; turn++) {                                                                \
            const size_t at = 0;                                                                                                   \
            call;                                                                                                                  \
            MUST(MPI_Win_flush(w->target, win));                                                                                   \
        }                                                                                                                          \
        for (long turn = 0; count > 1 && turn < repeats; turn++) {                                                                 \
            for (size_t i = 0, at = 0; i < count; i++, at += stride) call;                                                         \
            MUST(MPI_Win_flush(w->target, win));                                                                                   \
        }                                                                                                                          \
    }
#define BYTES (int)bytes, MPI_BYTE
#define DOUBLES (int)(bytes / sizeof(double)), MPI_DOUBLE
#define ORIGIN_AT (w->origin + at)
#define RESULT_AT (w->result + at)
#define TARGET_AT w->target, (MPI_Aint)at

LOOP(put, MUST(MPI_Put(ORIGIN_AT, BYTES, TARGET_AT, BYTES, win)))
LOOP(get, MUST(MPI_Get(RESULT_AT, BYTES, TARGET_AT, BYTES, win)))
LOOP(accumulate, MUST(MPI_Accumulate(ORIGIN_AT, DOUBLES, TARGET_AT, DOUBLES, MPI_SUM, win)))
LOOP(get_accumulate, MUST(MPI_Get_accumulate(ORIGIN_AT, DOUBLES, RESULT_AT, DOUBLES, TARGET_AT, DOUBLES, MPI_SUM, win)))
LOOP(fetch_and_op, MUST(MPI_Fetch_and_op(ORIGIN_AT, RESULT_AT, MPI_INT64_T, TARGET_AT, MPI_SUM, win)))
LOOP(compare_and_swap, MUST(MPI_Compare_and_swap(ORIGIN_AT, ORIGIN_AT, RESULT_AT, MPI_INT64_T, TARGET_AT, win)))
LOOP(rput, {
    MPI_Request request;
    MUST(MPI_Rput(ORIGIN_AT, BYTES, TARGET_AT, BYTES, win, &request));
    MUST(MPI_Wait(&request, MPI_STATUS_IGNORE));
})

static const repeat loops[] = {[PUT] = put, [GET] = get, [ACCUMULATE] = accumulate, [GET_ACCUMULATE] = get_accumulate,
    [FETCH_AND_OP] = fetch_and_op, [COMPARE_AND_SWAP] = compare_and_swap, [RPUT] = rput};

/* All pairs at once: what targets repeat is nothing. */
static void by_pairs(void *context, long repeats) {
    const struct work *w = context;
    if (rank < w->pairs) loops[w->verb](context, repeats);
}

/* Bytes of all of them, at both ends. */
static size_t memory_of(const struct work *w) { return w->bytes + w->stride * (w->count - 1); }

/* Whether all bytes are this one. */
static int is_all(const char *memory, size_t bytes, int byte) {
    for (size_t i = 0; i < bytes; i++)
        if (memory[i] != (char)byte) return 0;
    return 1;
}

/* Carries all out once, with data of their own, and looks at both ends. */
static enum data check(const struct work *w, char *memory) {
    int holds = 1;
    size_t all = memory_of(w);
    double *doubles = (double *)memory, times = (double)w->count;
    int is_origin = rank < w->pairs, is_target = !is_origin && rank < 2 * w->pairs;
    if (is_target) {
        memset(memory, 0x5a, all);
        if (w->verb >= ACCUMULATE) for (size_t i = 0; i < all / WORD; i++) doubles[i] = 40;
        if (w->verb == FETCH_AND_OP || w->verb == COMPARE_AND_SWAP) *(int64_t *)memory = 40;
        MPI_Win_sync(w->win);
    } else if (is_origin) {
        if (w->verb == PUT || w->verb == RPUT) memset(w->origin, 0x3c, all);
        if (w->verb == GET) memset(w->result, 0, all);
        if (w->verb == ACCUMULATE || w->verb == GET_ACCUMULATE)
            for (size_t i = 0; i < all / WORD; i++) ((double *)w->origin)[i] = 1;
        if (w->verb == FETCH_AND_OP) *(int64_t *)w->origin = 2;
        if (w->verb == COMPARE_AND_SWAP) *(int64_t *)w->origin = 40;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (is_origin) {
        loops[w->verb]((void *)w, 1);
        if (w->verb == GET) holds = is_all(w->result, all, 0x5a);
        if (w->verb == GET_ACCUMULATE) holds = *(double *)w->result == 40;
        if (w->verb == FETCH_AND_OP || w->verb == COMPARE_AND_SWAP) holds = *(int64_t *)w->result == 40;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (is_target) {
        MPI_Win_sync(w->win);
        if (w->verb == PUT || w->verb == RPUT) holds = is_all(memory, all, 0x3c);
        if (w->verb == FETCH_AND_OP) holds = *(int64_t *)memory == 42;
        if (w->verb == COMPARE_AND_SWAP) holds = *(int64_t *)memory == 40;
        if (w->verb == ACCUMULATE || w->verb == GET_ACCUMULATE)
            for (size_t i = 0; i < all / WORD; i++) holds = holds && doubles[i] == 40 + times;
    }
    return everywhere(holds) ? RIGHT : WRONG;
}

/* Measures a row in a window of its own. */
static void measure_row(struct row row, struct work w) {
    void *memory;
    size_t all = memory_of(&w);
    w.win = make_window(all > 4096 ? all : 4096, &memory);
    w.origin = buffer(all);
    w.result = buffer(all);
    fill(w.origin, all);
    fill(memory, all);
    MPI_Barrier(MPI_COMM_WORLD);
    if (!w.pairs) w.pairs = 1;
    w.target = rank + w.pairs;
    MPI_Win_lock_all(0, w.win);
    measure(&row, w.pairs > 1 ? TOGETHER : ALONE, by_pairs, &w);
    enum data data = check(&w, memory);
    report(&row, data, -1);
    MPI_Win_unlock_all(w.win);
    free_window(&w.win);
    free(w.origin);
    free(w.result);
}

static int is_whole(enum verb verb, size_t bytes) {
    return verb == PUT || verb == GET || verb == RPUT || bytes % sizeof(double) == 0;
}

void latency(const char *name) {
    static const struct {
        const char *name;
        enum verb verb;
    } known[] = {
        {"put-latency", PUT}, {"get-latency", GET}, {"accumulate-latency", ACCUMULATE},
        {"get-accumulate-latency", GET_ACCUMULATE}, {"fetch-and-op-latency", FETCH_AND_OP},
        {"compare-and-swap-latency", COMPARE_AND_SWAP}, {"rput-latency", RPUT},
    };
    for (size_t i = 0; i < COUNT(known); i++) {
        if (strcmp(known[i].name, name)) continue;
        enum verb verb = known[i].verb;
        if (verb >= FETCH_AND_OP) measure_row((struct row){name, WORD, "time", 1, 0}, (struct work){.verb = verb, .bytes = WORD, .count = 1});
        for (int s = 0; verb < FETCH_AND_OP && s < size_count; s++)
            if (is_whole(verb, sizes[s]))
                measure_row((struct row){name, sizes[s], "time", 1, 0}, (struct work){.verb = verb, .bytes = sizes[s], .count = 1});
    }
}

/* Puts of both ranks at once. */
static void bidirectional(const char *name) {
    for (int s = 0; s < size_count; s++) {
        size_t bytes = sizes[s], count = batch(bytes);
        void *memory;
        struct work w = {.verb = PUT, .bytes = bytes, .count = count, .stride = bytes, .target = 1 - rank};
        w.win = make_window(bytes * count, &memory);
        w.origin = w.result = buffer(bytes * count);
        fill(w.origin, bytes * count);
        struct row row = {name, bytes, "bandwidth", 2 * count * bytes, 0};
        MPI_Win_lock_all(0, w.win);
        measure(&row, TOGETHER, put, &w);
        report(&row, UNSEEN, -1);
        MPI_Win_unlock_all(w.win);
        free_window(&w.win);
        free(w.origin);
    }
}

/* Up to 64 at once: puts and gets at both ends one behind the other, sums to one place. */
void bandwidth(const char *name) {
    if (!strcmp(name, "put-bidirectional")) {
        bidirectional(name);
        return;
    }
    enum verb verb = name[0] == 'p' ? PUT : name[0] == 'g' ? GET : ACCUMULATE;
    for (int s = 0; s < size_count; s++) {
        size_t bytes = sizes[s], count = batch(bytes);
        if (!is_whole(verb, bytes)) continue;
        struct work w = {.verb = verb, .bytes = bytes, .count = count, .stride = verb == ACCUMULATE ? 0 : bytes};
        measure_row((struct row){name, bytes, "bandwidth", bytes * count, 0}, w);
    }
}

void rates(const char *name) {
    enum verb verb = name[0] == 'p' ? PUT : name[0] == 'g' ? GET : ACCUMULATE;
    int pairs = ranks / 2;
    struct work w = {.verb = verb, .bytes = WORD, .count = RATE, .pairs = pairs, .stride = verb == ACCUMULATE ? 0 : WORD};
    measure_row((struct row){name, WORD, "rate", (size_t)(RATE * pairs), 0}, w);
}
