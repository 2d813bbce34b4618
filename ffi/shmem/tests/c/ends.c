/* Ends in the way that its argument names. */
#include "check.h"
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "finalize";
    shmem_init();
    static long word;
    int me = shmem_my_pe(), n = shmem_n_pes();
    /* Under way when the program ends: it is completed. */
    shmem_p(&word, 7, (me + 1) % n);
    if (!strcmp(way, "global_exit")) {
        if (me == n - 1) shmem_global_exit(argc > 2 ? atoi(argv[2]) : 7);
        shmem_long_wait_until(&word, SHMEM_CMP_EQ, -1);
    }
    if (!strcmp(way, "early") && me == 0) return 0;
    if (!strcmp(way, "late")) usleep(300000);
    if (!strcmp(way, "dies") && me == n - 1) abort();
    if (!strcmp(way, "fails") && me == n - 1) exit(5);
    if (!strcmp(way, "early")) {
        /* PE 0 has returned from main, and serves the others until they have, too. */
        usleep(100000);
        CHECK(shmem_long_atomic_fetch_add(&word, 0, 0) == 7);
    }
    if (!strcmp(way, "dies") || !strcmp(way, "fails")) shmem_barrier_all();
    shmem_long_wait_until(&word, SHMEM_CMP_EQ, 7);
    printf("PE %d ends\n", me);
    if (!strcmp(way, "exit")) exit(0);
    if (!strcmp(way, "finalize")) {
        shmem_finalize();
        /* Nothing more. */
        shmem_finalize();
    }
    return 0;
}
