/* Memory that its owner detaches while peers still access it, as PETSc's scatters over dynamic windows with locks do: the owner has
 * nothing to access itself, and goes on at once. What is there still is accessed; what is not is an error that says so. */
#define _GNU_SOURCE
#include "check.h"
#include <sys/mman.h>

enum { COUNT = 3000, ROUNDS = 20 };
static MPI_Win win;

static void tell(void *memory, MPI_Aint *there) {
    MPI_Get_address(memory, there);
    MPI_Bcast(there, 1, MPI_AINT, 0, MPI_COMM_WORLD);
}

static long *pages(size_t bytes) {
    void *found = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(found != MAP_FAILED);
    return found;
}

/* Attached and detached before any peer asks for it, or after (`known`). Returns where it is. */
static MPI_Aint left(long *memory, MPI_Aint bytes, int known) {
    MPI_Aint there;
    if (rank_ == 0) OK(MPI_Win_attach(win, memory, bytes));
    tell(memory, &there);
    if (known && rank_ != 0) {
        long value;
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOCHECK, win));
        OK(MPI_Get(&value, 1, MPI_LONG, 0, there, 1, MPI_LONG, win));
        OK(MPI_Win_unlock(0, win));
    }
    if (known) MPI_Barrier(MPI_COMM_WORLD);
    if (rank_ == 0) OK(MPI_Win_detach(win, memory));
    /* Makes sure of the order that PETSc's programs may meet. */
    MPI_Barrier(MPI_COMM_WORLD);
    return there;
}

static void read_and_add(long *roots, int round) {
    MPI_Datatype odd;
    MPI_Type_vector(COUNT / 2, 1, 2, MPI_LONG, &odd);
    MPI_Type_commit(&odd);
    for (int i = 0; i < COUNT; i++) roots[i] = rank_ == 0 ? i + round : -1;
    MPI_Aint there = left(roots, COUNT * (MPI_Aint)sizeof(long), round % 2);
    if (rank_ != 0) {
        MPI_Request request;
        long one = 1, old, got[COUNT], ones[COUNT];
        memset(got, -1, sizeof got);
        for (int i = 0; i < COUNT; i++) ones[i] = 1;
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, MPI_MODE_NOCHECK, win));
        OK(MPI_Rget(got, 1, odd, 0, there, 1, odd, win, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        /* Even elements are got; odd ones are added to, and some even ones put. */
        for (int i = 0; i < COUNT; i++) CHECK(got[i] == (i % 2 ? -1 : i + round));
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Aint first = there + (MPI_Aint)sizeof(long);
        OK(MPI_Accumulate(ones, 1, odd, 0, first, 1, odd, MPI_SUM, win));
        OK(MPI_Accumulate(ones, 1, MPI_LONG, 0, first, 1, MPI_LONG, MPI_SUM, win));
        OK(MPI_Fetch_and_op(&one, &old, MPI_LONG, 0, first, MPI_SUM, win));
        OK(MPI_Win_flush(0, win));
        CHECK(old >= 3 + round && old < 1 + round + 3 * size_);
        long mine = -rank_;
        OK(MPI_Put(&mine, 1, MPI_LONG, 0, there + (MPI_Aint)sizeof(long) * (COUNT - 2 * rank_), 1, MPI_LONG, win));
        OK(MPI_Win_unlock(0, win));
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
    }
    /* The fence after that tells the owner that all have come; from now on peers know better. */
    OK(MPI_Win_fence(MPI_MODE_NOPUT | MPI_MODE_NOSUCCEED, win));
    for (int i = 0; rank_ == 0 && i < COUNT; i++) {
        int from = COUNT - i;
        long wanted = i + round + (i % 2 ? size_ - 1 : 0) + (i == 1 ? 2 * (size_ - 1) : 0);
        if (from % 2 == 0 && from / 2 < size_) wanted = -from / 2;
        CHECK(roots[i] == wanted);
    }
    MPI_Type_free(&odd);
}

static void refused(MPI_Aint there) {
    char text[MPI_MAX_ERROR_STRING];
    long value = 0;
    int len, error;
    OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
    error = MPI_Get(&value, 1, MPI_LONG, 0, there, 1, MPI_LONG, win);
    CHECK(error != MPI_SUCCESS);
    OK(MPI_Error_string(error, text, &len));
    if (!strstr(text, "rank 0 has detached")) fprintf(stderr, "%s\n", text);
    OK(MPI_Win_unlock(0, win));
    MPI_Error_class(error, &error);
    CHECK(error == MPI_ERR_RMA_RANGE);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    long *roots = malloc(COUNT * sizeof(long));
    MPI_Aint there = 0;
    for (int round = 0; round < ROUNDS; round++) read_and_add(roots, round);
    MPI_Get_address(roots, &there);
    MPI_Bcast(&there, 1, MPI_AINT, 0, MPI_COMM_WORLD);
    if (rank_ != 0) refused(there);
    MPI_Barrier(MPI_COMM_WORLD);
    free(roots);
    /* Unmapped meanwhile. */
    for (int known = 0; known < 2; known++) {
        long *own = rank_ == 0 ? pages(1 << 16) : NULL;
        there = left(own, 1 << 16, known);
        if (rank_ == 0) munmap(own, 1 << 16);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank_ != 0) refused(there);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    OK(MPI_Win_free(&win));
    return end();
}
