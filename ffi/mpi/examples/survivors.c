/* Heat spreads over a plate, of which each rank has some rows; and when a rank dies the others go on. Each rank keeps a copy of its rows
 * in the window of its right neighbour, taken every few steps. Run it with one argument, the rank that is to die on the way:
 *
 *     mpicc -o survivors survivors.c && transom run -n 4 --on-failure notify ./survivors 2
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi-ext.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef OMPI_HAVE_MPI_EXT_ULFM
#error "this MPI does not tell its ranks of deaths"
#endif

enum { ROWS = 48, COLUMNS = 32, STEPS = 200, INTERVAL = 10, DEATH = 87 };

/* A rank's part of the plate. */
typedef struct {
    MPI_Comm comm;
    MPI_Win win;
    int rank, size, first, rows;
    double *field;     /* the window: the rows between one above and one below, and two copies of the left neighbour's */
    double *own[2];    /* the rows as they were at the last two checkpoints */
    double *next;
} Part;

/* A call that fails ends its function: then all come to an agreement. */
#define TRY(call) do { if ((call) != MPI_SUCCESS) return 0; } while (0)

static int first_of(int rank, int size) { return ROWS * rank / size; }

static int owner_of(int row, int size) {
    int rank = 0;
    while (first_of(rank + 1, size) <= row) rank++;
    return rank;
}

/* Where the copies of a checkpoint are, in each window. */
static size_t copies_at(int step, int size) {
    size_t most = (size_t)(ROWS + size - 1) / (size_t)size;
    return (most + 2 + (size_t)(step / INTERVAL % 2) * most) * COLUMNS;
}

/* One step of some rows, between one above and one below. */
static void relax(double *field, double *next, int rows) {
    for (int i = 0; i < rows; i++) {
        const double *row = field + (i + 1) * COLUMNS;
        for (int j = 0; j < COLUMNS; j++) {
            double left = j > 0 ? row[j - 1] : 0, right = j + 1 < COLUMNS ? row[j + 1] : 0;
            double around = row[j - COLUMNS] + row[j + COLUMNS] + left + right;
            next[i * COLUMNS + j] = row[j] + 0.2 * (around - 4 * row[j]);
        }
    }
    memcpy(field + COLUMNS, next, sizeof *next * (size_t)rows * COLUMNS);
}

/* Cold, but for the edge above the first row. */
static void cool(double *field, int first, int rows) {
    memset(field, 0, sizeof *field * (size_t)(rows + 2) * COLUMNS);
    for (int j = 0; first == 0 && j < COLUMNS; j++) field[j] = 100 + j;
}

static double *some(int rows) {
    double *numbers = calloc((size_t)rows * COLUMNS, sizeof *numbers);
    if (numbers == NULL) MPI_Abort(MPI_COMM_WORLD, 2);
    return numbers;
}

static int make(Part *part, MPI_Comm comm) {
    part->comm = comm;
    MPI_Comm_rank(comm, &part->rank);
    MPI_Comm_size(comm, &part->size);
    part->first = first_of(part->rank, part->size);
    part->rows = first_of(part->rank + 1, part->size) - part->first;
    part->own[0] = some(part->rows), part->own[1] = some(part->rows), part->next = some(part->rows);
    MPI_Aint bytes = (MPI_Aint)(2 * copies_at(INTERVAL, part->size) * sizeof(double));
    TRY(MPI_Win_allocate(bytes, sizeof(double), MPI_INFO_NULL, comm, &part->field, &part->win));
    MPI_Win_set_errhandler(part->win, MPI_ERRORS_RETURN);
    cool(part->field, part->first, part->rows);
    TRY(MPI_Win_fence(0, part->win));
    return 1;
}

static int put_row(const Part *part, const double *row, int to, int at) {
    return MPI_Put(row, COLUMNS, MPI_DOUBLE, to, (MPI_Aint)at * COLUMNS, COLUMNS, MPI_DOUBLE, part->win);
}

static int advance(Part *part, int from, int to, int dies) {
    int above = part->rank > 0 ? part->rank - 1 : MPI_PROC_NULL;
    int below = part->rank + 1 < part->size ? part->rank + 1 : MPI_PROC_NULL;
    for (int step = from; step < to; step++) {
        TRY(put_row(part, part->field + COLUMNS, above, part->first - first_of(part->rank - 1, part->size) + 1));
        TRY(put_row(part, part->field + part->rows * COLUMNS, below, 0));
        if (dies && step == DEATH) raise(SIGKILL);
        TRY(MPI_Win_fence(0, part->win));
        relax(part->field, part->next, part->rows);
        TRY(MPI_Win_fence(0, part->win));
    }
    return 1;
}

/* A checkpoint: this rank's rows, here and at the right neighbour. */
static int keep(const Part *part, int step) {
    double *own = part->own[step / INTERVAL % 2];
    int n = part->rows * COLUMNS;
    memcpy(own, part->field + COLUMNS, sizeof *own * (size_t)n);
    TRY(MPI_Put(own, n, MPI_DOUBLE, (part->rank + 1) % part->size, (MPI_Aint)copies_at(step, part->size), n, MPI_DOUBLE,
                part->win));
    TRY(MPI_Win_fence(0, part->win));
    return 1;
}

/* Whether all have done well: the same answer at all that live. */
static int all(MPI_Comm comm, int well) {
    return MPIX_Comm_agree(comm, &well) == MPI_SUCCESS && well;
}

/* Whether a rank of one communicator is missing in another. */
static int is_gone(MPI_Comm from, MPI_Comm living, int rank) {
    MPI_Group all, some;
    int there;
    MPI_Comm_group(from, &all);
    MPI_Comm_group(living, &some);
    MPI_Group_translate_ranks(all, 1, &rank, some, &there);
    MPI_Group_free(&all);
    MPI_Group_free(&some);
    return there == MPI_UNDEFINED;
}

/* Rows of a checkpoint go to who has them now: this rank's own, and the left neighbour's, if that is gone. */
static int restore(const Part *old, const Part *part, int step) {
    int left = (old->rank + old->size - 1) % old->size;
    for (int rank = 0; rank < old->size; rank++) {
        int gone = is_gone(old->comm, part->comm, rank);
        if (gone && is_gone(old->comm, part->comm, (rank + 1) % old->size)) {
            fprintf(stderr, "two neighbours are gone, and the rows of one with both\n");
            MPI_Abort(MPI_COMM_WORLD, 3);
        }
        if (rank != old->rank && !(rank == left && gone)) continue;
        const double *rows = gone ? old->field + copies_at(step, old->size) : old->own[step / INTERVAL % 2];
        int first = first_of(rank, old->size), end = first_of(rank + 1, old->size);
        for (int row = first; row < end; row++) {
            int to = owner_of(row, part->size);
            TRY(put_row(part, rows + (row - first) * COLUMNS, to, row - first_of(to, part->size) + 1));
        }
    }
    TRY(MPI_Win_fence(0, part->win));
    return keep(part, step);
}

static void release(Part *part) {
    MPI_Win_free(&part->win);
    if (part->comm != MPI_COMM_WORLD) MPI_Comm_free(&part->comm);
    free(part->own[0]), free(part->own[1]), free(part->next);
}

/* Those that live take over, as often as one dies. What was made with one that died on the way is left as it is. */
static Part recover(Part old, int step) {
    for (;;) {
        Part part;
        MPI_Comm living;
        if (MPIX_Comm_shrink(old.comm, &living) != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 4);
        int well = make(&part, living) && (step < 0 || restore(&old, &part, step));
        if (!all(living, well)) continue;
        if (part.rank == 0) printf("%d of %d ranks go on from step %d\n", part.size, old.size, step);
        release(&old);
        return part;
    }
}

/* Compares the whole with what one rank makes of it. */
static void compare(const Part *part) {
    double *whole = some(ROWS + 2), *expected = some(ROWS + 2), *next = some(ROWS), sum = 0;
    cool(expected, 0, ROWS);
    for (int step = 0; step < STEPS; step++) relax(expected, next, ROWS);
    MPI_Win_fence(0, part->win);
    for (int row = 0; part->rank == 0 && row < ROWS; row++) {
        int at = owner_of(row, part->size);
        MPI_Get(whole + (row + 1) * COLUMNS, COLUMNS, MPI_DOUBLE, at,
                (MPI_Aint)(row - first_of(at, part->size) + 1) * COLUMNS, COLUMNS, MPI_DOUBLE, part->win);
    }
    MPI_Win_fence(0, part->win);
    if (part->rank == 0) {
        int same = memcmp(whole + COLUMNS, expected + COLUMNS, sizeof *whole * ROWS * COLUMNS) == 0;
        for (int i = 0; i < ROWS * COLUMNS; i++) sum += whole[COLUMNS + i];
        printf("after %d steps the plate has %.6f, %s\n", STEPS, sum, same ? "exactly as by one rank" : "which is WRONG");
    }
    free(whole), free(expected), free(next);
}

int main(int argc, char **argv) {
    int rank, step = -1;
    Part part;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int dies = argc > 1 && atoi(argv[1]) == rank;
    if (!all(MPI_COMM_WORLD, make(&part, MPI_COMM_WORLD))) MPI_Abort(MPI_COMM_WORLD, 1);
    while (step < STEPS) {
        int next = step < 0 ? 0 : step + INTERVAL;
        int well = advance(&part, step < 0 ? 0 : step, next, dies) && keep(&part, next);
        if (all(part.comm, well)) {
            step = next;
        } else {
            part = recover(part, step);
        }
    }
    compare(&part);
    release(&part);
    return MPI_Finalize();
}
