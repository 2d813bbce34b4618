/* What the programs of this folder share. Of two ranks rank 0, the origin, measures, and rank 1 is the target; some measure more ranks. */
#ifndef RMA_H
#define RMA_H
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
/* A call that has to succeed. Libraries end the job themselves if one does not, unless they are told otherwise. */
#define MUST(call)                                                                                                                 \
    do {                                                                                                                           \
        if ((call) != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 1);                                                                   \
    } while (0)

enum { ORIGIN = 0, TARGET = 1, WORD = 8, MOST_SIZES = 32, BATCH = 64 };
static const size_t BATCH_BYTES = 16u << 20;

/* A line of the table. Times are of one repetition, which is so many operations, or so many bytes. */
struct row {
    const char *name;
    size_t bytes;
    const char *unit; /* time, rate, bandwidth or percent */
    size_t work;
    double factor; /* what a time is multiplied by, if it is not 0 */
};

/* Does something so many times. */
typedef void (*repeat)(void *context, long repeats);

/* Who repeats: rank 0, while the others wait in a barrier, or all, and the slowest one's time counts. */
enum who { ALONE, TOGETHER };
enum data { UNSEEN = -1, WRONG, RIGHT };

extern int rank, ranks;
extern int created;           /* windows are over memory of this program's, not the library's */
extern int quick;
extern size_t burst;           /* operations that are completed together, or 0: as many as do */
extern size_t sizes[MOST_SIZES];
extern int size_count;
extern size_t longest;

/* harness.c */
double now(void); /* nanoseconds */
long preemptions(void);
void bind_to_core(void);
void spin(double nanoseconds);
void push(double time, int is_disturbed);
void measure(const struct row *row, enum who who, repeat loop, void *context);
void report(const struct row *row, enum data data, double fairness);
void left_out(const char *name, const char *why);
int everywhere(int holds);
int samples_of(int most);

/* memory.c */
MPI_Win make_window(size_t bytes, void **memory);
void free_window(MPI_Win *win);
char *buffer(size_t bytes);
void fill(void *memory, size_t bytes);
void *shared_memory(size_t bytes); /* that all ranks map, or NULL */
size_t batch(size_t bytes);

/* Measurements of a name, or of its group; all ranks call them. */
void latency(const char *name);
void bandwidth(const char *name);
void rates(const char *name);
void types(const char *name);
void synchronisation(const char *name);
void passive(const char *name);
void contention(const char *name);
void overlap(const char *name);
void cycle(const char *name);
void messages(const char *name);
void threads(const char *name);
void visible(const char *name);

#endif
