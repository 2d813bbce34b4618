/* Windows that ranks of one host load from and store to (MPI-4.1 §12.2.3). */
#include "check.h"

/* Memory of a window is a file without a name: what dies leaves nothing in /dev/shm or /tmp. */
static void nameless(void *memory) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4096];
    int found = 0;
    CHECK(maps != NULL);
    while (fgets(line, sizeof line, maps)) {
        unsigned long start, end;
        CHECK(sscanf(line, "%lx-%lx", &start, &end) == 2);
        if (start > (unsigned long)memory || (unsigned long)memory >= end) continue;
        found = 1;
        CHECK(strstr(line, "memfd:") != NULL || strstr(line, "(deleted)") != NULL);
    }
    CHECK(found);
    fclose(maps);
}

static void share(MPI_Comm near) {
    int rank, size, unit;
    OK(MPI_Comm_rank(near, &rank));
    OK(MPI_Comm_size(near, &size));
    MPI_Win win;
    int *own = NULL, *other = NULL;
    MPI_Aint bytes;
    OK(MPI_Win_allocate_shared(4 * sizeof(int), sizeof(int), MPI_INFO_NULL, near, &own, &win));
    if (size > 1) nameless(own);
    for (int i = 0; i < 4; i++) own[i] = 10 * rank + i;
    OK(MPI_Win_fence(0, win));
    for (int r = 0; r < size; r++) {
        OK(MPI_Win_shared_query(win, r, &bytes, &unit, &other));
        CHECK(bytes == 4 * sizeof(int) && unit == sizeof(int) && other[3] == 10 * r + 3);
    }
    OK(MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &other));
    CHECK(other[1] == 1);
    /* One behind the other, unless asked otherwise. */
    if (rank > 0) CHECK(own == other + 4 * rank);
    OK(MPI_Win_sync(win));
    OK(MPI_Win_fence(0, win));
    /* What is put and what is accumulated is what others load, and the other way round. */
    int right = (rank + 1) % size, left = (rank + size - 1) % size, put = rank + 100, found = 0;
    OK(MPI_Win_shared_query(win, right, &bytes, &unit, &other));
    other[3] = -rank;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&put, 1, MPI_INT, right, 0, 1, MPI_INT, win));
    OK(MPI_Accumulate(&put, 1, MPI_INT, right, 1, 1, MPI_INT, MPI_SUM, win));
    OK(MPI_Get(&found, 1, MPI_INT, left, 3, 1, MPI_INT, win));
    OK(MPI_Win_fence(0, win));
    CHECK(found == -((left + size - 1) % size));
    CHECK(own[0] == left + 100 && own[1] == 10 * rank + 1 + left + 100 && other[0] == put);
    OK(MPI_Barrier(near));
    OK(MPI_Win_free(&win));
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    MPI_Comm near;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near));
    share(near);
    OK(MPI_Comm_free(&near));
    /* All run on one host, whatever transport is between them. */
    share(MPI_COMM_WORLD);
    return end();
}
