/* Small operations at MPI_THREAD_MULTIPLE: of one thread of rank 0, and of two, each on a window or a target of its own. Rank 1 sleeps, since
 * two threads want two cores. */
#include "rma.h"
#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { BLOCKS = 9 };
static const double BLOCK = 1e6;

/* What one thread works on. */
struct work {
    MPI_Win win;
    int target, is_put;
    int64_t origin, result;
    long turns;
    pthread_barrier_t *start;
    double time;
    long preempted;
};

static void *run(void *argument) {
    struct work *w = argument;
    if (w->start) pthread_barrier_wait(w->start);
    long before = preemptions();
    double start = now();
    for (long turn = 0; turn < w->turns; turn++) {
        if (w->is_put) MPI_Put(&w->origin, 1, MPI_INT64_T, w->target, 0, 1, MPI_INT64_T, w->win);
        else MPI_Fetch_and_op(&w->origin, &w->result, MPI_INT64_T, w->target, 0, MPI_SUM, w->win);
        MPI_Win_flush(w->target, w->win);
    }
    w->time = now() - start;
    w->preempted = preemptions() - before;
    return NULL;
}

/* One thread, or two at once: the slower counts. */
static void sample(struct work *one, struct work *other) {
    if (other) {
        pthread_barrier_t start;
        pthread_t second;
        pthread_barrier_init(&start, NULL, 2);
        one->start = other->start = &start;
        other->turns = one->turns;
        pthread_create(&second, NULL, run, other);
        run(one);
        pthread_join(second, NULL);
        pthread_barrier_destroy(&start);
        one->start = other->start = NULL;
    } else {
        run(one);
    }
    double time = other && other->time > one->time ? other->time : one->time;
    push(time / (double)one->turns, one->preempted || (other && other->preempted));
}

/* A barrier that leaves the cores to others. */
static void sleep_until_all_come(void) {
    MPI_Request request;
    int done = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    while (MPI_Test(&request, &done, MPI_STATUS_IGNORE), !done) usleep(1000);
}

void threads(const char *name) {
    int level;
    void *memory;
    MPI_Query_thread(&level);
    if (level < MPI_THREAD_MULTIPLE) {
        left_out(name, "the library has no MPI_THREAD_MULTIPLE");
        return;
    }
    MPI_Win first = make_window(4096, &memory), second = make_window(4096, &memory);
    MPI_Win_lock_all(0, first);
    MPI_Win_lock_all(0, second);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == ORIGIN) {
        int is_put = strstr(name, "fetch") == NULL, two = !strncmp(name, "threads-2", 9);
        int windows = strstr(name, "windows") != NULL;
        struct work one = {.win = first, .target = TARGET, .is_put = is_put, .origin = 1, .turns = 1};
        struct work other = one;
        if (windows) other.win = second;
        else other.target = ORIGIN;
        for (; one.time < BLOCK; one.turns *= 2) run(&one);
        for (int block = 0; block < samples_of(BLOCKS); block++) sample(&one, two ? &other : NULL);
    }
    sleep_until_all_come();
    report(&(struct row){name, WORD, "time", 1, 0}, UNSEEN, -1);
    MPI_Win_unlock_all(first);
    MPI_Win_unlock_all(second);
    free_window(&second);
    free_window(&first);
}
