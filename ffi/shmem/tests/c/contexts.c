/* A quiet of one context does not wait for what another has under way, at the same PE either: that PE is stopped meanwhile, and serves
 * nobody who reaches it by a network. */
#include "check.h"
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define LONG (4 << 20) /* more than sockets hold */

static long pid, word, last; /* symmetric */

static char state_of(long process) {
    char path[64], line[512] = "";
    snprintf(path, sizeof path, "/proc/%ld/stat", process);
    FILE *file = fopen(path, "r");
    if (file == NULL) return '?';
    size_t length = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[length] = 0;
    char *behind = strrchr(line, ')');
    return behind ? behind[2] : '?';
}

int main(void) {
    shmem_init();
    int me = shmem_my_pe();
    long *big = shmem_malloc(LONG * sizeof *big), *source = malloc(LONG * sizeof *source);
    for (long i = 0; i < LONG; i++) source[i] = i ^ 5;
    shmem_ctx_t slow, fast, unused;
    CHECK(shmem_ctx_create(0, &slow) == 0 && shmem_ctx_create(SHMEM_CTX_PRIVATE, &fast) == 0);
    CHECK(shmem_ctx_create(0, &unused) == 0);
    if (me == 0) {
        /* All have dealt with that PE before. */
        shmem_ctx_long_p(fast, &word, 1, 1);
        shmem_ctx_quiet(fast);
        shmem_ctx_long_p(slow, &word, 2, 1);
        shmem_ctx_quiet(slow);
        CHECK(shmem_long_g(&word, 1) == 2);
    }
    shmem_barrier_all();
    if (me == 1) {
        shmem_long_p(&pid, getpid(), 0);
        shmem_quiet();
        raise(SIGSTOP);
    }
    if (me == 0) {
        shmem_long_wait_until(&pid, SHMEM_CMP_NE, 0);
        while (state_of(pid) != 'T') usleep(1000);
        shmem_ctx_long_put_nbi(slow, big, source, LONG, 1);
        shmem_ctx_quiet(fast);
        shmem_ctx_quiet(unused);
        shmem_quiet();
        /* Nor do a fence, or operations of the other context at another PE. */
        shmem_ctx_fence(slow);
        if (shmem_n_pes() > 2) {
            shmem_ctx_long_p(fast, &last, 9, 2);
            shmem_ctx_quiet(fast);
            CHECK(shmem_long_g(&last, 2) == 9);
        }
        CHECK(state_of(pid) == 'T');
        kill((pid_t) pid, SIGCONT);
        shmem_ctx_quiet(slow);
        CHECK(shmem_long_g(&big[LONG - 1], 1) == ((LONG - 1) ^ 5));
    }
    shmem_barrier_all();
    if (me == 1)
        for (long i = 0; i < LONG; i++) CHECK(big[i] == (i ^ 5));
    /* What is under way when a context is destroyed, or the program ends, is completed. */
    shmem_ctx_long_p(slow, &last, 4, (me + 1) % shmem_n_pes());
    shmem_ctx_destroy(slow);
    shmem_barrier_all();
    CHECK(last == 4);
    shmem_ctx_destroy(unused);
    free(source);
    return finish();
}
