// The forms for any type, as C++ has them.
#include <cstdio>
#include <shmem.h>

template <typename T> static bool works(T *at, int pe) {
    T source[2] = {3, 4}, got[2] = {};
    shmem_put(at, source, 2, pe);
    shmem_put(SHMEM_CTX_DEFAULT, at, source, 2, pe);
    shmem_p(at, T(5), pe);
    shmem_quiet();
    shmem_get(got, at, 2, pe);
    return got[0] == T(5) && got[1] == T(4) && shmem_g(SHMEM_CTX_DEFAULT, at + 1, pe) == T(4);
}

int main() {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes(), right = (me + 1) % n;
    void *at = shmem_malloc(64);
    bool all = true;
    auto try_one = [&](auto *typed) {
        all = all && works(typed, right);
        shmem_barrier_all();
    };
    try_one(static_cast<float *>(at)), try_one(static_cast<double *>(at)), try_one(static_cast<long double *>(at));
    try_one(static_cast<char *>(at)), try_one(static_cast<signed char *>(at)), try_one(static_cast<unsigned char *>(at));
    try_one(static_cast<short *>(at)), try_one(static_cast<unsigned short *>(at)), try_one(static_cast<int *>(at));
    try_one(static_cast<unsigned *>(at)), try_one(static_cast<long *>(at)), try_one(static_cast<unsigned long *>(at));
    try_one(static_cast<long long *>(at)), try_one(static_cast<unsigned long long *>(at));
    long *word = static_cast<long *>(at);
    *word = 0;
    shmem_sync_all();
    shmem_atomic_add(word, 1L, right);
    shmem_wait_until(word, SHMEM_CMP_EQ, 1L);
    all = all && shmem_sync(SHMEM_TEAM_WORLD) == 0 && shmem_atomic_fetch_inc(SHMEM_CTX_DEFAULT, word, right) == 1;
    shmem_barrier_all();
    double sum, one = 1;
    all = all && shmem_sum_reduce(SHMEM_TEAM_WORLD, &sum, &one, 1) == 0 && sum == n;
    if (!all) shmem_global_exit(3);
    shmem_free(at);
    shmem_barrier_all();
    shmem_finalize();
    if (me == 0) std::printf("all well with %d\n", n);
}
