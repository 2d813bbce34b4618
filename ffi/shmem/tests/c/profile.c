/* A profiler in the program: its functions take the place of the library's, and call those by their other names. */
#include "check.h"
#include <pshmem.h>

static int calls;

void shmem_long_p(long *dest, long value, int pe) {
    calls++;
    pshmem_long_p(dest, value, pe);
}

int main(void) {
    pshmem_init();
    static long word;
    static long double real;
    int right = (pshmem_my_pe() + 1) % shmem_n_pes();
    shmem_long_p(&word, 5, right);
    pshmem_longdouble_p(&real, 1.5L, right);
    pshmem_barrier_all();
    CHECK(calls == 1 && word == 5 && pshmem_long_g(&word, right) == 5 && pshmem_longdouble_g(&real, right) == 1.5L);
    return finish();
}
