/* The program fragments that show how SHMEM maps onto windows, completed: start_pes, the utility functions by all their names, memory, put
 * and get, swap and cswap, the order of operations, and the barrier. */
#include "check.h"

int main(void) {
    start_pes(0);
    int me = _my_pe(), n = _num_pes();
    CHECK(me == shmem_my_pe() && n == shmem_n_pes());
    int right = (me + 1) % n, left = (me + n - 1) % n;

    enum { COUNT = 1000 };
    long *target = shmalloc(COUNT * sizeof *target), *source = malloc(COUNT * sizeof *source);
    long *words = shmalloc((size_t) n * sizeof *words);
    CHECK(target && source && words);
    CHECK(shmem_addr_accessible(target, right) && shmem_pe_accessible(right) && !shmem_pe_accessible(n));
    for (int i = 0; i < COUNT; i++) source[i] = me * COUNT + i;
    for (int i = 0; i < n; i++) words[i] = -1;
    shmem_barrier_all();

    shmem_long_put(target, source, COUNT, right);
    shmem_barrier_all();
    for (int i = 0; i < COUNT; i++) CHECK(target[i] == left * COUNT + i);
    shmem_long_get(source, target, COUNT, right);
    for (int i = 0; i < COUNT; i++) CHECK(source[i] == me * COUNT + i);

    /* Every PE swaps its number into a word of PE 0: what each gets is another's number or -1, and nothing is lost. */
    long before = shmem_long_swap(&words[0], me, 0);
    CHECK(before >= -1 && before < n && before != me);
    /* One PE alone finds its own word as it was. */
    long first = shmem_long_cswap(&words[me == 0 && n > 1 ? 1 : me], -1, 100 + me, right);
    CHECK(first == -1 || n == 1 || me == 0 || first >= 100 || right == 0);
    shmem_fence();
    shmem_quiet();
    shmem_barrier_all();
    long last = shmem_long_g(&words[0], 0);
    CHECK(n > 1 ? last >= 0 : last == 0 || last == 100);

    /* A counter that all draw from: the tickets are 0 to n - 1. */
    static long counter, drawn[64];
    long ticket = shmem_long_fadd(&counter, 1, 0);
    CHECK(ticket >= 0 && ticket < n && n <= 64);
    shmem_long_p(&drawn[ticket], me + 1, 0);
    shmem_barrier_all();
    if (me == 0)
        for (int i = 0; i < n; i++) CHECK(drawn[i] > 0);
    CHECK(shmem_long_g(&counter, 0) == n);

    shfree(words);
    shfree(target);
    free(source);
    return finish();
}
