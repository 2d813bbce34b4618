/* Windows, buffers, and memory that both ranks map. */
#define _GNU_SOURCE
#include "rma.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Memory of a program's own need not begin on a page. */
enum { OFFSET = 200, PAGE = 4096, MOST_WINDOWS = 16 };

static struct {
    MPI_Win win;
    void *memory;
} own[MOST_WINDOWS];

/* A window of so many bytes at each rank, displaced by bytes, in an epoch of all ranks. Zeros are in it. */
MPI_Win make_window(size_t bytes, void **memory) {
    MPI_Win win;
    if (created) {
        char *block = calloc(1, bytes + OFFSET);
        if (!block) MPI_Abort(MPI_COMM_WORLD, 1);
        *memory = block + OFFSET;
        MPI_Win_create(*memory, (MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        for (int i = 0; i < MOST_WINDOWS; i++)
            if (!own[i].memory) {
                own[i].win = win;
                own[i].memory = block;
                break;
            }
    } else {
        MPI_Win_allocate((MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, memory, &win);
        memset(*memory, 0, bytes);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return win;
}

void free_window(MPI_Win *win) {
    void *block = NULL;
    for (int i = 0; created && i < MOST_WINDOWS; i++)
        if (own[i].memory && own[i].win == *win) {
            block = own[i].memory;
            own[i].memory = NULL;
            break;
        }
    MPI_Win_free(win);
    free(block);
}

/* Of the heap, with a number that stays one whatever is done to it. */
char *buffer(size_t bytes) {
    size_t whole = (bytes + PAGE - 1) / PAGE * PAGE;
    double *memory = aligned_alloc(PAGE, whole);
    if (!memory) MPI_Abort(MPI_COMM_WORLD, 1);
    for (size_t i = 0; i < whole / sizeof *memory; i++) memory[i] = 1;
    return (char *)memory;
}

/* Numbers from 1 to 2, of many digits: zeros are copied in two thirds of the time by non-temporal stores on AMD's Zen 5. */
void fill(void *memory, size_t bytes) {
    uint64_t state = 1, word;
    for (size_t at = 0; at + sizeof word <= bytes; at += sizeof word) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        word = UINT64_C(0x3ff) << 52 | state >> 12;
        memcpy((char *)memory + at, &word, sizeof word);
    }
}

/* How many transfers are completed together. */
size_t batch(size_t bytes) {
    size_t count = BATCH_BYTES / bytes;
    if (burst > 0) return burst;
    return count > BATCH ? BATCH : count > 1 ? count : 1;
}

/* Rank 0 makes it, and takes its name away when both have it. */
void *shared_memory(size_t bytes) {
    char name[64];
    snprintf(name, sizeof name, "/transom-rivals-%ld", (long)getpid());
    MPI_Bcast(name, sizeof name, MPI_CHAR, ORIGIN, MPI_COMM_WORLD);
    int file = rank == ORIGIN ? shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600) : -1;
    int good = rank != ORIGIN || (file >= 0 && ftruncate(file, (off_t)bytes) == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank != ORIGIN) file = shm_open(name, O_RDWR, 0);
    void *memory = good && file >= 0 ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    int both = everywhere(memory != MAP_FAILED);
    if (file >= 0) close(file);
    if (rank == ORIGIN) shm_unlink(name);
    return both ? memory : NULL;
}
