/* Many more nonblocking sends than their receiver takes: they come in order, and wait in no memory of their sender's (MPI-4.1 §3.7.4). */
#include "check.h"
#include <sys/resource.h>

enum { WINDOW = 64, WINDOWS = 5000, PART = 20000, PARTS = 40 };

static long most_memory(void) { /* KiB */
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static void compute(double seconds) {
    double end = MPI_Wtime() + seconds;
    while (MPI_Wtime() < end) continue;
}

/* Short messages, by windows; the receiver begins late. */
static void short_ones(int from, int to) {
    MPI_Request requests[WINDOW];
    int numbers[WINDOW];
    if (rank_ == to) compute(.1);
    for (int window = 0; window < WINDOWS; window++) {
        for (int i = 0; i < WINDOW; i++) {
            if (rank_ == from) {
                numbers[i] = window * WINDOW + i;
                OK(MPI_Isend(&numbers[i], 1, MPI_INT, to, 5, MPI_COMM_WORLD, &requests[i]));
            } else {
                OK(MPI_Irecv(&numbers[i], 1, MPI_INT, from, 5, MPI_COMM_WORLD, &requests[i]));
            }
        }
        OK(MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE));
        for (int i = 0; i < WINDOW; i++) CHECK(numbers[i] == window * WINDOW + i);
    }
}

/* Long ones, and a short one behind them, all under way at once. */
static void long_ones(int from, int to) {
    static char bytes[PARTS][PART];
    MPI_Request requests[PARTS + 1];
    int last = 0, left, flag;
    if (rank_ == from) {
        for (int i = 0; i < PARTS; i++) {
            memset(bytes[i], i, PART);
            OK(MPI_Isend(bytes[i], PART, MPI_CHAR, to, 6, MPI_COMM_WORLD, &requests[i]));
        }
        last = 7;
        OK(MPI_Isend(&last, 1, MPI_INT, to, 6, MPI_COMM_WORLD, &requests[PARTS]));
        do OK(MPI_Testall(PARTS + 1, requests, &flag, MPI_STATUSES_IGNORE)); while (!flag);
    } else {
        compute(.05);
        for (int i = 0; i < PARTS; i++) {
            OK(MPI_Recv(bytes[0], PART, MPI_CHAR, from, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            for (left = 0; left < PART; left++) CHECK(bytes[0][left] == i);
        }
        OK(MPI_Recv(&last, 1, MPI_INT, from, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(last == 7);
    }
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    for (int from = 0; from < size_; from++) {
        int to = (from + 1) % size_;
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank_ == from || rank_ == to) {
            long before = most_memory();
            short_ones(from, to);
            /* All of them, with what each needs, would be 40 MiB. */
            if (rank_ == from) CHECK(most_memory() - before < 8 << 10);
            long_ones(from, to);
        }
    }
    /* From both sides at once, received only afterwards. */
    MPI_Request requests[1000];
    int numbers[1000], number, right = (rank_ + 1) % size_, left = (rank_ + size_ - 1) % size_;
    for (int i = 0; i < 1000; i++) {
        numbers[i] = i;
        OK(MPI_Isend(&numbers[i], 1, MPI_INT, right, 9, MPI_COMM_WORLD, &requests[i]));
    }
    OK(MPI_Waitall(1000, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < 1000; i++) {
        OK(MPI_Recv(&number, 1, MPI_INT, left, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(number == i);
    }
    return end();
}
