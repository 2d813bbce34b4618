/* What the test programs have in common: a check that says where it failed, and the last line. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                               \
    do {                                                                                               \
        if (!(condition)) {                                                                            \
            fprintf(stderr, "%s:%d: PE %d: %s\n", __FILE__, __LINE__, shmem_my_pe(), #condition);      \
            shmem_global_exit(3);                                                                      \
        }                                                                                              \
    } while (0)

/* Ends the program, and says so once if all was well at every PE. */
static inline int finish(void) {
    int me = shmem_my_pe(), n = shmem_n_pes();
    shmem_barrier_all();
    shmem_finalize();
    if (me == 0) printf("all well with %d\n", n);
    return 0;
}
