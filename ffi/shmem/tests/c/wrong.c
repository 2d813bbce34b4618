/* One wrong call, which its argument names: the job ends with a message. */
#include "check.h"
#include <string.h>

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "too early")) shmem_barrier_all();
    shmem_init();
    static long word;
    long here = 1, *block = shmem_malloc(64), source[16] = {0};
    shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;
    int me = shmem_my_pe(), n = shmem_n_pes(), right = (me + 1) % n;
    shmem_barrier_all();
    if (!strcmp(what, "address")) shmem_long_p(&here, 1, right);
    if (!strcmp(what, "get")) shmem_long_get(source, &here, 2, right);
    if (!strcmp(what, "null")) shmem_putmem(NULL, source, 8, right);
    if (!strcmp(what, "atomic")) shmem_long_atomic_add(&here, 1, right);
    if (!strcmp(what, "misaligned")) shmem_long_atomic_add((long *) (void *) ((char *) block + 1), 1, right);
    if (!strcmp(what, "beyond")) shmem_putmem((char *) block, source, (size_t) 1 << 40, right);
    if (!strcmp(what, "endless")) shmem_long_put(block, source, SIZE_MAX / 4, right);
    if (!strcmp(what, "pe")) shmem_long_put(block, source, 1, n);
    if (!strcmp(what, "negative pe")) (void) shmem_long_g(block, -1);
    if (!strcmp(what, "stride")) shmem_long_iput(block, source, 0, 1, 2, right);
    if (!strcmp(what, "freed twice")) {
        shmem_free(block);
        shmem_free(block);
    }
    if (!strcmp(what, "freed elsewhere")) shmem_free((char *) block + 8);
    if (!strcmp(what, "freed")) {
        shmem_free(block);
        shmem_long_p(block, 1, right);
    }
    if (!strcmp(what, "unequal")) shmem_malloc(100 + (size_t) me);
    if (!strcmp(what, "comparison")) shmem_long_wait_until(&word, 99, 1);
    if (!strcmp(what, "context")) {
        shmem_ctx_create(0, &ctx);
        shmem_ctx_destroy(ctx);
        shmem_ctx_quiet(ctx);
    }
    if (!strcmp(what, "active set")) shmem_barrier(0, 0, n + 1, NULL);
    if (!strcmp(what, "root")) shmem_long_broadcast(SHMEM_TEAM_WORLD, block, source, 1, n);
    if (!strcmp(what, "signal")) shmem_long_put_signal(block, source, 1, (uint64_t *) (void *) &word, 1, 9, right);
    if (!strcmp(what, "too late")) {
        shmem_finalize();
        shmem_barrier_all();
    }
    if (!strcmp(what, "twice")) shmem_init();
    shmem_barrier_all();
    printf("nothing was found wrong\n");
    return 0;
}
