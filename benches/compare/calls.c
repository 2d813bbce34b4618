/* Times of small one-sided operations on shared memory, by any MPI: one line a sample, "ROW ns NUMBER" or "ROW M/s NUMBER".
 * Two ranks. Rank 0 measures; rank 1, the target, waits in a barrier. With the argument "threads": at MPI_THREAD_MULTIPLE, one thread and
 * two, while the target sleeps; "created": windows over memory of the program's, which need not begin on a page. Each row is measured in several short blocks; a block in which the system took the core away is tried
 * again, a few times. */
#define _GNU_SOURCE
#include <math.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { BLOCKS = 9, ATTEMPTS = 12, BATCH = 4096, LARGEST = 8192, WINDOW = 1 << 16 };
static const double BLOCK = 1e-3; /* seconds, at least */

/* What one thread works on. */
struct work {
    MPI_Win win;
    int target;
    int64_t origin, result, compare;
    char buffer[LARGEST];
};

static MPI_Win first, second, locked;
static int rank;
static const char *prefix = "";

#define LOOP(name, body)                                                        \
    static void name(struct work *w, long turns) {                              \
        for (long turn = 0; turn < turns; turn++) body                          \
    }
#define PUT(win) MPI_Put(&w->origin, 1, MPI_INT64_T, w->target, 0, 1, MPI_INT64_T, win)
#define ACCUMULATE MPI_Accumulate(&w->origin, 1, MPI_INT64_T, w->target, 1, 1, MPI_INT64_T, MPI_SUM, w->win)
#define FLUSH MPI_Win_flush(w->target, w->win)

LOOP(put, { PUT(w->win); FLUSH; })
LOOP(get, { MPI_Get(&w->result, 1, MPI_INT64_T, w->target, 0, 1, MPI_INT64_T, w->win); FLUSH; })
LOOP(fetch_and_op, { MPI_Fetch_and_op(&w->origin, &w->result, MPI_INT64_T, w->target, 1, MPI_SUM, w->win); FLUSH; })
LOOP(compare_and_swap, {
    MPI_Compare_and_swap(&w->origin, &w->compare, &w->result, MPI_INT64_T, w->target, 1, w->win);
    FLUSH;
})
LOOP(accumulate, { ACCUMULATE; FLUSH; })
LOOP(get_accumulate, {
    MPI_Get_accumulate(&w->origin, 1, MPI_INT64_T, &w->result, 1, MPI_INT64_T, w->target, 1, 1, MPI_INT64_T, MPI_SUM, w->win);
    FLUSH;
})
LOOP(rput, {
    MPI_Request request;
    MPI_Rput(&w->origin, 1, MPI_INT64_T, w->target, 0, 1, MPI_INT64_T, w->win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    FLUSH;
})
LOOP(lock_put_unlock, {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, w->target, 0, locked);
    PUT(locked);
    MPI_Win_unlock(w->target, locked);
})
LOOP(put_batch, { for (int i = 0; i < BATCH; i++) PUT(w->win); FLUSH; })
LOOP(accumulate_batch, { for (int i = 0; i < BATCH; i++) ACCUMULATE; FLUSH; })
LOOP(put_1k, { MPI_Put(w->buffer, 1024, MPI_BYTE, w->target, 8, 1024, MPI_BYTE, w->win); FLUSH; })
LOOP(put_8k, { MPI_Put(w->buffer, 8192, MPI_BYTE, w->target, 8, 8192, MPI_BYTE, w->win); FLUSH; })

struct row {
    const char *name;
    void (*loop)(struct work *, long);
    int batch; /* operations a turn, where a rate is wanted */
};
static const struct row rows[] = {
    {"put+flush", put, 0}, {"get+flush", get, 0}, {"fetch_and_op+flush", fetch_and_op, 0},
    {"compare_and_swap+flush", compare_and_swap, 0}, {"accumulate+flush", accumulate, 0},
    {"get_accumulate+flush", get_accumulate, 0}, {"rput+wait+flush", rput, 0}, {"lock+put+unlock", lock_put_unlock, 0},
    {"put-1KiB+flush", put_1k, 0}, {"put-8KiB+flush", put_8k, 0}, {"put-rate", put_batch, BATCH},
    {"accumulate-rate", accumulate_batch, BATCH},
};
static const struct row shared_rows[] = {{"put+flush", put, 0}, {"fetch_and_op+flush", fetch_and_op, 0}};

/* Turns of a loop that take as long as a block. */
static long calibrate(const struct row *row, struct work *w) {
    for (long turns = 1;; turns *= 2) {
        double start = MPI_Wtime();
        row->loop(w, turns);
        if (MPI_Wtime() - start >= BLOCK) return turns;
    }
}

/* Times that the core was taken away from this thread. */
static long preemptions(void) {
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nivcsw;
}

/* Seconds that a loop takes, less than nothing if it was preempted. */
static double time_loop(const struct row *row, struct work *w, long turns) {
    long before = preemptions();
    double start = MPI_Wtime();
    row->loop(w, turns);
    double seconds = MPI_Wtime() - start;
    return preemptions() == before ? seconds : -seconds;
}

static void measure(const struct row *row, struct work *w) {
    long turns = calibrate(row, w);
    for (int block = 0; block < BLOCKS; block++) {
        double seconds = -1;
        for (int attempt = 0; seconds < 0 && attempt < ATTEMPTS; attempt++) seconds = time_loop(row, w, turns);
        seconds = fabs(seconds);
        if (row->batch) printf("%s%s M/s %.3f\n", prefix, row->name, 1e-6 * (double)turns * row->batch / seconds);
        else printf("%s%s ns %.2f\n", prefix, row->name, 1e9 * seconds / (double)turns);
    }
}

struct thread {
    const struct row *row;
    struct work work;
    long turns;
    pthread_barrier_t *start;
    double seconds;
};

static void *run_thread(void *argument) {
    struct thread *thread = argument;
    pthread_barrier_wait(thread->start);
    thread->seconds = time_loop(thread->row, &thread->work, thread->turns);
    return NULL;
}

/* Two threads at once, each with work of its own: the seconds of the slower, less than nothing if one was preempted. */
static double time_pair(const struct row *row, const struct work *one, const struct work *other, long turns) {
    pthread_barrier_t start;
    pthread_t ids[2];
    struct thread threads[2] = {{row, *one, turns, &start, 0}, {row, *other, turns, &start, 0}};
    pthread_barrier_init(&start, NULL, 2);
    for (int i = 0; i < 2; i++) pthread_create(&ids[i], NULL, run_thread, &threads[i]);
    for (int i = 0; i < 2; i++) pthread_join(ids[i], NULL);
    pthread_barrier_destroy(&start);
    double slower = fmax(fabs(threads[0].seconds), fabs(threads[1].seconds));
    return threads[0].seconds < 0 || threads[1].seconds < 0 ? -slower : slower;
}

static void pair(const struct row *row, const char *what, const struct work *one, const struct work *other, long turns) {
    for (int block = 0; block < BLOCKS; block++) {
        double seconds = -1;
        for (int attempt = 0; seconds < 0 && attempt < ATTEMPTS; attempt++) seconds = time_pair(row, one, other, turns);
        printf("threads-2-%s-%s ns %.2f\n", what, row->name, 1e9 * fabs(seconds) / (double)turns);
    }
}

static void measure_threads(void) {
    struct work w = {first, 1, 1, 0, 0, {0}}, elsewhere = {second, 1, 1, 0, 0, {0}}, here = {first, 0, 1, 0, 0, {0}};
    for (size_t i = 0; i < sizeof shared_rows / sizeof *shared_rows; i++) {
        const struct row *row = &shared_rows[i];
        struct row one = *row;
        char name[64];
        snprintf(name, sizeof name, "threads-1-%s", row->name);
        one.name = name;
        measure(&one, &w);
        long turns = 2 * calibrate(row, &w);
        pair(row, "windows", &w, &elsewhere, turns);
        pair(row, "targets", &w, &here, turns);
    }
}

/* A rank to a core, as far as there are some. */
static void bind_to_core(void) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(rank % (int)sysconf(_SC_NPROCESSORS_ONLN), &cores);
    sched_setaffinity(0, sizeof cores, &cores);
}

/* A barrier that leaves the cores to others. */
static void sleep_until_all_come(void) {
    MPI_Request request;
    int done = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    while (MPI_Test(&request, &done, MPI_STATUS_IGNORE), !done) usleep(1000);
}

static MPI_Win make_window(int created) {
    MPI_Win win;
    char *memory;
    if (created) {
        memory = calloc(1, WINDOW + 1024);
        MPI_Win_create(memory + 200, WINDOW, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    } else {
        MPI_Win_allocate(WINDOW, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    }
    return win;
}

int main(int argc, char **argv) {
    int threads = argc > 1 && strcmp(argv[1], "threads") == 0, created = argc > 1 && strcmp(argv[1], "created") == 0, level;
    MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (created) prefix = "created-";
    first = make_window(created);
    second = make_window(created);
    locked = make_window(created);
    MPI_Win_lock_all(0, first);
    MPI_Win_lock_all(0, second);
    MPI_Barrier(MPI_COMM_WORLD);
    struct work w = {first, 1, 1, 0, 0, {0}};
    if (threads) {
        if (rank == 0 && level == MPI_THREAD_MULTIPLE) measure_threads();
        sleep_until_all_come();
    } else {
        bind_to_core();
        for (size_t i = 0; rank == 0 && i < sizeof rows / sizeof *rows; i++) measure(&rows[i], &w);
    }
    MPI_Win_unlock_all(first);
    MPI_Win_unlock_all(second);
    MPI_Win_free(&locked);
    MPI_Win_free(&second);
    MPI_Win_free(&first);
    return MPI_Finalize();
}
