/* One-sided operations through MPI's C interface, of any library: WINDOW SIZES quick|full BURST NAME…, on two ranks, or more
 * where a measurement is of many. What it writes is described in harness.c. */
#define _GNU_SOURCE
#include "rma.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int rank, ranks, created, quick, size_count;
size_t sizes[MOST_SIZES], longest, burst;

static const struct {
    const char *name;
    void (*measure)(const char *name);
} measurements[] = {
    {"put-latency", latency}, {"get-latency", latency}, {"accumulate-latency", latency}, {"get-accumulate-latency", latency},
    {"fetch-and-op-latency", latency}, {"compare-and-swap-latency", latency}, {"rput-latency", latency},
    {"put-bandwidth", bandwidth}, {"get-bandwidth", bandwidth}, {"accumulate-bandwidth", bandwidth},
    {"put-bidirectional", bandwidth},
    {"sum-float", types}, {"sum-int", types}, {"max-double", types}, {"band-long", types}, {"prod-complex", types},
    {"put-rate", rates}, {"get-rate", rates}, {"accumulate-rate", rates},
    {"put-flush", synchronisation}, {"flush", synchronisation}, {"flush-local", synchronisation},
    {"lock-unlock", synchronisation}, {"lock-shared", synchronisation}, {"lock-all", synchronisation},
    {"lock-put-unlock", synchronisation}, {"win-sync", synchronisation}, {"fence", synchronisation},
    {"put-fence", synchronisation}, {"pscw", synchronisation}, {"barrier", synchronisation},
    {"passive-put", passive}, {"passive-lock", passive}, {"passive-get", passive}, {"passive-fetch-and-op", passive},
    {"passive-compare-and-swap", passive}, {"passive-accumulate", passive},
    {"lock-contention", contention}, {"atomic-contention", contention}, {"atomic-batch-contention", contention},
    {"locked-add", contention}, {"line-round-trip", contention},
    {"put-overlap", overlap}, {"window-create-free", cycle},
    {"ping-pong", messages}, {"message-exchange", messages}, {"broadcast", messages}, {"allreduce", messages},
    {"iallreduce", messages}, {"all-to-all", messages},
    {"threads-1-put", threads}, {"threads-2-put-windows", threads}, {"threads-2-put-targets", threads},
    {"threads-1-fetch-and-op", threads}, {"threads-2-fetch-and-op-windows", threads},
    {"threads-2-fetch-and-op-targets", threads},
    {"put-visible", visible},
};

/* The first line of what the library calls itself. */
static void introduce(void) {
    char name[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(name, &length);
    name[strcspn(name, "\n,")] = 0;
    for (char *at = name; *at; at++)
        if (*at == '\t') *at = ' ';
    printf("bench library %.80s\n", name);
}

static int parse(int argc, char **argv) {
    if (argc < 6) return 0;
    created = !strcmp(argv[1], "created");
    quick = !strcmp(argv[3], "quick");
    for (char *size = strtok(argv[2], ","); size && size_count < MOST_SIZES; size = strtok(NULL, ",")) {
        sizes[size_count] = strtoull(size, NULL, 10);
        if (sizes[size_count] > longest) longest = sizes[size_count];
        size_count++;
    }
    burst = strtoull(argv[4], NULL, 10);
    return longest > 0;
}

static int run(const char *name) {
    for (size_t i = 0; i < COUNT(measurements); i++)
        if (!strcmp(measurements[i].name, name)) {
            measurements[i].measure(name);
            return 1;
        }
    return 0;
}

int main(int argc, char **argv) {
    int level, has_threads = argc > 5 && !strncmp(argv[5], "threads", 7);
    MPI_Init_thread(&argc, &argv, has_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int good = parse(argc, argv) && ranks >= 2;
    if (good && rank == ORIGIN) introduce();
    /* Threads of one rank are on several cores. */
    if (!has_threads) bind_to_core();
    for (int i = 5; good && i < argc; i++) good = run(argv[i]);
    if (!good && rank == ORIGIN) fprintf(stderr, "usage, on 2 ranks or more: rma allocated|created SIZE,… quick|full BURST NAME…\n");
    if (good && rank == ORIGIN) printf("bench end\n");
    MPI_Finalize();
    return good ? 0 : 2;
}
