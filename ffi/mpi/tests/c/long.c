/* Collectives on long data, of lengths around those at which it is sent otherwise (MPI-4.1 §6.4, §6.6 to §6.9): those that block,
   nonblocking ones (§6.12) and persistent ones (§6.13). */
#include "check.h"

enum { BLOCKING, NONBLOCKING, PERSISTENT, FORMS };
static int form_;
static MPI_Request request_;

static int ended(int code) {
    if (form_ == BLOCKING || code != MPI_SUCCESS) return code;
    if (form_ == PERSISTENT) OK(MPI_Start(&request_));
    code = MPI_Wait(&request_, MPI_STATUS_IGNORE);
    if (form_ == PERSISTENT) OK(MPI_Request_free(&request_));
    return code;
}

/* A collective in the form that is tried. */
#define DO(Name, name, ...)                                                                             \
    ended(form_ == BLOCKING      ? MPI_##Name(__VA_ARGS__)                                              \
          : form_ == NONBLOCKING ? MPI_I##name(__VA_ARGS__, &request_)                                  \
                                 : MPI_##Name##_init(__VA_ARGS__, MPI_INFO_NULL, &request_))

/* Not commutative: matrices of 2 x 2 of unsigned numbers, row by row. */
static void product(void *left, void *right, int *len, MPI_Datatype *type) {
    (void)type;
    unsigned *a = left, *b = right;
    for (int i = 0; i < *len; i++, a += 4, b += 4) {
        unsigned c[4] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2],
                         a[2] * b[1] + a[3] * b[3]};
        memcpy(b, c, sizeof c);
    }
}

static int value(int rank, long i) { return (int)(rank * 1000003L + i * 7 % 100003); }

static int *numbers(long count) {
    int *all = malloc(sizeof(int) * (size_t)(count ? count : 1));
    memset(all, -1, sizeof(int) * (size_t)(count ? count : 1));
    return all;
}

/* Whether count numbers, gap apart, are those of a rank from the first on. */
static int are(const int *found, long count, int gap, int rank, long first) {
    for (long i = 0; i < count; i++)
        if (found[i * gap] != value(rank, first + i)) return 0;
    return 1;
}

static void broadcasts(int count) {
    for (int root = 0; root < size_; root++)
        for (int gap = 1; gap <= 2; gap++) {
            int *data = numbers((long)count * gap);
            MPI_Datatype type;
            OK(MPI_Type_vector(count, 1, gap, MPI_INT, &type));
            OK(MPI_Type_commit(&type));
            if (rank_ == root)
                for (int i = 0; i < count; i++) data[i * gap] = value(root, i);
            OK(DO(Bcast, bcast, data, 1, type, root, MPI_COMM_WORLD));
            CHECK(are(data, count, gap, root, 0) && (gap == 1 || data[1] == -1));
            OK(MPI_Type_free(&type));
            free(data);
        }
}

static void allgathers(int count) {
    int *own = numbers(count), *all = numbers((long)count * size_), counts[64], places[64];
    for (int i = 0; i < count; i++) own[i] = value(rank_, i);
    OK(DO(Allgather, allgather, own, count, MPI_INT, all, count, MPI_INT, MPI_COMM_WORLD));
    for (int r = 0; r < size_; r++) CHECK(are(all + (long)r * count, count, 1, r, 0));
    memset(all, -1, sizeof(int) * (size_t)count * (size_t)size_);
    memcpy(all + (long)rank_ * count, own, sizeof(int) * (size_t)count);
    OK(DO(Allgather, allgather, MPI_IN_PLACE, 0, MPI_INT, all, count, MPI_INT, MPI_COMM_WORLD));
    for (int r = 0; r < size_; r++) CHECK(are(all + (long)r * count, count, 1, r, 0));
    /* The last rank gives nothing, the others less the higher they are, in reverse order. */
    memset(all, -1, sizeof(int) * (size_t)count * (size_t)size_);
    for (int r = 0; r < size_; r++) {
        counts[r] = r && r == size_ - 1 ? 0 : count - r;
        places[r] = (size_ - 1 - r) * count;
    }
    OK(DO(Allgatherv, allgatherv, own, counts[rank_], MPI_INT, all, counts, places, MPI_INT, MPI_COMM_WORLD));
    for (int r = 0; r < size_; r++) CHECK(are(all + places[r], counts[r], 1, r, 0));
    CHECK(size_ == 1 || all[places[size_ - 1]] == -1);
    free(own);
    free(all);
}

static void gathers(int count) {
    long total = (long)count * size_;
    int *own = numbers(count), *all = numbers(2 * total), counts[64], places[64];
    MPI_Datatype every, apart;
    OK(MPI_Type_vector(count, 1, 2, MPI_INT, &every));
    OK(MPI_Type_create_resized(every, 0, (MPI_Aint)(2 * sizeof(int)) * count, &apart));
    OK(MPI_Type_commit(&apart));
    OK(MPI_Type_free(&every));
    for (int root = 0; root < size_; root++) {
        for (int i = 0; i < count; i++) own[i] = value(rank_, i);
        memset(all, -1, sizeof(int) * 2 * (size_t)total);
        OK(DO(Gather, gather, own, count, MPI_INT, all, 1, apart, root, MPI_COMM_WORLD));
        for (int r = 0; r < size_ && rank_ == root; r++) CHECK(are(all + 2L * r * count, count, 2, r, 0));
        CHECK(all[1] == -1 && (rank_ == root || all[0] == -1));
        /* In place, from the others less the higher they are, in reverse order. */
        memset(all, -1, sizeof(int) * 2 * (size_t)total);
        for (int r = 0; r < size_; r++) {
            counts[r] = r && r == size_ - 1 ? 0 : count - r;
            places[r] = (size_ - 1 - r) * count;
        }
        memcpy(all + places[rank_], own, sizeof(int) * (size_t)count);
        const void *from = rank_ == root ? MPI_IN_PLACE : own;
        OK(DO(Gatherv, gatherv, from, counts[rank_], MPI_INT, all, counts, places, MPI_INT, root, MPI_COMM_WORLD));
        for (int r = 0; r < size_ && rank_ == root; r++) CHECK(are(all + places[r], counts[r], 1, r, 0));
        /* And back again. */
        for (long i = 0; i < 2 * total; i++) all[i] = rank_ == root && i % 2 == 0 ? value(root, i / 2) : -1;
        memset(own, -1, sizeof(int) * (size_t)count);
        OK(DO(Scatter, scatter, all, 1, apart, own, count, MPI_INT, root, MPI_COMM_WORLD));
        CHECK(are(own, count, 1, root, (long)rank_ * count));
        for (long i = 0; i < total && rank_ == root; i++) all[i] = value(root, i);
        memset(own, -1, sizeof(int) * (size_t)count);
        void *to = rank_ == root ? MPI_IN_PLACE : own;
        OK(DO(Scatterv, scatterv, all, counts, places, MPI_INT, to, counts[rank_], MPI_INT, root, MPI_COMM_WORLD));
        CHECK(rank_ == root || are(own, counts[rank_], 1, root, places[rank_]));
        CHECK(rank_ == root || counts[rank_] == count || own[counts[rank_]] == -1);
    }
    OK(MPI_Type_free(&apart));
    free(own);
    free(all);
}

static void alltoalls(int count) {
    long total = (long)count * size_;
    int *to = numbers(total), *from = numbers(total), counts[64], places[64], expected[64];
    for (long i = 0; i < total; i++) to[i] = value(rank_, i);
    OK(DO(Alltoall, alltoall, to, count, MPI_INT, from, count, MPI_INT, MPI_COMM_WORLD));
    for (int r = 0; r < size_; r++) CHECK(are(from + (long)r * count, count, 1, r, (long)rank_ * count));
    memcpy(from, to, sizeof(int) * (size_t)total);
    OK(DO(Alltoall, alltoall, MPI_IN_PLACE, 0, MPI_INT, from, count, MPI_INT, MPI_COMM_WORLD));
    for (int r = 0; r < size_; r++) CHECK(are(from + (long)r * count, count, 1, r, (long)rank_ * count));
    /* Long blocks to higher ranks, one number to this one, none to lower ones. */
    for (int r = 0; r < size_; r++) {
        counts[r] = r > rank_ ? count : r == rank_;
        expected[r] = r < rank_ ? count : r == rank_;
        places[r] = r * count;
    }
    memset(from, -1, sizeof(int) * (size_t)total);
    OK(DO(Alltoallv, alltoallv, to, counts, places, MPI_INT, from, expected, places, MPI_INT, MPI_COMM_WORLD));
    for (int r = 0; r < size_; r++) CHECK(are(from + (long)r * count, expected[r], 1, r, (long)rank_ * count));
    free(to);
    free(from);
}

/* Whether count numbers are the sums of all ranks', from the first on. */
static int are_sums(const int *found, long count, long first) {
    for (long i = 0; i < count; i++) {
        unsigned all = 0;
        for (int r = 0; r < size_; r++) all += (unsigned)value(r, first + i);
        if ((unsigned)found[i] != all) return 0;
    }
    return 1;
}

static void reductions(int count) {
    long total = (long)count * size_;
    int *own = numbers(total), *sum = numbers(total), counts[64], first = 0;
    for (int root = 0; root < size_; root++) {
        for (long i = 0; i < count; i++) own[i] = sum[i] = value(rank_, i);
        OK(DO(Reduce, reduce, own, rank_ == root ? sum : NULL, count, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD));
        CHECK(are(own, count, 1, rank_, 0) && (rank_ == root ? are_sums(sum, count, 0) : are(sum, count, 1, rank_, 0)));
        memcpy(sum, own, sizeof(int) * (size_t)count);
        OK(DO(Reduce, reduce, rank_ == root ? MPI_IN_PLACE : own, sum, count, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD));
        CHECK(rank_ != root || are_sums(sum, count, 0));
    }
    for (long i = 0; i < total; i++) own[i] = value(rank_, i);
    OK(DO(Reduce_scatter_block, reduce_scatter_block, own, sum, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK(are_sums(sum, count, (long)rank_ * count) && are(own, total, 1, rank_, 0));
    /* In place, the first rank has nothing. */
    for (int r = 0; r < size_; r++) counts[r] = r ? count + r : 0;
    for (int r = 0; r < rank_; r++) first += counts[r];
    if (size_ > 1 && count > 2 * size_) {
        counts[1] = count - 2 * size_;
        first = 0;
        for (int r = 0; r < rank_; r++) first += counts[r];
        OK(DO(Reduce_scatter, reduce_scatter, MPI_IN_PLACE, own, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        CHECK(are_sums(own, counts[rank_], first));
    }
    free(own);
    free(sum);
}

static void allreductions(int count) {
    int *own = numbers(count), *sum = numbers(count);
    for (int i = 0; i < count; i++) own[i] = value(rank_, i);
    OK(DO(Allreduce, allreduce, own, sum, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    for (int in_place = 0; in_place < 2; in_place++) {
        int wrong = 0;
        for (int i = 0; i < count; i++) {
            unsigned all = 0;
            for (int r = 0; r < size_; r++) all += (unsigned)value(r, i);
            wrong += (unsigned)sum[i] != all;
        }
        CHECK(wrong == 0);
        memcpy(sum, own, sizeof(int) * (size_t)count);
        OK(DO(Allreduce, allreduce, MPI_IN_PLACE, sum, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    }
    free(own);
    free(sum);
    MPI_Op times;
    MPI_Datatype matrix;
    OK(MPI_Op_create(product, 0, &times));
    OK(MPI_Type_contiguous(4, MPI_UNSIGNED, &matrix));
    OK(MPI_Type_commit(&matrix));
    int matrices = count / 4, wrong = 0;
    unsigned *given = malloc(16 * (size_t)matrices + 1), *made = malloc(16 * (size_t)matrices + 1);
    for (long i = 0; i < 4L * matrices; i++) given[i] = (unsigned)value(rank_, i);
    OK(DO(Allreduce, allreduce, given, made, matrices, matrix, times, MPI_COMM_WORLD));
    for (long i = 0; i < matrices; i++) {
        unsigned all[4] = {1, 0, 0, 1};
        for (int r = 0; r < size_; r++) {
            int one = 1;
            unsigned next[4];
            for (long k = 0; k < 4; k++) next[k] = (unsigned)value(r, 4 * i + k);
            product(all, next, &one, NULL);
            memcpy(all, next, sizeof all);
        }
        wrong += memcmp(all, made + 4 * i, sizeof all) != 0;
    }
    CHECK(wrong == 0);
    unsigned *at_last = calloc(16 * (size_t)matrices + 1, 1);
    OK(DO(Reduce, reduce, given, at_last, matrices, matrix, times, size_ - 1, MPI_COMM_WORLD));
    CHECK(rank_ != size_ - 1 || memcmp(made, at_last, 16 * (size_t)matrices) == 0);
    free(at_last);
    free(given);
    free(made);
    OK(MPI_Type_free(&matrix));
    OK(MPI_Op_free(&times));
}

/* Several at once, of the same kinds, that end in another order than they have started in. */
static void at_once(int count) {
    enum { EACH = 3, KINDS = 4 };
    MPI_Request requests[EACH * KINDS];
    int *own = numbers((long)count * size_), *to[EACH * KINDS];
    for (long i = 0; i < (long)count * size_; i++) own[i] = value(rank_, i);
    for (int i = 0; i < EACH; i++) {
        int **at = to + KINDS * i, root = i % size_;
        MPI_Request *next = requests + KINDS * i;
        for (int kind = 0; kind < KINDS; kind++) at[kind] = numbers((long)count * size_);
        if (rank_ == root) memcpy(at[0], own, sizeof(int) * (size_t)count);
        OK(MPI_Ibcast(at[0], count, MPI_INT, root, MPI_COMM_WORLD, &next[0]));
        OK(MPI_Iallreduce(own, at[1], count, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &next[1]));
        OK(MPI_Ialltoall(own, count, MPI_INT, at[2], count, MPI_INT, MPI_COMM_WORLD, &next[2]));
        OK(MPI_Iallgather(own, count, MPI_INT, at[3], count, MPI_INT, MPI_COMM_WORLD, &next[3]));
    }
    for (int i = EACH * KINDS - 1; i >= 0; i -= 1 + rank_ % 2) OK(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
    OK(MPI_Waitall(EACH * KINDS, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < EACH; i++) {
        int **at = to + KINDS * i;
        CHECK(are(at[0], count, 1, i % size_, 0) && are_sums(at[1], count, 0));
        for (int r = 0; r < size_; r++)
            CHECK(are(at[2] + (long)r * count, count, 1, r, (long)rank_ * count) && are(at[3] + (long)r * count, count, 1, r, 0));
        for (int kind = 0; kind < KINDS; kind++) free(at[kind]);
    }
    free(own);
}

/* Who gives more than there is room for is told so, and ranks that get it from there get it all. */
static void too_long(void) {
    static char more[200000], sum[200000], all[64 * 100000];
    int counts[64], places[64];
    memset(more, rank_ ? -1 : 7, sizeof more);
    int code = DO(Bcast, bcast, more, rank_ == 1 ? 100000 : 200000, MPI_CHAR, 0, MPI_COMM_WORLD);
    CHECK((code != MPI_SUCCESS) == (rank_ == 1));
    CHECK(rank_ == 1 || (more[0] == 7 && more[199999] == 7));
    /* The last rank has room for less than others give. */
    for (int r = 0; r < size_; r++) {
        counts[r] = 100000 - (rank_ == size_ - 1 && r != rank_ ? 10000 : 0);
        places[r] = r * 100000;
    }
    code = DO(Allgatherv, allgatherv, more, 100000, MPI_CHAR, all, counts, places, MPI_CHAR, MPI_COMM_WORLD);
    CHECK((code != MPI_SUCCESS) == (rank_ == size_ - 1));
    if (size_ == 2) {
        code = DO(Allreduce, allreduce, more, sum, 200000 - 10000 * rank_, MPI_SIGNED_CHAR, MPI_MAX, MPI_COMM_WORLD);
        CHECK(code != MPI_SUCCESS);
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    const int counts[] = {0, 1, 5000, (64 << 10) / 4 - 1, (64 << 10) / 4, (64 << 10) / 4 + 3, 200003};
    /* Lengths around one at which data is sent otherwise are tried in the first form. */
    const int tried[FORMS] = {0x7f, 1 << 1 | 1 << 4 | 1 << 6, 1 << 4};
    for (form_ = BLOCKING; form_ < FORMS; form_++)
        for (int i = 0; i < 7; i++) {
            if (!(tried[form_] >> i & 1)) continue;
            broadcasts(counts[i] ? counts[i] : 1);
            allgathers(counts[i] > 4 ? counts[i] : 5);
            alltoalls(counts[i] ? counts[i] : 1);
            gathers(counts[i] > 4 ? counts[i] : 5);
            reductions(counts[i]);
            allreductions(counts[i]);
        }
    for (int i = 2; i < 7; i += 2) at_once(counts[i] / 2);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    for (form_ = BLOCKING; form_ < FORMS && size_ > 1; form_++) too_long();
    return end();
}
