/* Puts, gets and atomics of every type against what they are said to do: in the heap and in static data, by the default context and by
 * another one. */
#include "check.h"
#include <stddef.h>
#include <string.h>

#define RMA_TYPES(X)                                                                                             \
    X(float, float) X(double, double) X(longdouble, long double) X(char, char) X(schar, signed char)             \
    X(short, short) X(int, int) X(long, long) X(longlong, long long) X(uchar, unsigned char)                     \
    X(ushort, unsigned short) X(uint, unsigned int) X(ulong, unsigned long) X(ulonglong, unsigned long long)     \
    X(int8, int8_t) X(int16, int16_t) X(int32, int32_t) X(int64, int64_t) X(uint8, uint8_t) X(uint16, uint16_t)  \
    X(uint32, uint32_t) X(uint64, uint64_t) X(size, size_t) X(ptrdiff, ptrdiff_t)
#define AMO_TYPES(X)                                                                                             \
    X(int, int) X(long, long) X(longlong, long long) X(uint, unsigned int) X(ulong, unsigned long)               \
    X(ulonglong, unsigned long long) X(int32, int32_t) X(int64, int64_t) X(uint32, uint32_t)                     \
    X(uint64, uint64_t) X(size, size_t) X(ptrdiff, ptrdiff_t)
#define EXTENDED_TYPES(X) AMO_TYPES(X) X(float, float) X(double, double)
#define BITWISE_TYPES(X)                                                                                         \
    X(uint, unsigned int) X(ulong, unsigned long) X(ulonglong, unsigned long long) X(int32, int32_t)             \
    X(int64, int64_t) X(uint32, uint32_t) X(uint64, uint64_t)

enum { COUNT = 24 };
static int me, n, right, left;
static shmem_ctx_t ctx;
static uint64_t sig;

/* What PE `pe` writes to element i. */
#define VALUE(T, pe, i) ((T) ((pe) * 5 + (i) + 1))

#define DEFINE_RMA(NAME, T)                                                                  \
    static T static_##NAME[COUNT];                                                           \
    static void filled_##NAME(const T *there, int from, int step) {                          \
        for (int i = 0; i < COUNT; i++)                                                      \
            CHECK(there[i] == (i % step ? (T) 0 : VALUE(T, from, i / step)));                \
    }                                                                                        \
    static void clear_##NAME(T *there) {                                                     \
        shmem_barrier_all();                                                                 \
        memset(there, 0, COUNT * sizeof *there);                                             \
        shmem_barrier_all();                                                                 \
    }                                                                                        \
    static void rma_##NAME(T *there) {                                                       \
        T source[COUNT], got[COUNT];                                                         \
        for (int i = 0; i < COUNT; i++) source[i] = VALUE(T, me, i);                         \
        clear_##NAME(there);                                                                 \
        shmem_##NAME##_put(there, source, COUNT, right);                                     \
        shmem_barrier_all();                                                                 \
        filled_##NAME(there, left, 1);                                                       \
        shmem_##NAME##_get(got, there, COUNT, right);                                        \
        filled_##NAME(got, me, 1);                                                           \
        clear_##NAME(there);                                                                 \
        shmem_ctx_##NAME##_put_nbi(ctx, there, source, COUNT, right);                        \
        shmem_ctx_quiet(ctx);                                                                \
        memset(got, 0, sizeof got);                                                          \
        shmem_##NAME##_get_nbi(got, there, COUNT, right);                                    \
        shmem_quiet();                                                                       \
        filled_##NAME(got, me, 1);                                                           \
        clear_##NAME(there);                                                                 \
        for (int i = 0; i < COUNT; i++) shmem_##NAME##_p(&there[i], source[i], right);       \
        shmem_quiet();                                                                       \
        for (int i = 0; i < COUNT; i++) CHECK(shmem_ctx_##NAME##_g(ctx, &there[i], right) == source[i]); \
        clear_##NAME(there);                                                                 \
        shmem_##NAME##_iput(there, source, 3, 1, COUNT / 3, right);                          \
        shmem_barrier_all();                                                                 \
        filled_##NAME(there, left, 3);                                                       \
        memset(got, 0, sizeof got);                                                          \
        shmem_ctx_##NAME##_iget(ctx, got, there, 2, 3, COUNT / 3, right);                    \
        for (int i = 0; i < COUNT / 3; i++) CHECK(got[2 * i] == source[i] && got[2 * i + 1] == (T) 0); \
        clear_##NAME(there);                                                                 \
        shmem_##NAME##_put_signal(there, source, COUNT, &sig, 1, SHMEM_SIGNAL_ADD, right);   \
        shmem_uint64_wait_until(&sig, SHMEM_CMP_EQ, 1);                                      \
        filled_##NAME(there, left, 1);                                                       \
        clear_##NAME(there);                                                                 \
        shmem_ctx_##NAME##_put_signal_nbi(ctx, there, source, COUNT, &sig, 7, SHMEM_SIGNAL_SET, right); \
        CHECK(shmem_signal_wait_until(&sig, SHMEM_CMP_EQ, 7) == 7);                          \
        filled_##NAME(there, left, 1);                                                       \
        shmem_barrier_all();                                                                 \
        sig = 0;                                                                             \
        shmem_barrier_all();                                                                 \
    }
RMA_TYPES(DEFINE_RMA)

#define DEFINE_AMO(NAME, T)                                                                                    \
    static void amo_##NAME(T *at) {                                                                            \
        T fetched;                                                                                             \
        *at = 0;                                                                                               \
        shmem_barrier_all();                                                                                   \
        for (int i = 0; i < 10; i++) shmem_##NAME##_atomic_add(at, 2, 0);                                      \
        for (int i = 0; i < 10; i++) shmem_ctx_##NAME##_atomic_inc(ctx, at, 0);                                \
        for (int i = 0; i < 10; i++) CHECK(shmem_##NAME##_atomic_fetch_add(at, 1, 0) < (T) (n * 50));          \
        for (int i = 0; i < 10; i++) shmem_##NAME##_atomic_fetch_inc_nbi(&fetched, at, 0);                     \
        shmem_barrier_all();                                                                                   \
        CHECK(shmem_##NAME##_atomic_fetch(at, 0) == (T) (n * 50));                                             \
        shmem_barrier_all();                                                                                   \
        /* Each PE by its right neighbour alone. */                                                            \
        CHECK(shmem_##NAME##_atomic_compare_swap(at, right == 0 ? (T) (n * 50) : 0, 5, right) == (right == 0 ? (T) (n * 50) : 0)); \
        CHECK(shmem_ctx_##NAME##_atomic_compare_swap(ctx, at, 4, 6, right) == 5);                              \
        shmem_##NAME##_atomic_fetch_add_nbi(&fetched, at, 3, right);                                           \
        shmem_quiet();                                                                                         \
        CHECK(fetched == 5 && shmem_##NAME##_atomic_fetch_inc(at, right) == 8);                                \
        shmem_##NAME##_atomic_compare_swap_nbi(&fetched, at, 9, 1, right);                                     \
        shmem_quiet();                                                                                         \
        CHECK(fetched == 9 && shmem_##NAME##_finc(at, right) == 1);                                            \
        CHECK(shmem_##NAME##_fadd(at, 1, right) == 2 && shmem_##NAME##_cswap(at, 3, 9, right) == 3);           \
        shmem_##NAME##_inc(at, right);                                                                         \
        shmem_##NAME##_add(at, 5, right);                                                                      \
        shmem_quiet();                                                                                         \
        CHECK(shmem_##NAME##_fetch(at, right) == 15);                                                          \
        shmem_barrier_all();                                                                                   \
        CHECK(*at == 15);                                                                                      \
        shmem_barrier_all();                                                                                   \
    }
AMO_TYPES(DEFINE_AMO)

#define DEFINE_EXTENDED(NAME, T)                                                                               \
    static void extended_##NAME(T *at) {                                                                       \
        T fetched = 0;                                                                                         \
        shmem_##NAME##_atomic_set(at, 3, right);                                                               \
        shmem_quiet();                                                                                         \
        CHECK(shmem_##NAME##_atomic_swap(at, 4, right) == 3 && shmem_ctx_##NAME##_atomic_fetch(ctx, at, right) == 4); \
        shmem_##NAME##_atomic_swap_nbi(&fetched, at, 6, right);                                                \
        shmem_quiet();                                                                                         \
        CHECK(fetched == 4);                                                                                   \
        shmem_##NAME##_atomic_fetch_nbi(&fetched, at, right);                                                  \
        shmem_quiet();                                                                                         \
        CHECK(fetched == 6 && shmem_##NAME##_swap(at, 8, right) == 6);                                         \
        shmem_##NAME##_set(at, 9, right);                                                                      \
        shmem_barrier_all();                                                                                   \
        CHECK(*at == 9);                                                                                       \
        shmem_barrier_all();                                                                                   \
    }
EXTENDED_TYPES(DEFINE_EXTENDED)

#define DEFINE_BITWISE(NAME, T)                                                                                \
    static void bitwise_##NAME(T *at) {                                                                        \
        T fetched = 0;                                                                                         \
        shmem_##NAME##_atomic_set(at, 12, right);                                                              \
        shmem_quiet();                                                                                         \
        CHECK(shmem_##NAME##_atomic_fetch_and(at, 6, right) == 12);                                            \
        CHECK(shmem_##NAME##_atomic_fetch_or(at, 3, right) == 4);                                              \
        CHECK(shmem_ctx_##NAME##_atomic_fetch_xor(ctx, at, 5, right) == 7);                                    \
        shmem_##NAME##_atomic_or(at, 8, right);                                                                \
        shmem_##NAME##_atomic_and(at, 11, right);                                                              \
        shmem_##NAME##_atomic_xor(at, 1, right);                                                               \
        shmem_quiet();                                                                                         \
        shmem_##NAME##_atomic_fetch_or_nbi(&fetched, at, 4, right);                                            \
        shmem_quiet();                                                                                         \
        CHECK(fetched == 11);                                                                                  \
        shmem_##NAME##_atomic_fetch_and_nbi(&fetched, at, 14, right);                                          \
        shmem_quiet();                                                                                         \
        CHECK(fetched == 15);                                                                                  \
        shmem_##NAME##_atomic_fetch_xor_nbi(&fetched, at, 2, right);                                           \
        shmem_barrier_all();                                                                                   \
        CHECK(fetched == 14 && *at == 12);                                                                     \
        shmem_barrier_all();                                                                                   \
    }
BITWISE_TYPES(DEFINE_BITWISE)

/* Elements of so many bits. */
#define SIZED(BITS)                                                                                            \
    do {                                                                                                       \
        size_t bytes = BITS / 8;                                                                               \
        memset(there, 0, 16 * COUNT);                                                                          \
        shmem_barrier_all();                                                                                   \
        shmem_put##BITS(there, source, COUNT, right);                                                          \
        shmem_ctx_quiet(SHMEM_CTX_DEFAULT);                                                                    \
        shmem_get##BITS(got, there, COUNT, right);                                                             \
        CHECK(!memcmp(got, source, COUNT * bytes));                                                            \
        shmem_barrier_all();                                                                                   \
        memset(there, 0, 16 * COUNT);                                                                          \
        shmem_barrier_all();                                                                                   \
        shmem_iput##BITS(there, source, 2, 1, COUNT / 2, right);                                               \
        shmem_quiet();                                                                                         \
        shmem_iget##BITS(got, there, 1, 2, COUNT / 2, right);                                                  \
        CHECK(!memcmp(got, source, COUNT / 2 * bytes));                                                        \
        shmem_barrier_all();                                                                                   \
        shmem_put##BITS##_signal(there, source, COUNT, &sig, 1, SHMEM_SIGNAL_SET, right);                      \
        shmem_uint64_wait_until(&sig, SHMEM_CMP_EQ, 1);                                                        \
        CHECK(((char *) there)[bytes * COUNT - 1] == (char) (left + bytes * COUNT - 1));                       \
        shmem_barrier_all();                                                                                   \
        sig = 0;                                                                                               \
        shmem_barrier_all();                                                                                   \
    } while (0)

static void sizes(void *there) {
    char source[16 * COUNT], got[16 * COUNT];
    for (int i = 0; i < 16 * COUNT; i++) source[i] = (char) (me + i);
    SIZED(8);
    SIZED(16);
    SIZED(32);
    SIZED(64);
    SIZED(128);
    shmem_putmem(there, source, 100, right);
    shmem_quiet();
    shmem_getmem(got, there, 100, right);
    CHECK(!memcmp(got, source, 100));
    shmem_putmem_nbi(there, source + 1, 100, right);
    shmem_quiet();
    shmem_getmem_nbi(got, there, 100, right);
    shmem_quiet();
    CHECK(!memcmp(got, source + 1, 100));
    shmem_barrier_all();
}

/* More than what is copied, sent at once, or one piece. */
static void large(void) {
    enum { BYTES = 3 << 20 };
    char *there = shmem_malloc(BYTES), *source = malloc(BYTES), *got = malloc(BYTES);
    CHECK(there && source && got);
    for (size_t length = 1; length <= BYTES; length *= 7) {
        for (size_t i = 0; i < length; i++) source[i] = (char) (i * 7 + (size_t) me);
        shmem_putmem(there, source, length, right);
        shmem_quiet();
        shmem_getmem(got, there, length, right);
        CHECK(!memcmp(got, source, length));
        memset(got, 0, length);
        shmem_putmem_nbi(there, source, length, right);
        shmem_quiet();
        shmem_getmem_nbi(got, there, length, right);
        shmem_quiet();
        CHECK(!memcmp(got, source, length));
    }
    shmem_barrier_all();
    shmem_free(there);
    free(source);
    free(got);
}

static long double statics[COUNT];

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    n = shmem_n_pes();
    right = (me + 1) % n;
    left = (me + n - 1) % n;
    void *heap = shmem_align(64, 16 * COUNT);
    CHECK(heap && !shmem_ctx_create(SHMEM_CTX_SERIALIZED, &ctx));
#define RUN_RMA(NAME, T) rma_##NAME(heap), rma_##NAME(static_##NAME);
    RMA_TYPES(RUN_RMA)
#define RUN_AMO(NAME, T) amo_##NAME(heap), amo_##NAME((T *) (void *) statics);
    AMO_TYPES(RUN_AMO)
#define RUN_EXTENDED(NAME, T) extended_##NAME(heap), extended_##NAME((T *) (void *) statics);
    EXTENDED_TYPES(RUN_EXTENDED)
#define RUN_BITWISE(NAME, T) bitwise_##NAME(heap), bitwise_##NAME((T *) (void *) statics);
    BITWISE_TYPES(RUN_BITWISE)
    sizes(heap);
    sizes(statics);
    large();
    shmem_ctx_destroy(ctx);
    shmem_free(heap);
    return finish();
}
