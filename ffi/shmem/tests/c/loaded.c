/* An MPI library that the program loads itself, where nobody else sees its symbols: before shmem_init, or too late. */
#include "check.h"
#include <dlfcn.h>
#include <string.h>

int main(int argc, char **argv) {
    int is_late = argc > 2 && !strcmp(argv[2], "late");
    if (is_late) shmem_init();
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    int (*init)(int *, char ***), (*finalize)(void);
    *(void **) &init = dlsym(library, "MPI_Init");
    *(void **) &finalize = dlsym(library, "MPI_Finalize");
    if (init(NULL, NULL)) return 1;
    shmem_init();
    static long word;
    shmem_long_atomic_inc(&word, 0);
    shmem_barrier_all();
    if (shmem_my_pe() == 0) CHECK(word == shmem_n_pes());
    if (finalize()) return 1;
    return finish();
}
