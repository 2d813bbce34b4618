/* Samples: how many, of how many repetitions, and what is written of them. One line a row and run:
 *
 *   bench NAME BYTES UNIT WORK REPEATS right|wrong|- FAIRNESS|- SAMPLE…
 *
 * Samples are nanoseconds of one repetition (or hundredths); those in which the system took the core away have a star. */
#define _GNU_SOURCE
#include "rma.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { SAMPLES = 100, FEWEST = 3, WARM_UP = 3, FIRST_TURNS = 300, TURNS = 10, MOST = 4096 };
/* Of a sample, of all of a row; of turns before it. */
static const double SHORTEST = 3e4, TIME = 15e6, FIRST = 10e6;
static const long REPEATS = 100000;

static double times[MOST];
static int disturbed[MOST];
static int taken;
static long repeats = 1;

double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

long preemptions(void) {
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nivcsw;
}

/* A core of its own for each rank, of those that the launcher left it. */
void bind_to_core(void) {
    cpu_set_t allowed, own;
    CPU_ZERO(&own);
    if (sched_getaffinity(0, sizeof allowed, &allowed)) return;
    int place = rank % CPU_COUNT(&allowed);
    for (int core = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET(core, &allowed) && place-- == 0) CPU_SET(core, &own);
    sched_setaffinity(0, sizeof own, &own);
}

/* No call, for so long. */
void spin(double nanoseconds) {
    for (double end = now() + nanoseconds; now() < end;) {}
}

int samples_of(int most) { return quick && most > 2 * FEWEST ? most / 5 + 1 : most; }

void push(double time, int is_disturbed) {
    if (taken == MOST) return;
    times[taken] = time;
    disturbed[taken++] = is_disturbed;
}

/* Nanoseconds of so many repetitions. */
static double timed(repeat loop, void *context, long count) {
    double start = now();
    loop(context, count);
    return now() - start;
}

/* The same at all ranks, where all repeat. */
static double agreed(enum who who, double time) {
    if (who == TOGETHER) MPI_Bcast(&time, 1, MPI_DOUBLE, ORIGIN, MPI_COMM_WORLD);
    return time;
}

/* So many repetitions that a sample is long enough for the clock, and so many samples as there is time for. */
static int calibrate(enum who who, repeat loop, void *context) {
    /* The first of all may wake the other rank. */
    loop(context, 1);
    double time = 0;
    /* Buffers that a library goes through in turns have been used once by then: pages that are new take long. */
    for (int turn = 0; turn < FIRST_TURNS && time < FIRST; turn += TURNS) time += agreed(who, timed(loop, context, TURNS));
    for (repeats = 1;; repeats *= 4) {
        timed(loop, context, 1);
        time = agreed(who, timed(loop, context, repeats));
        if (time >= SHORTEST / 2 || repeats >= REPEATS) break;
    }
    double one = time / (double)repeats;
    repeats = (long)(SHORTEST / one) + 1;
    if (repeats > REPEATS) repeats = REPEATS;
    double fit = (quick ? TIME / 10 : TIME) / (one * (double)repeats);
    return fit > SAMPLES ? SAMPLES : fit < FEWEST ? FEWEST : (int)fit;
}

/* Takes a row's samples. */
void measure(const struct row *row, enum who who, repeat loop, void *context) {
    taken = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (who == TOGETHER || rank == ORIGIN) {
        int count = calibrate(who, loop, context);
        loop(context, WARM_UP);
        for (int sample = 0; sample < count; sample++) {
            long before = preemptions();
            double time = timed(loop, context, repeats) / (double)repeats;
            push(time * (row->factor > 0 ? row->factor : 1), preemptions() != before);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (who == TOGETHER) {
        double slower[SAMPLES];
        int either[SAMPLES];
        MPI_Allreduce(times, slower, taken, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        MPI_Allreduce(disturbed, either, taken, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        memcpy(times, slower, (size_t)taken * sizeof *times);
        memcpy(disturbed, either, (size_t)taken * sizeof *disturbed);
    }
}

/* Writes a row. Its line leaves at once, so that it is kept whatever becomes of the next. */
void report(const struct row *row, enum data data, double fairness) {
    static const char *const seen[] = {"-", "wrong", "right"};
    if (rank == ORIGIN) {
        printf("bench %s %zu %s %zu %ld %s ", row->name, row->bytes, row->unit, row->work, repeats, seen[data + 1]);
        if (fairness < 0) printf("-");
        else printf("%.4f", fairness);
        for (int sample = 0; sample < taken; sample++) printf(" %.5g%s", times[sample], disturbed[sample] ? "*" : "");
        printf("\n");
        fflush(stdout);
    }
    taken = 0;
    repeats = 1;
}

/* Says that a row is not measured, and why. */
void left_out(const char *name, const char *why) {
    if (rank == ORIGIN) printf("bench without %s %s\n", name, why);
}

/* Whether it is so at all ranks. */
int everywhere(int holds) {
    int all;
    MPI_Allreduce(&holds, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return all;
}
