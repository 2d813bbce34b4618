/* What a fence orders, at each PE: puts of all lengths, updates, signals, in the heap and in static data, of contexts, too. */
#include "check.h"
#include <string.h>

#define LONG (1 << 17)

static long flag, count, part[4]; /* symmetric */
static long *big, *word, *source;
static int me, n, right, left;

/* What is put before the fence is there when what is put behind it is. */
static void before_and_behind(shmem_ctx_t ctx, long turn) {
    static const size_t lengths[] = {1, 500, 3000, LONG};
    size_t length = lengths[turn % 4];
    for (size_t i = 0; i < length; i++) source[i] = turn + (long) i;
    shmem_ctx_long_put_nbi(ctx, big, source, length, right);
    shmem_ctx_long_p(ctx, &part[turn % 4], turn, right);
    shmem_ctx_fence(ctx);
    switch (turn / 4 % 3) {
    case 0: shmem_ctx_long_p(ctx, &flag, turn, right); break;
    case 1: shmem_ctx_long_atomic_set(ctx, word, turn, right); break;
    case 2: shmem_ctx_long_atomic_swap(ctx, &flag, turn, right); break;
    }
    shmem_long_wait_until(turn / 4 % 3 == 1 ? word : &flag, SHMEM_CMP_EQ, turn);
    CHECK(part[turn % 4] == turn);
    for (size_t i = 0; i < length; i++) CHECK(big[i] == turn + (long) i);
    shmem_ctx_quiet(ctx);
}

/* An update, a fence, and a put that must not come first: the put overwrites what was added. */
static void updates_then_puts(shmem_ctx_t ctx, long turn) {
    for (int i = 0; i < 5; i++) {
        shmem_ctx_long_atomic_add(ctx, &count, 1000, right);
        shmem_ctx_fence(ctx);
        shmem_ctx_long_p(ctx, &count, turn, right);
        shmem_ctx_fence(ctx);
        shmem_ctx_long_atomic_inc(ctx, &count, right);
        shmem_ctx_fence(ctx);
        shmem_ctx_long_atomic_inc(ctx, &count, right);
    }
    shmem_ctx_quiet(ctx);
    shmem_barrier_all();
    CHECK(count == turn + 2);
    shmem_barrier_all();
}

/* Nobody sees a signal before the data. */
static void signals(long turn) {
    static uint64_t seen;
    size_t length = turn % 3 == 0 ? 1 : turn % 3 == 1 ? 2000 : LONG;
    for (size_t i = 0; i < length; i++) source[i] = -turn - (long) i;
    shmem_long_put_signal(big, source, length, &seen, 1, SHMEM_SIGNAL_ADD, right);
    shmem_signal_wait_until(&seen, SHMEM_CMP_EQ, (uint64_t) turn);
    for (size_t i = 0; i < length; i++) CHECK(big[i] == -turn - (long) i);
    shmem_barrier_all();
}

int main(void) {
    shmem_init();
    me = shmem_my_pe(), n = shmem_n_pes();
    right = (me + 1) % n, left = (me + n - 1) % n;
    (void) left;
    big = shmem_malloc(LONG * sizeof *big);
    word = shmem_calloc(1, sizeof *word);
    source = malloc(LONG * sizeof *source);
    shmem_ctx_t ctx;
    CHECK(shmem_ctx_create(0, &ctx) == 0);
    shmem_ctx_t contexts[2] = {SHMEM_CTX_DEFAULT, ctx};
    for (long turn = 1; turn <= 48; turn++) {
        before_and_behind(contexts[turn % 2], turn);
        shmem_barrier_all();
    }
    for (long turn = 1; turn <= 20; turn++) updates_then_puts(contexts[turn % 2], turn);
    for (long turn = 1; turn <= 12; turn++) signals(turn);
    shmem_ctx_destroy(ctx);
    free(source);
    return finish();
}
