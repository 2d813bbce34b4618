/* What the programs of sizes have in common. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned char byte;
enum { ROOT = 0, TARGET = 1 };
#define world MPI_COMM_WORLD
extern int rank, size;
extern MPI_Count bytes; /* of the operation's long block */
extern enum form { BLOCKING, NONBLOCKING, PERSISTENT } form;

struct operation {
    const char *name;
    void (*run)(void);
};
/* Each ends with one that has no name. */
extern const struct operation collectives[], ragged[], messages[], windows[];

/* Says what is wrong with a number, and ends the job. */
void fail(const char *what, long long number);
/* Zeroes. */
byte *memory(MPI_Count length);
/* Marks of `bytes` bytes, and whether they are there. */
void set(byte *buffer, int value);
void check(const byte *buffer, int value);
/* As many blocks as ranks, each with the mark of the one before plus `step`. */
void check_blocks(const byte *buffer, int first, int step);

/* A collective, in one of its forms. */
#define COLLECTIVE(name, iname, ...)                                                                    \
    do {                                                                                                \
        MPI_Request request = MPI_REQUEST_NULL;                                                         \
        if (form == BLOCKING) MPI_##name##_c(__VA_ARGS__);                                              \
        if (form == NONBLOCKING) MPI_##iname##_c(__VA_ARGS__, &request);                                \
        if (form == PERSISTENT) {                                                                       \
            MPI_##name##_init_c(__VA_ARGS__, MPI_INFO_NULL, &request);                                  \
            MPI_Start(&request);                                                                        \
        }                                                                                               \
        MPI_Wait(&request, MPI_STATUS_IGNORE);                                                          \
        if (form == PERSISTENT) MPI_Request_free(&request);                                             \
    } while (0)
