/* Loops of one call each, for callgrind to count: two PEs, 8 bytes of the symmetric heap at the other PE. PE 0 runs each loop three times,
 * the first to warm up, and prints name and length of each. */
#include <shmem.h>
#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum row { LONG_P, LONG_G, PUTMEM, GETMEM, QUIET, FENCE, FETCH_ADD, ADD, COMPARE_SWAP, FETCH, SWAP_DOUBLE, TEST, CTX_P };
static const char *const names[] = {
    "long_p", "long_g", "putmem", "getmem", "quiet", "fence", "fetch_add", "add", "compare_swap", "fetch", "swap_double",
    "wait_until", "ctx_long_p"
};

static long *word, origin = 1, result;
static double *real;
static shmem_ctx_t ctx;
static const int target = 1;

/* `times` turns of a loop: callgrind counts inside this function alone, which therefore must not be part of another. */
__attribute__((noinline)) void turns(enum row row, long times) {
    switch (row) {
    case LONG_P:
        for (long i = 0; i < times; i++) shmem_long_p(word, i, target);
        break;
    case LONG_G:
        for (long i = 0; i < times; i++) result = shmem_long_g(word, target);
        break;
    case PUTMEM:
        for (long i = 0; i < times; i++) shmem_putmem(word, &origin, sizeof origin, target);
        break;
    case GETMEM:
        for (long i = 0; i < times; i++) shmem_getmem(&result, word, sizeof result, target);
        break;
    case QUIET:
        for (long i = 0; i < times; i++) shmem_quiet();
        break;
    case FENCE:
        for (long i = 0; i < times; i++) shmem_fence();
        break;
    case FETCH_ADD:
        for (long i = 0; i < times; i++) result = shmem_long_atomic_fetch_add(word, 1, target);
        break;
    case ADD:
        for (long i = 0; i < times; i++) shmem_long_atomic_add(word, 1, target);
        break;
    case COMPARE_SWAP:
        for (long i = 0; i < times; i++) result = shmem_long_atomic_compare_swap(word, i, i + 1, target);
        break;
    case FETCH:
        for (long i = 0; i < times; i++) result = shmem_long_atomic_fetch(word, target);
        break;
    case SWAP_DOUBLE:
        for (long i = 0; i < times; i++) (void) shmem_double_atomic_swap(real, 1.0, target);
        break;
    case TEST:
        for (long i = 0; i < times; i++) shmem_long_wait_until(&origin, SHMEM_CMP_EQ, 1);
        break;
    case CTX_P:
        for (long i = 0; i < times; i++) shmem_ctx_long_p(ctx, word, i, target);
        break;
    }
}

int main(void) {
    const long lengths[] = {50, 200, 1200};
    shmem_init();
    word = shmem_malloc(sizeof *word);
    real = shmem_malloc(sizeof *real);
    if (shmem_ctx_create(0, &ctx)) return 1;
    shmem_barrier_all();
    for (enum row row = 0; shmem_my_pe() == 0 && row < COUNT(names); row++)
        for (size_t length = 0; length < COUNT(lengths); length++) {
            turns(row, lengths[length]);
            printf("%s %ld\n", names[row], lengths[length]);
        }
    shmem_ctx_destroy(ctx);
    shmem_finalize();
}
