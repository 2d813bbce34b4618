/* Waiting and testing in all forms, locks, teams, contexts of teams, and collectives of teams and of active sets. */
#include "check.h"
#include <string.h>

static int me, n, right, left;
static long sync_work[SHMEM_REDUCE_SYNC_SIZE];

#define SYNC_TYPES(X)                                                                                      \
    X(short, short) X(int, int) X(long, long) X(longlong, long long) X(ushort, unsigned short)             \
    X(uint, unsigned int) X(ulong, unsigned long) X(ulonglong, unsigned long long) X(int32, int32_t)       \
    X(int64, int64_t) X(uint32, uint32_t) X(uint64, uint64_t) X(size, size_t) X(ptrdiff, ptrdiff_t)

/* Four words of this PE's that its left neighbour sets, one after the other. */
#define DEFINE_WAITS(NAME, T)                                                                              \
    static void waits_##NAME(T *words) {                                                                   \
        T values[4] = {1, 2, 3, 4};                                                                        \
        int status[4] = {0, 0, 1, 0};                                                                      \
        size_t indices[4];                                                                                 \
        memset(words, 0, 4 * sizeof *words);                                                               \
        shmem_barrier_all();                                                                               \
        CHECK(!shmem_##NAME##_test(&words[0], SHMEM_CMP_NE, 0));                                           \
        CHECK(shmem_##NAME##_test_any(words, 4, NULL, SHMEM_CMP_GT, 0) == SIZE_MAX);                       \
        CHECK(!shmem_##NAME##_test_all(words, 4, status, SHMEM_CMP_GE, 1));                                \
        CHECK(!shmem_##NAME##_test_some(words, 4, indices, status, SHMEM_CMP_EQ, 1));                      \
        CHECK(shmem_##NAME##_test_any_vector(words, 4, NULL, SHMEM_CMP_EQ, values) == SIZE_MAX);           \
        CHECK(!shmem_##NAME##_test_some_vector(words, 4, indices, NULL, SHMEM_CMP_EQ, values));            \
        shmem_barrier_all();                                                                               \
        shmem_putmem(&words[1], &values[1], sizeof *words, right);                                         \
        CHECK(shmem_##NAME##_wait_until_any(words, 4, status, SHMEM_CMP_NE, 0) == 1);                      \
        CHECK(shmem_##NAME##_wait_until_some(words, 4, indices, status, SHMEM_CMP_LE, 1) == 2);            \
        CHECK(indices[0] == 0 && indices[1] == 3);                                                         \
        CHECK(shmem_##NAME##_wait_until_any_vector(words, 4, NULL, SHMEM_CMP_EQ, values) == 1);            \
        shmem_barrier_all();                                                                               \
        shmem_putmem(&words[0], &values[0], sizeof *words, right);                                         \
        shmem_putmem(&words[3], &values[3], sizeof *words, right);                                         \
        shmem_##NAME##_wait_until(&words[0], SHMEM_CMP_EQ, 1);                                             \
        shmem_##NAME##_wait_until_all_vector(words, 4, status, SHMEM_CMP_EQ, values);                      \
        shmem_##NAME##_wait_until_all(words, 4, status, SHMEM_CMP_GE, 1);                                  \
        CHECK(shmem_##NAME##_test_all_vector(words, 4, status, SHMEM_CMP_EQ, values));                     \
        CHECK(!shmem_##NAME##_test_all_vector(words, 4, NULL, SHMEM_CMP_EQ, values));                      \
        CHECK(shmem_##NAME##_wait_until_some_vector(words, 4, indices, NULL, SHMEM_CMP_EQ, values) == 3);  \
        CHECK(indices[2] == 3 && shmem_##NAME##_test(&words[3], SHMEM_CMP_LT, 5));                         \
        int all[4] = {1, 1, 1, 1};                                                                         \
        CHECK(shmem_##NAME##_wait_until_any(words, 4, all, SHMEM_CMP_EQ, 9) == SIZE_MAX);                  \
        CHECK(shmem_##NAME##_test_all(words, 0, NULL, SHMEM_CMP_EQ, 9));                                   \
        shmem_##NAME##_wait_until_all(words, 4, all, SHMEM_CMP_EQ, 9);                                     \
        shmem_barrier_all();                                                                               \
    }
SYNC_TYPES(DEFINE_WAITS)

static void locks(void) {
    static long lock, other, counter;
    for (int i = 0; i < 50; i++) {
        long *which = i % 2 ? &lock : &other;
        shmem_set_lock(which);
        long value = shmem_g(&counter, 0);
        shmem_p(&counter, value + (which == &lock), 0);
        shmem_clear_lock(which);
    }
    shmem_barrier_all();
    shmem_set_lock(&lock);
    CHECK(shmem_g(&counter, 0) >= 25 * 1);
    shmem_clear_lock(&lock);
    shmem_barrier_all();
    long *held = shmem_calloc(1, sizeof *held), *sum = shmem_calloc(1, sizeof *sum);
    for (int i = 0; i < 20; i++) {
        while (shmem_test_lock(held)) {}
        shmem_p(sum, shmem_g(sum, n - 1) + 1, n - 1);
        shmem_clear_lock(held);
        shmem_set_lock(held);
        shmem_p(sum, shmem_g(sum, n - 1) + 1, n - 1);
        shmem_clear_lock(held);
    }
    shmem_barrier_all();
    CHECK(shmem_g(sum, n - 1) == 40 * n);
    if (me == 0) {
        shmem_set_lock(held);
        CHECK(shmem_test_lock(held));
        shmem_clear_lock(held);
        CHECK(!shmem_test_lock(held));
        shmem_clear_lock(held);
    }
    shmem_barrier_all();
    shmem_free(sum);
    shmem_free(held);
}

static void collectives(shmem_team_t team) {
    int pe = shmem_team_my_pe(team), size = shmem_team_n_pes(team);
    /* Short, and longer than what goes through messages. */
    for (size_t count = 3; count <= 60000; count *= 20000) {
        size_t all = count * (size_t) size;
        long *from = malloc(3 * all * sizeof *from), *to = malloc(3 * all * sizeof *to);
        for (size_t i = 0; i < 3 * all; i++) from[i] = 1000 * pe + (long) i % 997;
        CHECK(!shmem_broadcast(team, to, from, count, size - 1));
        for (size_t i = 0; i < count; i++) CHECK(to[i] == 1000 * (size - 1) + (long) i % 997);
        CHECK(!shmem_fcollect(team, to, from, count));
        for (size_t i = 0; i < all; i++) CHECK(to[i] == 1000 * (long) (i / count) + (long) (i % count) % 997);
        CHECK(!shmem_collect(team, to, from, count + (size_t) pe));
        CHECK(to[count - 1] == ((long) count - 1) % 997 && (size < 2 || to[count] == 1000));
        CHECK(!shmem_alltoall(team, to, from, count));
        for (size_t i = 0; i < all; i++)
            CHECK(to[i] == 1000 * (long) (i / count) + (long) ((size_t) pe * count + i % count) % 997);
        CHECK(!shmem_alltoalls(team, to, from, 2, 3, count));
        for (size_t i = 0; i < all; i++)
            CHECK(to[2 * i] == 1000 * (long) (i / count) + (long) (3 * ((size_t) pe * count + i % count)) % 997);
        CHECK(!shmem_sum_reduce(team, to, from, count));
        CHECK(to[1] == 500L * size * (size - 1) + size);
        CHECK(!shmem_max_reduce(team, from, from, count));
        CHECK(from[2] == 1000 * (size - 1) + 2);
        free(from);
        free(to);
    }
    unsigned bits = 1u << pe, every;
    CHECK(!shmem_or_reduce(team, &every, &bits, 1) && every == (1u << size) - 1);
    CHECK(!shmem_xor_reduce(team, &every, &bits, 1) && every == (1u << size) - 1);
    CHECK(!shmem_and_reduce(team, &every, &bits, 1) && every == (size > 1 ? 0 : 1));
    long double real = pe + 1.5L, product, least;
    CHECK(!shmem_prod_reduce(team, &product, &real, 1) && !shmem_min_reduce(team, &least, &real, 1));
    CHECK(least == 1.5L && (size < 2 || product >= 3.75L));
    double _Complex complex = pe + 1.0, sum;
    CHECK(!shmem_complexd_sum_reduce(team, &sum, &complex, 1) && sum == (double) (size * (size + 1)) / 2);
    char byte = (char) pe, bytes[64];
    CHECK(!shmem_fcollectmem(team, bytes, &byte, 1) && bytes[size - 1] == size - 1);
    CHECK(!shmem_team_sync(team) && !shmem_sync(team));
}

static void active_sets(void) {
    int size = (n + 1) / 2;
    long *from = shmem_malloc(64 * sizeof *from), *to = shmem_malloc(64 * (size_t) n * sizeof *to), *work = shmem_malloc(64 * sizeof *work);
    /* Every second PE. */
    if (me % 2 == 0) {
        for (int i = 0; i < 64; i++) from[i] = 100 * me + i;
        shmem_broadcast64(to, from, 5, 0, 0, 1, size, sync_work);
        CHECK(me == 0 || to[4] == 4);
        shmem_fcollect64(to, from, 5, 0, 1, size, sync_work);
        CHECK(to[5 * size - 1] == 200 * (size - 1) + 4);
        shmem_collect64(to, from, (size_t) (me / 2) + 1, 0, 1, size, sync_work);
        CHECK(to[0] == 0 && (size < 2 || to[2] == 201));
        shmem_alltoall64(to, from, 2, 0, 1, size, sync_work);
        CHECK(to[0] == 2 * (me / 2));
        shmem_alltoalls64(to, from, 2, 1, 2, 0, 1, size, sync_work);
        CHECK(to[2] == 2 * (me / 2) + 1);
        shmem_long_sum_to_all(to, from, 64, 0, 1, size, work, sync_work);
        CHECK(to[1] == 100L * size * (size - 1) + size);
        shmem_long_max_to_all(to, from, 1, 0, 1, size, work, sync_work);
        CHECK(to[0] == 200 * (size - 1));
        shmem_barrier(0, 1, size, sync_work);
        shmem_sync(0, 1, size, sync_work);
    }
    shmem_barrier_all();
    shmem_free(work);
    shmem_free(to);
    shmem_free(from);
}

static void teams(void) {
    shmem_team_t odd, row, column, none;
    shmem_team_config_t config = {.num_contexts = 2}, got;
    CHECK(shmem_team_my_pe(SHMEM_TEAM_WORLD) == me && shmem_team_n_pes(SHMEM_TEAM_WORLD) == n);
    CHECK(shmem_team_my_pe(SHMEM_TEAM_INVALID) == -1 && shmem_team_n_pes(SHMEM_TEAM_INVALID) == -1);
    int start = n > 1;
    CHECK(!shmem_team_split_strided(SHMEM_TEAM_WORLD, start, 2, (n + !start) / 2, &config, SHMEM_TEAM_NUM_CONTEXTS, &odd));
    CHECK((odd != SHMEM_TEAM_INVALID) == (me % 2 == start));
    if (odd != SHMEM_TEAM_INVALID) {
        CHECK(shmem_team_my_pe(odd) == me / 2);
        CHECK(shmem_team_translate_pe(odd, 0, SHMEM_TEAM_WORLD) == start);
        CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, start, odd) == 0);
        CHECK(n == 1 || shmem_team_translate_pe(SHMEM_TEAM_WORLD, 0, odd) == -1);
        CHECK(!shmem_team_get_config(odd, SHMEM_TEAM_NUM_CONTEXTS, &got) && got.num_contexts == 2);
        collectives(odd);
        /* PEs of a context are those of its team. */
        static long word;
        shmem_ctx_t ctx;
        shmem_team_t of;
        CHECK(!shmem_team_create_ctx(odd, 0, &ctx) && !shmem_ctx_get_team(ctx, &of) && of == odd);
        shmem_ctx_long_atomic_add(ctx, &word, 1, 0);
        shmem_ctx_quiet(ctx);
        shmem_team_sync(odd);
        CHECK(me != start || word == shmem_team_n_pes(odd));
        shmem_team_destroy(odd);
    }
    CHECK(!shmem_team_split_2d(SHMEM_TEAM_WORLD, 2, NULL, 0, &row, NULL, 0, &column));
    CHECK(shmem_team_my_pe(row) == me % 2 && shmem_team_my_pe(column) == me / 2);
    CHECK(shmem_team_translate_pe(column, 0, SHMEM_TEAM_WORLD) == me % 2);
    collectives(row);
    collectives(column);
    shmem_team_destroy(row);
    shmem_team_destroy(column);
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n + 1, NULL, 0, &none) && none == SHMEM_TEAM_INVALID);
    if (n > 1) {
        shmem_team_t back;
        CHECK(!shmem_team_split_strided(SHMEM_TEAM_WORLD, n - 1, -1, n, NULL, 0, &back));
        CHECK(shmem_team_my_pe(back) == n - 1 - me);
        shmem_team_destroy(back);
    }
    collectives(SHMEM_TEAM_WORLD);
    CHECK(shmem_team_n_pes(SHMEM_TEAM_SHARED) >= 1);
    shmem_team_t world;
    CHECK(!shmem_ctx_get_team(SHMEM_CTX_DEFAULT, &world) && world == SHMEM_TEAM_WORLD);
    shmem_ctx_quiet(SHMEM_CTX_INVALID);
}

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    n = shmem_n_pes();
    right = (me + 1) % n;
    left = (me + n - 1) % n;
    void *words = shmem_malloc(4 * sizeof(long long));
#define RUN_WAITS(NAME, T) waits_##NAME(words);
    SYNC_TYPES(RUN_WAITS)
    shmem_free(words);
    locks();
    teams();
    active_sets();
    return finish();
}
