/* What every test program has in common: checks that say where they failed, and an end that says that all was well. */
#ifndef CHECK_H
#define CHECK_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank_, size_;

#define CHECK(condition)                                                                                \
    do {                                                                                                \
        if (!(condition)) {                                                                             \
            fprintf(stderr, "rank %d: %s:%d: not so: %s\n", rank_, __FILE__, __LINE__, #condition);     \
            MPI_Abort(MPI_COMM_WORLD, 3);                                                               \
        }                                                                                               \
    } while (0)

/* A call that succeeds. */
#define OK(call) CHECK((call) == MPI_SUCCESS)

/* A call that fails with an error class. */
#define FAILS(call, class)                                                                              \
    do {                                                                                                \
        int found_ = class_of(call);                                                                    \
        if (found_ != (class)) fprintf(stderr, "rank %d: %s:%d: class %d\n", rank_, __FILE__, __LINE__, found_); \
        CHECK(found_ == (class));                                                                       \
    } while (0)

static inline int class_of(int code) {
    int class_ = -1;
    MPI_Error_class(code, &class_);
    return class_;
}

static inline void begin(int *argc, char ***argv) {
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
}

/* Errors of the predefined communicators are returned, to be looked at. */
static inline void errors_return(void) {
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
}

static inline int end(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank_ == 0) printf("all well with %d\n", size_);
    MPI_Finalize();
    return 0;
}

/* These checks, one after the other. */
#define RUN(...)                                                                                        \
    do {                                                                                                \
        void (*const checks[])(void) = {__VA_ARGS__};                                                   \
        for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) checks[i]();                        \
    } while (0)

/* A program of nothing else. */
#define PROGRAM(...)                                                                                    \
    int main(int argc, char **argv) {                                                                   \
        begin(&argc, &argv);                                                                            \
        errors_return();                                                                                \
        RUN(__VA_ARGS__);                                                                               \
        return end();                                                                                   \
    }

#endif
