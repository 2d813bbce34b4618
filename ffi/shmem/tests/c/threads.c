/* Several threads, each with a context of its own, and all with the default one. */
#include "check.h"
#include <pthread.h>

enum { THREADS = 4, TURNS = 500 };
static long counter, words[THREADS][64];
static int me, n;

static void *work(void *argument) {
    long number = (long) argument, source[64], got[64];
    int right = (me + 1) % n;
    shmem_ctx_t ctx;
    CHECK(!shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx));
    for (long turn = 0; turn < TURNS; turn++) {
        for (int i = 0; i < 64; i++) source[i] = turn * 64 + i;
        shmem_ctx_long_put_nbi(ctx, words[number], source, 64, right);
        shmem_ctx_quiet(ctx);
        shmem_ctx_long_get(ctx, got, words[number], 64, right);
        for (int i = 0; i < 64; i++) CHECK(got[i] == source[i]);
        shmem_long_atomic_inc(&counter, 0);
        if (turn % 16 == 0) shmem_quiet();
    }
    shmem_ctx_destroy(ctx);
    shmem_quiet();
    return NULL;
}

int main(void) {
    int provided;
    CHECK(!shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) && provided == SHMEM_THREAD_MULTIPLE);
    me = shmem_my_pe();
    n = shmem_n_pes();
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *) i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    shmem_barrier_all();
    CHECK(shmem_g(&counter, 0) == (long) n * THREADS * TURNS);
    return finish();
}
