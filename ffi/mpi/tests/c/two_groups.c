/* Collectives of two groups, and what is made of intercommunicators (MPI-4.1 §6.2.3, §7.4.2, §7.6.2). */
#include "check.h"

enum { MOST = 16 };

static MPI_Comm half, inter;
static int side, mine, here, there; /* this rank's side, its rank there, the sizes of the two sides */

/* What rank `rank` of a side says. */
static int word(int of, int rank) {
    return 100 * (of + 1) + rank;
}

/* The root argument of a collective whose root is the last rank of side `of`. */
static int root_of(int of) {
    if (of != side) return there - 1;
    return mine == here - 1 ? MPI_ROOT : MPI_PROC_NULL;
}

static void rooted(int of) {
    int root = root_of(of), at[MOST], counts[MOST], own = word(side, mine), got = -1, all[2 * MOST];
    MPI_Request request;
    for (int i = 0; i < MOST; i++) at[i] = 2 * i, counts[i] = 1;
    for (int i = 0; i < 2 * MOST; i++) all[i] = -1;

    got = root == MPI_ROOT ? 77 : -1;
    OK(MPI_Bcast(&got, 1, MPI_INT, root, inter));
    CHECK(got == (of == side && root != MPI_ROOT ? -1 : 77));
    OK(MPI_Gather(&own, 1, MPI_INT, all, 1, MPI_INT, root, inter));
    for (int i = 0; i < there; i++) CHECK(all[i] == (root == MPI_ROOT ? word(1 - side, i) : -1));
    OK(MPI_Igatherv(&own, 1, MPI_INT, all, counts, at, MPI_INT, root, inter, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int i = 0; i < there; i++) CHECK(all[2 * i] == (root == MPI_ROOT ? word(1 - side, i) : -1));

    /* Each gets back what it said, twice. */
    got = -1;
    OK(MPI_Scatterv(all, counts, at, MPI_INT, &got, 1, MPI_INT, root, inter));
    CHECK(got == (of == side ? -1 : own));
    for (int i = 0; i < MOST; i++) all[i] = word(1 - side, i);
    got = -1;
    OK(MPI_Scatter(all, 1, MPI_INT, &got, 1, MPI_INT, root, inter));
    CHECK(got == (of == side ? -1 : own));

    int sum = -1;
    OK(MPI_Reduce(&own, &sum, 1, MPI_INT, MPI_SUM, root, inter));
    CHECK(sum == (root == MPI_ROOT ? 100 * (2 - side) * there + there * (there - 1) / 2 : -1));
}

static void everybody(void) {
    int own = word(side, mine), all[MOST], to[MOST], at[MOST], counts[MOST], sum = 0;
    MPI_Datatype types[MOST];
    MPI_Request request;
    OK(MPI_Barrier(inter));
    OK(MPI_Allgather(&own, 1, MPI_INT, all, 1, MPI_INT, inter));
    for (int i = 0; i < there; i++) CHECK(all[i] == word(1 - side, i));
    OK(MPI_Allgather_init(&own, 1, MPI_INT, to, 1, MPI_INT, inter, MPI_INFO_NULL, &request));
    for (int round = 0; round < 2; round++) {
        memset(to, 0, sizeof to);
        OK(MPI_Start(&request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        CHECK(memcmp(to, all, (size_t)there * sizeof *to) == 0);
    }
    OK(MPI_Request_free(&request));

    for (int i = 0; i < there; i++) all[i] = 1000 * word(side, mine) + i, counts[i] = 1, at[i] = i;
    OK(MPI_Alltoall(all, 1, MPI_INT, to, 1, MPI_INT, inter));
    for (int i = 0; i < there; i++) CHECK(to[i] == 1000 * word(1 - side, i) + mine);
    for (int i = 0; i < there; i++) to[i] = -1, at[i] = 4 * i, types[i] = MPI_INT;
    OK(MPI_Alltoallw(all, counts, at, types, to, counts, at, types, inter));
    for (int i = 0; i < there; i++) CHECK(to[i] == 1000 * word(1 - side, i) + mine);

    OK(MPI_Iallreduce(&own, &sum, 1, MPI_INT, MPI_MAX, inter, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(sum == word(1 - side, there - 1));

    /* As many elements as both sizes divide; each rank of a side gets its part of the other side's sum. */
    int part = there, total = here * there, many[MOST * MOST], result[MOST];
    for (int i = 0; i < total; i++) many[i] = (side + 1) * (i + 1);
    OK(MPI_Reduce_scatter_block(many, result, part, MPI_INT, MPI_SUM, inter));
    for (int i = 0; i < part; i++) CHECK(result[i] == (2 - side) * there * (mine * part + i + 1));

    FAILS(MPI_Scan(&own, &sum, 1, MPI_INT, MPI_SUM, inter), MPI_ERR_COMM);
    FAILS(MPI_Bcast(&own, 1, MPI_INT, there, inter), MPI_ERR_ROOT);
    FAILS(MPI_Bcast(&own, 1, MPI_INT, -9, inter), MPI_ERR_ROOT);
}

static void check_sides(MPI_Comm comm, int rank, int size, int remote) {
    int n;
    OK(MPI_Comm_test_inter(comm, &n));
    CHECK(n);
    OK(MPI_Comm_rank(comm, &n));
    CHECK(n == rank);
    OK(MPI_Comm_size(comm, &n));
    CHECK(n == size);
    OK(MPI_Comm_remote_size(comm, &n));
    CHECK(n == remote);
}

/* Parts of an intercommunicator: those who name a colour on both sides, in the order of their keys. */
static void parts(void) {
    MPI_Comm part;
    MPI_Group all, first;
    int zero = 0, both = here < there ? here : there, got = -1;
    OK(MPI_Comm_split(inter, 42, -mine, &part));
    check_sides(part, here - 1 - mine, here, there);
    OK(MPI_Sendrecv(&mine, 1, MPI_INT, 0, 1, &got, 1, MPI_INT, mine == here - 1 ? MPI_ANY_SOURCE : MPI_PROC_NULL, 1,
                    part, MPI_STATUS_IGNORE));
    for (int i = 1; mine == here - 1 && i < there; i++)
        OK(MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 1, part, MPI_STATUS_IGNORE));
    OK(MPI_Comm_free(&part));

    OK(MPI_Comm_split(inter, mine, 0, &part));
    CHECK((part == MPI_COMM_NULL) == (mine >= both));
    if (part != MPI_COMM_NULL) {
        check_sides(part, 0, 1, 1);
        OK(MPI_Comm_free(&part));
    }
    OK(MPI_Comm_split_type(inter, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &part));
    if (part != MPI_COMM_NULL) OK(MPI_Comm_free(&part));
    OK(MPI_Comm_split_type(inter, MPI_UNDEFINED, 0, MPI_INFO_NULL, &part));
    CHECK(part == MPI_COMM_NULL);

    OK(MPI_Comm_group(inter, &all));
    OK(MPI_Group_incl(all, 1, &zero, &first));
    OK(MPI_Comm_create(inter, first, &part));
    CHECK((part == MPI_COMM_NULL) == (mine != 0));
    if (part != MPI_COMM_NULL) {
        check_sides(part, 0, 1, 1);
        OK(MPI_Comm_disconnect(&part));
    }
    OK(MPI_Group_free(&first));
    OK(MPI_Group_free(&all));
}

/* The first rank of each side comes to it when all others of the other side have told it that they have left theirs. */
static void duplicate_that_waits_for_nobody(void) {
    MPI_Comm copy;
    MPI_Request request;
    int got = -1;
    for (int i = 1; mine == 0 && i < there; i++) OK(MPI_Recv(NULL, 0, MPI_INT, i, 9, inter, MPI_STATUS_IGNORE));
    OK(MPI_Comm_idup(inter, &copy, &request));
    if (mine != 0) OK(MPI_Ssend(NULL, 0, MPI_INT, 0, 9, inter));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    check_sides(copy, mine, here, there);
    OK(MPI_Allreduce(&mine, &got, 1, MPI_INT, MPI_MAX, copy));
    CHECK(got == there - 1);
    OK(MPI_Comm_free(&copy));
}

/* Without a communicator that has both: only the leaders know the other side. */
static void from_groups(void) {
    MPI_Comm made;
    MPI_Group local, remote;
    int got = -1;
    OK(MPI_Comm_group(inter, &local));
    OK(MPI_Comm_remote_group(inter, &remote));
    OK(MPI_Intercomm_create_from_groups(local, here - 1, mine == here - 1 ? remote : MPI_GROUP_EMPTY, there - 1, "pair",
                                        MPI_INFO_NULL, MPI_ERRORS_RETURN, &made));
    check_sides(made, mine, here, there);
    OK(MPI_Allreduce(&mine, &got, 1, MPI_INT, MPI_MAX, made));
    CHECK(got == there - 1);
    OK(MPI_Comm_free(&made));
    OK(MPI_Intercomm_create_from_groups(local, 0, MPI_GROUP_EMPTY, 0, "none", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made));
    CHECK(made == MPI_COMM_NULL);
    FAILS(MPI_Intercomm_create_from_groups(local, here, remote, 0, "no leader", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made),
          MPI_ERR_RANK);
    OK(MPI_Group_free(&local));
    OK(MPI_Group_free(&remote));
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    /* Sides of different sizes: one rank, and all others. */
    side = rank_ == size_ / 2 ? 1 : 0;
    errors_return();
    OK(MPI_Comm_split(MPI_COMM_WORLD, side, 0, &half));
    OK(MPI_Comm_rank(half, &mine));
    OK(MPI_Comm_size(half, &here));
    there = size_ - here;
    OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, side ? 0 : size_ / 2, 4, &inter));
    rooted(0);
    rooted(1);
    RUN(everybody, parts, duplicate_that_waits_for_nobody, from_groups);
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_free(&half));
    return end();
}
