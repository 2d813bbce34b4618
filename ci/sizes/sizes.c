/* sizes OPERATION BYTES: one operation on that many bytes by each rank; collectives are nonblocking with an `i` before the name,
 * persistent with `_init` behind it. Buffers hold zeroes but for marks on both sides of where 32-bit numbers end, and at the end:
 * they are looked at afterwards. Prints what was right; anything else aborts the job. */
#include "sizes.h"
#include <sys/mman.h>

enum { MARKS = 7 };
/* The first of these are collectives. */
enum { COLLECTIVES = 2, TABLES = 4 };
static const struct operation *const tables[TABLES] = {collectives, ragged, messages, windows};
int rank, size;
MPI_Count bytes;
enum form form;
static const char *operation;

void fail(const char *what, long long number) {
    fprintf(stderr, "%s of %lld bytes: rank %d: %s %lld\n", operation, (long long)bytes, rank, what, number);
    MPI_Abort(world, 4);
}

byte *memory(MPI_Count length) {
    void *found = mmap(NULL, (size_t)length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found == MAP_FAILED) fail("no memory, bytes", (long long)length);
    madvise(found, (size_t)length, MADV_HUGEPAGE);
    return found;
}

static MPI_Count place(int mark) {
    const MPI_Count places[MARKS] = {0, 1, (1LL << 31) - 1, 1LL << 31, (1LL << 32) - 1, 1LL << 32, bytes - 1};
    return places[mark] < bytes ? places[mark] : bytes - 1;
}

/* The marks are set from the first to the last: of those at one place the last one stays. */
void set(byte *buffer, int value) {
    for (int mark = 0; mark < MARKS; mark++) buffer[place(mark)] = (byte)(value + mark);
}

void check(const byte *buffer, int value) {
    for (int mark = 0; mark < MARKS; mark++) {
        if (mark + 1 < MARKS && place(mark) == bytes - 1) continue;
        if (buffer[place(mark)] != (byte)(value + mark)) fail("wrong at byte", (long long)place(mark));
    }
}

void check_blocks(const byte *buffer, int first, int step) {
    for (int r = 0; r < size; r++) check(buffer + bytes * r, first + step * r);
}

/* Whether a name is that of an operation in a form, which is set. */
static int is_form_of(const char *name, const char *of, int is_collective) {
    size_t length = strlen(of);
    form = BLOCKING;
    if (strcmp(name, of) == 0) return 1;
    form = NONBLOCKING;
    if (is_collective && name[0] == 'i' && strcmp(name + 1, of) == 0) return 1;
    form = PERSISTENT;
    return is_collective && strncmp(name, of, length) == 0 && strcmp(name + length, "_init") == 0;
}

/* All operations, collectives in each form. */
static int print_names(void) {
    for (int table = 0; table < TABLES; table++)
        for (const struct operation *one = tables[table]; one->name; one++)
            printf(table < COLLECTIVES ? "%1$s\ni%1$s\n%1$s_init\n" : "%1$s\n", one->name);
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "names") == 0) return print_names();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &size);
    operation = argc > 2 ? argv[1] : "";
    bytes = argc > 2 ? atoll(argv[2]) : 0;
    for (int table = 0; bytes > 0 && size > TARGET && table < TABLES; table++) {
        for (const struct operation *one = tables[table]; one->name; one++) {
            if (!is_form_of(operation, one->name, table < COLLECTIVES)) continue;
            double start = MPI_Wtime();
            one->run();
            MPI_Barrier(world);
            if (rank == ROOT) printf("%-24s %lld bytes: right, %.1f s\n", operation, (long long)bytes, MPI_Wtime() - start);
            return MPI_Finalize();
        }
    }
    fprintf(stderr, "usage: sizes OPERATION BYTES, by two ranks at least; sizes names\n");
    MPI_Abort(world, 2);
}
