/* Symmetric allocation: the same place everywhere, zeroes, alignment, contents that stay, no room, and memory that does not grow. */
#include "check.h"
#include <string.h>
#include <sys/resource.h>

static void same_everywhere(const void *at) {
    static long mine, others;
    /* Offsets from one block are the same, wherever the heap lies. */
    static char *first;
    if (!first) first = (char *) at;
    mine = (const char *) at - first;
    shmem_max_reduce(SHMEM_TEAM_WORLD, &others, &mine, 1);
    CHECK(others == mine);
    shmem_min_reduce(SHMEM_TEAM_WORLD, &others, &mine, 1);
    CHECK(others == mine);
}

int main(void) {
    shmem_init();
    void *blocks[200] = {0};
    unsigned seed = 1;
    for (int i = 0; i < 3000; i++) {
        unsigned at = seed % 200, what = seed / 200 % 4;
        size_t bytes = 1 + seed % 5000;
        seed = seed * 1103515245u + 12345u;
        if (blocks[at] && what) {
            if (what == 1) {
                memset(blocks[at], (int) at, 1);
                blocks[at] = shmem_realloc(blocks[at], bytes);
                CHECK(blocks[at] && *(char *) blocks[at] == (char) at);
                continue;
            }
            shmem_free(blocks[at]);
            blocks[at] = NULL;
            continue;
        }
        if (blocks[at]) continue;
        if (what == 0) {
            blocks[at] = shmem_calloc(bytes, 1);
            for (size_t byte = 0; byte < bytes; byte++) CHECK(((char *) blocks[at])[byte] == 0);
        } else if (what == 1) {
            size_t alignment = (size_t) 8 << seed % 10;
            blocks[at] = shmem_align(alignment, bytes);
            CHECK((uintptr_t) blocks[at] % alignment == 0);
        } else {
            blocks[at] = what == 2 ? shmem_malloc(bytes) : shmem_malloc_with_hints(bytes, SHMEM_MALLOC_ATOMICS_REMOTE);
        }
        CHECK(blocks[at]);
        memset(blocks[at], 0xff, bytes);
        if (i % 50 == 0) same_everywhere(blocks[at]);
    }
    for (int i = 0; i < 200; i++) shmem_free(blocks[i]);

    CHECK(!shmem_malloc(0) && !shmem_malloc((size_t) 1 << 60) && !shmem_calloc((size_t) 1 << 40, (size_t) 1 << 40));
    CHECK(!shmem_realloc(NULL, 0));
    void *whole = shmem_malloc(1 << 20);
    CHECK(whole && !shmem_realloc(whole, (size_t) 1 << 50) && !shmem_realloc(whole, 0));

    struct rusage before, after;
    for (int i = 0; i < 4000; i++) {
        if (i == 1000) getrusage(RUSAGE_SELF, &before);
        void *block = shmem_malloc(1 + (size_t) i % 3000);
        shmem_free(block);
    }
    getrusage(RUSAGE_SELF, &after);
    CHECK(after.ru_maxrss - before.ru_maxrss < 1024);
    return finish();
}
