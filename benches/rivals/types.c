/* Accumulates of several types and operations: one, and a flush. */
#include "rma.h"
#include <stdlib.h>
#include <string.h>

/* Shorter ones are not about types. */
static const size_t LEAST = 1 << 10;

struct work {
    MPI_Datatype type;
    MPI_Op op;
    int count;
    char *origin;
    MPI_Win win;
};

static void loop(void *context, long repeats) {
    const struct work *w = context;
    for (long turn = 0; turn < repeats; turn++) {
        MPI_Accumulate(w->origin, w->count, w->type, TARGET, 0, w->count, w->type, w->op, w->win);
        MPI_Win_flush(TARGET, w->win);
    }
}

void types(const char *name) {
    const struct {
        const char *name;
        MPI_Datatype type;
        MPI_Op op;
    } known[] = {
        {"sum-float", MPI_FLOAT, MPI_SUM}, {"sum-int", MPI_INT, MPI_SUM}, {"max-double", MPI_DOUBLE, MPI_MAX},
        {"band-long", MPI_INT64_T, MPI_BAND}, {"prod-complex", MPI_C_DOUBLE_COMPLEX, MPI_PROD},
    };
    for (size_t i = 0; i < COUNT(known); i++)
        for (int s = 0; !strcmp(known[i].name, name) && s < size_count; s++) {
            int size;
            void *memory;
            MPI_Type_size(known[i].type, &size);
            if (sizes[s] < LEAST || sizes[s] % (size_t)size) continue;
            struct work w = {known[i].type, known[i].op, (int)(sizes[s] / (size_t)size), buffer(sizes[s]), MPI_WIN_NULL};
            struct row row = {name, sizes[s], "bandwidth", sizes[s], 0};
            w.win = make_window(sizes[s], &memory);
            MPI_Win_lock_all(0, w.win);
            measure(&row, ALONE, loop, &w);
            report(&row, UNSEEN, -1);
            MPI_Win_unlock_all(w.win);
            free_window(&w.win);
            free(w.origin);
        }
}
