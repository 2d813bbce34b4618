/* What OpenSHMEM 1.6 has added: blocks at distances, sums up to a PE, completion at some PEs, signals without data, sessions of contexts. */
#include "check.h"
#include <complex.h>
#include <string.h>

#define BLOCKS 5
#define BLOCK 3
#define THERE 7 /* distance of blocks at the target, in elements */
#define HERE 4  /* and at the origin */

static long there[BLOCKS * THERE]; /* symmetric */
static double numbers[4], sums[4];
static double complex pairs[2], pair_sums[2];
static unsigned char bytes[4], byte_sums[4];
static uint64_t word;
static int me, n, right;

static void blocks(shmem_ctx_t ctx) {
    long here[BLOCKS * HERE], back[BLOCKS * HERE];
    for (int i = 0; i < BLOCKS * HERE; i++) here[i] = 1000 * me + i, back[i] = -1;
    for (int i = 0; i < BLOCKS * THERE; i++) there[i] = -1;
    shmem_barrier_all();
    shmem_ibput(ctx, there, here, THERE, HERE, BLOCK, BLOCKS, right);
    shmem_ctx_quiet(ctx);
    shmem_barrier_all();
    int left = (me + n - 1) % n;
    for (int i = 0; i < BLOCKS * THERE; i++) {
        int block = i / THERE, at = i % THERE;
        CHECK(there[i] == (at < BLOCK ? 1000 * left + block * HERE + at : -1));
    }
    shmem_ctx_long_ibget(ctx, back, there, HERE, THERE, BLOCK, BLOCKS, right);
    for (int i = 0; i < BLOCKS * HERE; i++) CHECK(back[i] == (i % HERE < BLOCK ? here[i] : -1));
    shmem_barrier_all();
    /* By size: pairs of 32 bits, side by side here. */
    int32_t small[4] = {me, 2, 3, 4}, *target = (int32_t *) there;
    shmem_ibput32(target, small, 5, 2, 2, 2, right);
    shmem_barrier_all();
    CHECK(target[0] == left && target[1] == 2 && target[5] == 3 && target[6] == 4);
    shmem_ibget32(small, target, 2, 5, 2, 2, right);
    CHECK(small[0] == me && small[1] == 2 && small[2] == 3 && small[3] == 4);
    /* Nothing to do. */
    shmem_ibput(there, here, 1, 1, 0, 1, right);
    shmem_ibput(there, here, 1, 1, 1, 0, right);
    shmem_barrier_all();
    CHECK(target[0] == left);
    shmem_barrier_all();
}

static void scans(shmem_team_t team) {
    int place = shmem_team_my_pe(team);
    for (int i = 0; i < 4; i++) numbers[i] = place + i, bytes[i] = (unsigned char) (100 + i);
    for (int i = 0; i < 2; i++) pairs[i] = place + 1 + i * I;
    shmem_team_sync(team);
    CHECK(shmem_sum_inscan(team, sums, numbers, 4) == 0);
    for (int i = 0; i < 4; i++) CHECK(sums[i] == place * (place + 1) / 2 + i * (place + 1));
    CHECK(shmem_double_sum_exscan(team, sums, numbers, 4) == 0);
    for (int i = 0; i < 4; i++) CHECK(sums[i] == (place ? place * (place - 1) / 2 + i * place : 0));
    /* In place; numbers that go beyond their type begin anew. */
    CHECK(shmem_uchar_sum_exscan(team, byte_sums, bytes, 4) == 0);
    for (int i = 0; i < 4; i++) CHECK(byte_sums[i] == (unsigned char) (place * (100 + i)));
    CHECK(shmem_uchar_sum_inscan(team, bytes, bytes, 4) == 0);
    for (int i = 0; i < 4; i++) CHECK(bytes[i] == (unsigned char) ((place + 1) * (100 + i)));
    CHECK(shmem_complexd_sum_inscan(team, pair_sums, pairs, 2) == 0);
    for (int i = 0; i < 2; i++)
        CHECK(pair_sums[i] == (place + 1) * (place + 2) / 2 + i * (place + 1) * I);
    CHECK(shmem_double_sum_inscan(team, sums, numbers, 0) == 0);
    shmem_team_sync(team);
}

static void completion(shmem_ctx_t ctx) {
    int both[2] = {right, me};
    for (uint64_t turn = 1; turn <= 20; turn++) {
        shmem_ctx_uint64_put_nbi(ctx, &word, &turn, 1, right);
        shmem_ctx_pe_quiet(ctx, both, 2);
        CHECK(shmem_uint64_g(&word, right) == turn);
        shmem_barrier_all();
    }
    shmem_pe_quiet(NULL, 0);
    shmem_pe_quiet(both, 1);
    word = 0;
    shmem_barrier_all();
    shmem_signal_set(&word, 40, right);
    shmem_quiet();
    shmem_signal_add(&word, 2, right);
    shmem_signal_wait_until(&word, SHMEM_CMP_EQ, 42);
    shmem_barrier_all();
}

int main(void) {
    int is_there = 1;
    shmem_query_initialized(&is_there);
    int before = is_there;
    shmem_init();
    CHECK(!before);
    shmem_query_initialized(&is_there);
    CHECK(is_there);
    me = shmem_my_pe(), n = shmem_n_pes(), right = (me + 1) % n;
    shmem_ctx_t ctx;
    CHECK(shmem_ctx_create(0, &ctx) == 0);
    shmem_ctx_session_config_t config = {.total_ops = 100};
    shmem_ctx_session_start(ctx, SHMEM_CTX_SESSION_BATCH, &config, SHMEM_CTX_SESSION_TOTAL_OPS);
    blocks(SHMEM_CTX_DEFAULT);
    blocks(ctx);
    completion(SHMEM_CTX_DEFAULT);
    completion(ctx);
    shmem_ctx_session_stop(ctx);
    shmem_ctx_session_stop(ctx);
    shmem_ctx_session_stop(SHMEM_CTX_INVALID);
    scans(SHMEM_TEAM_WORLD);
    shmem_team_t back;
    int first = n - 1;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, first, -1, n, NULL, 0, &back);
    if (back != SHMEM_TEAM_INVALID) scans(back);
    CHECK(shmem_long_sum_inscan(SHMEM_TEAM_INVALID, there, there, 1) != 0);
    shmem_ctx_destroy(ctx);
    int pes = n, pe = me;
    shmem_barrier_all();
    shmem_finalize();
    shmem_query_initialized(&is_there);
    if (is_there) return 4;
    if (pe == 0) printf("all well with %d\n", pes);
    return 0;
}
