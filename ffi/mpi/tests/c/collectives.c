/* Collectives, blocking, nonblocking and persistent, with predefined operations and the program's (MPI-4.1 chapter 6). */
#include "check.h"

/* Not commutative: matrices of 2 x 2, row by row. */
static void product(void *left, void *right, int *len, MPI_Datatype *type) {
    (void)type;
    long *a = left, *b = right;
    for (int i = 0; i < *len; i++, a += 4, b += 4) {
        long c[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2],
                     a[2] * b[1] + a[3] * b[3]};
        memcpy(b, c, sizeof c);
    }
}

/* Of elements with a gap. */
static void gaps(void *left, void *right, int *len, MPI_Datatype *type) {
    (void)type;
    int *a = left, *b = right;
    for (int i = 0; i < *len; i++) b[2 * i] += a[2 * i];
}

/* Persistent ones meet by the order in which they were made, in whatever order they start. */
static void out_of_order(void) {
    MPI_Request requests[2];
    int sums[2], operands[2];
    for (int i = 0; i < 2; i++)
        OK(MPI_Allreduce_init(&operands[i], &sums[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[i]));
    for (int round = 0; round < 4; round++) {
        for (int k = 0; k < 2; k++) {
            int i = (k + rank_ + round) % 2;
            operands[i] = 100 * i + round;
            OK(MPI_Start(&requests[i]));
        }
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        CHECK(sums[0] == size_ * round && sums[1] == size_ * (100 + round));
    }
    OK(MPI_Request_free(&requests[0]));
    OK(MPI_Request_free(&requests[1]));
}

/* What is sent and what is received may not be in one buffer (MPI-4.1 6.2.3), in any form. */
static void in_one_buffer(void) {
    int both[16] = {0}, counts[16], places[16], n = size_, r = rank_;
    MPI_Datatype types[16];
    MPI_Request request = MPI_REQUEST_NULL;
    for (int i = 0; i < n; i++) counts[i] = 1, places[i] = i, types[i] = MPI_INT;
#define ALIASED(...) FAILS(__VA_ARGS__, MPI_ERR_BUFFER)
#define ONE(place) &both[place], 1, MPI_INT
#define EACH both, counts, places, MPI_INT
    ALIASED(MPI_Gather(ONE(0), ONE(0), 0, MPI_COMM_SELF));
    ALIASED(MPI_Gatherv(ONE(0), EACH, 0, MPI_COMM_SELF));
    ALIASED(MPI_Scatter(ONE(0), ONE(0), 0, MPI_COMM_SELF));
    ALIASED(MPI_Scatterv(EACH, ONE(0), 0, MPI_COMM_SELF));
    ALIASED(MPI_Allgather(ONE(r), ONE(0), MPI_COMM_WORLD));
    ALIASED(MPI_Allgatherv(ONE(r), EACH, MPI_COMM_WORLD));
    ALIASED(MPI_Alltoall(ONE(0), ONE(0), MPI_COMM_WORLD));
    ALIASED(MPI_Alltoallv(EACH, EACH, MPI_COMM_WORLD));
    ALIASED(MPI_Alltoallw(both, counts, places, types, both, counts, places, types, MPI_COMM_WORLD));
    ALIASED(MPI_Reduce(both, both, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_SELF));
    ALIASED(MPI_Allreduce(both, both, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    ALIASED(MPI_Scan(both, both, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    ALIASED(MPI_Iallgather(ONE(r), ONE(0), MPI_COMM_WORLD, &request));
    ALIASED(MPI_Ialltoall(ONE(0), ONE(0), MPI_COMM_WORLD, &request));
    ALIASED(MPI_Gather_init(ONE(0), ONE(0), 0, MPI_COMM_SELF, MPI_INFO_NULL, &request));
    CHECK(request == MPI_REQUEST_NULL);
    /* Nothing is sent, or another rank's part is where this rank's data is. */
    OK(MPI_Allgather(both, 0, MPI_INT, both, 0, MPI_INT, MPI_COMM_WORLD));
    OK(MPI_Gather(ONE(0), &both[1], 1, MPI_INT, 0, MPI_COMM_SELF));
}

/* Ranks may have their data in any order, in place, or of datatypes of their own, while others have it one part behind the other. */
static void laid_out_otherwise(int odd_ones) {
    enum { MOST = 64, GAP = 4 };
    int own[MOST], all[MOST * GAP], to[MOST], counts[MOST], places[MOST], to_counts[MOST], to_places[MOST], n = size_, sum = 0;
    MPI_Datatype couple;
    OK(MPI_Type_contiguous(2, MPI_INT, &couple));
    OK(MPI_Type_commit(&couple));
    int is_odd = odd_ones >> rank_ & 1;

    /* 0, 2, 4, 0, ... elements of each rank, with gaps, the last first. */
    for (int r = 0; r < n; r++) counts[r] = 2 * (r % 3), places[r] = GAP * (is_odd ? n - 1 - r : r);
    for (int i = 0; i < GAP; i++) own[i] = 10 * rank_ + i;
    memset(all, -1, sizeof all);
    if (is_odd) OK(MPI_Allgatherv(own, rank_ % 3, couple, all, counts, places, MPI_INT, MPI_COMM_WORLD));
    else {
        memcpy(all + places[rank_], own, counts[rank_] * sizeof *own);
        OK(MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_INT, all, counts, places, MPI_INT, MPI_COMM_WORLD));
    }
    for (int r = 0; r < n; r++)
        for (int i = 0; i < GAP; i++) CHECK(all[places[r] + i] == (i < counts[r] ? 10 * r + i : -1));

    for (int r = 0; r < n; r++) {
        counts[r] = (rank_ + r) % 3, to_counts[r] = (rank_ + r) % 3;
        places[r] = 3 * (is_odd ? n - 1 - r : r), to_places[r] = 3 * (is_odd ? r : n - 1 - r);
        for (int i = 0; i < 3; i++) own[places[r] + i] = 100 * rank_ + 10 * r + i;
    }
    memset(to, -1, sizeof to);
    OK(MPI_Alltoallv(own, counts, places, MPI_INT, to, to_counts, to_places, MPI_INT, MPI_COMM_WORLD));
    for (int r = 0; r < n; r++)
        for (int i = 0; i < 3; i++)
            CHECK(to[to_places[r] + i] == (i < counts[r] ? 100 * r + 10 * rank_ + i : -1));

    for (int r = 0; r < n; r++) counts[r] = r % 3, sum += r % 3;
    for (int i = 0; i < sum; i++) own[i] = (rank_ + 1) * (i + 1);
    int before = 0, *result = is_odd ? own : to, whole = n * (n + 1) / 2;
    for (int r = 0; r < rank_; r++) before += counts[r];
    OK(MPI_Reduce_scatter(is_odd ? MPI_IN_PLACE : own, result, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    for (int i = 0; i < counts[rank_]; i++) CHECK(result[i] == whole * (before + i + 1));
    for (int i = 0; i < 2 * n; i++) own[i] = (rank_ + 1) * (i + 1);
    OK(MPI_Reduce_scatter_block(is_odd ? MPI_IN_PLACE : own, result, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(result[0] == whole * (2 * rank_ + 1) && result[1] == whole * (2 * rank_ + 2));

    int operands[2] = {rank_ + 1, -rank_}, results[2] = {rank_ + 1, -rank_}, lower = rank_ * (rank_ + 1) / 2;
    OK(MPI_Scan(is_odd ? MPI_IN_PLACE : operands, results, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(results[0] == lower + rank_ + 1 && results[1] == -lower);
    results[0] = rank_ + 1, results[1] = -rank_;
    OK(MPI_Exscan(is_odd ? MPI_IN_PLACE : operands, results, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    if (rank_ > 0) CHECK(results[0] == lower && results[1] == rank_ - lower);
    else CHECK(results[0] == 1 && results[1] == 0);
    OK(MPI_Type_free(&couple));
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    errors_return();
    int own[4] = {rank_, 10 + rank_, 20, 30}, all[256], sum, counts[64], places[64], n = size_;
    MPI_Request request;

    int forms[] = {0, 1, 2, 5, 6, 11, -1};
    for (int i = 0; i < 7; i++) laid_out_otherwise(forms[i]);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    FAILS(MPI_Allreduce(own, own, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    int word = rank_ == n - 1 ? 42 : 0;
    OK(MPI_Bcast(&word, 1, MPI_INT, n - 1, MPI_COMM_WORLD));
    CHECK(word == 42);
    OK(MPI_Gather(own, 2, MPI_INT, all, 2, MPI_INT, 0, MPI_COMM_WORLD));
    if (rank_ == 0)
        for (int r = 0; r < n; r++) CHECK(all[2 * r] == r && all[2 * r + 1] == 10 + r);
    OK(MPI_Scatter(all, 2, MPI_INT, own, 2, MPI_INT, 0, MPI_COMM_WORLD));
    CHECK(own[0] == rank_ && own[1] == 10 + rank_);
    memset(all, 0, sizeof all);
    OK(MPI_Allgather(own, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD));
    for (int r = 0; r < n; r++) CHECK(all[r] == r);
    all[rank_] = 5 * rank_;
    OK(MPI_Allgather(MPI_IN_PLACE, 0, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD));
    for (int r = 0; r < n; r++) CHECK(all[r] == 5 * r);
    for (int r = 0; r < n; r++) counts[r] = 1 + r % 2, places[r] = 3 * r;
    memset(all, -1, sizeof all);
    OK(MPI_Allgatherv(own, 1 + rank_ % 2, MPI_INT, all, counts, places, MPI_INT, MPI_COMM_WORLD));
    for (int r = 0; r < n; r++) CHECK(all[3 * r] == r && all[3 * r + 1] == (r % 2 ? 10 + r : -1));
    int to[64], from[64];
    for (int r = 0; r < n; r++) to[r] = 100 * rank_ + r;
    OK(MPI_Alltoall(to, 1, MPI_INT, from, 1, MPI_INT, MPI_COMM_WORLD));
    for (int r = 0; r < n; r++) CHECK(from[r] == 100 * r + rank_);
    /* One rank's blocks are of a datatype of the program's: the others' are not, and have the same signature. */
    MPI_Datatype pair;
    OK(MPI_Type_contiguous(2, MPI_INT, &pair));
    OK(MPI_Type_commit(&pair));
    int pairs[128], theirs[128];
    for (int r = 0; r < n; r++) pairs[2 * r] = 100 * rank_ + r, pairs[2 * r + 1] = -r;
    if (rank_ == 0) OK(MPI_Alltoall(pairs, 1, pair, theirs, 1, pair, MPI_COMM_WORLD));
    else OK(MPI_Alltoall(pairs, 2, MPI_INT, theirs, 2, MPI_INT, MPI_COMM_WORLD));
    for (int r = 0; r < n; r++) CHECK(theirs[2 * r] == 100 * r + rank_ && theirs[2 * r + 1] == -rank_);
    if (rank_ == n - 1) OK(MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INT, pairs, 2, MPI_INT, MPI_COMM_WORLD));
    else OK(MPI_Alltoall(pairs, 2, MPI_INT, theirs, 2, MPI_INT, MPI_COMM_WORLD));
    int *got = rank_ == n - 1 ? pairs : theirs;
    for (int r = 0; r < n; r++) CHECK(got[2 * r] == 100 * r + rank_ && got[2 * r + 1] == -rank_);
    OK(MPI_Type_free(&pair));

    OK(MPI_Reduce(own, &sum, 1, MPI_INT, MPI_SUM, n - 1, MPI_COMM_WORLD));
    if (rank_ == n - 1) CHECK(sum == n * (n - 1) / 2);
    sum = rank_ + 1;
    OK(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    CHECK(sum == n);
    struct {
        double value;
        int index;
    } low = {-rank_, rank_}, lowest;
    OK(MPI_Allreduce(&low, &lowest, 1, MPI_DOUBLE_INT, MPI_MINLOC, MPI_COMM_WORLD));
    CHECK(lowest.value == 1 - n && lowest.index == n - 1);
    OK(MPI_Scan(own, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum == rank_ * (rank_ + 1) / 2);
    sum = -1;
    OK(MPI_Exscan(own, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum == (rank_ ? rank_ * (rank_ - 1) / 2 : -1));
    OK(MPI_Reduce_scatter_block(to, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(sum == 100 * (n * (n - 1) / 2) + n * rank_);
    FAILS(MPI_Allreduce(&low.value, &lowest.value, 1, MPI_DOUBLE, MPI_BAND, MPI_COMM_WORLD), MPI_ERR_OP);
    FAILS(MPI_Bcast(&word, 1, MPI_INT, n, MPI_COMM_WORLD), MPI_ERR_ROOT);

    /* The program's operations. */
    MPI_Op times, skipping;
    MPI_Datatype matrix, gap;
    int flag;
    OK(MPI_Op_create(product, 0, &times));
    OK(MPI_Op_commutative(times, &flag));
    CHECK(!flag);
    OK(MPI_Type_contiguous(4, MPI_LONG, &matrix));
    OK(MPI_Type_commit(&matrix));
    long m[4] = {1, rank_ + 1, 0, 1}, expected = 0, result[4] = {0};
    long q[4] = {0, 1, 1, rank_}, p[4] = {1, 0, 0, 1};
    OK(MPI_Allreduce(m, result, 1, matrix, times, MPI_COMM_WORLD));
    for (int r = 0; r < n; r++) expected += r + 1;
    CHECK(result[0] == 1 && result[1] == expected && result[3] == 1);
    OK(MPI_Allreduce(q, result, 1, matrix, times, MPI_COMM_WORLD));
    for (int r = 0; r < n; r++) {
        long next[4] = {0, 1, 1, r};
        int one = 1;
        long copy[4];
        memcpy(copy, next, sizeof copy);
        product(p, copy, &one, NULL);
        memcpy(p, copy, sizeof p);
    }
    CHECK(memcmp(p, result, sizeof p) == 0);
    OK(MPI_Op_create(gaps, 1, &skipping));
    OK(MPI_Type_create_resized(MPI_INT, 0, 8, &gap));
    OK(MPI_Type_commit(&gap));
    int spaced[4] = {rank_, -1, 1, -1}, sums[4] = {-2, -2, -2, -2};
    OK(MPI_Allreduce(spaced, sums, 2, gap, skipping, MPI_COMM_WORLD));
    CHECK(sums[0] == n * (n - 1) / 2 && sums[1] == -2 && sums[2] == n && sums[3] == -2);
    OK(MPI_Reduce_local(spaced, sums, 2, gap, skipping));
    CHECK(sums[2] == n + 1);
    OK(MPI_Op_free(&skipping));
    OK(MPI_Op_free(&times));
    CHECK(times == MPI_OP_NULL);
    OK(MPI_Type_free(&gap));
    OK(MPI_Type_free(&matrix));

    /* Nonblocking ones, together, and persistent ones. */
    MPI_Request requests[3];
    int gathered[64];
    sum = 0;
    OK(MPI_Ibarrier(MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Iallreduce(own, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Iallgather(own, 1, MPI_INT, gathered, 1, MPI_INT, MPI_COMM_WORLD, &requests[2]));
    OK(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE));
    CHECK(sum == n * (n - 1) / 2 && gathered[n - 1] == n - 1);
    OK(MPI_Bcast_init(&word, 1, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request));
    for (int round = 0; round < 3; round++) {
        word = rank_ ? -1 : round;
        OK(MPI_Start(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK(word == round);
    }
    OK(MPI_Request_free(&request));
    out_of_order();
    in_one_buffer();
    return end();
}
