/* Windows over memory of the program's own (MPI-4.1 §12.2.1 and §12.2.4): wherever it is, whatever shares a page with it, and whatever the
 * program does beside. */
#define _GNU_SOURCE
#include "check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROOM = 1 << 16, SMALL = 24 };

static unsigned char zeroed[ROOM];
static unsigned char filled[ROOM] = {1, 2, 3};

/* Whether memory is to be shared in place: between ranks of one host that share memory at all. */
static int is_shared(void) {
    const char *transport = getenv("TRANSOM_TRANSPORT");
    /* Valgrind keeps an account of memory that has no word for this. */
    const char *libraries = getenv("LD_PRELOAD");
    if (libraries && strstr(libraries, "/vgpreload_")) return 0;
    return size_ > 1 && (!transport || strcmp(transport, "shm") == 0);
}

static void check_info(MPI_Win win) {
    MPI_Info info;
    char as[256] = "";
    int length = sizeof as, given;
    OK(MPI_Win_get_info(win, &info));
    OK(MPI_Info_get_string(info, "transom_created_as", &length, as, &given));
    OK(MPI_Info_free(&info));
    if (is_shared() && strcmp(as, "share") != 0) fprintf(stderr, "rank %d: %s\n", rank_, as);
    CHECK(given && (strcmp(as, "share") == 0) == is_shared());
}

/* Every operation on a window over `bytes` bytes from `from` on, of `room` bytes with neighbours. */
static void use(unsigned char *room, size_t from, size_t bytes) {
    MPI_Win win;
    int right = (rank_ + 1) % size_, left = (rank_ + size_ - 1) % size_;
    for (size_t i = 0; i < ROOM; i++) room[i] = (unsigned char)(i % 251);
    OK(MPI_Win_create(room + from, (MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    check_info(win);
    for (size_t i = 0; i < ROOM; i++) CHECK(room[i] == i % 251);
    unsigned char first = (unsigned char)(rank_ + 100), last = (unsigned char)(rank_ + 150), got = 0;
    uint64_t one = 1, old = 0, many[2] = {7, 9};
    MPI_Aint word = (MPI_Aint)(8 - (uintptr_t)(room + from) % 8);
    memset(room + from + word, 0, 16);
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&first, 1, MPI_BYTE, right, 0, 1, MPI_BYTE, win));
    OK(MPI_Put(&last, 1, MPI_BYTE, right, (MPI_Aint)bytes - 1, 1, MPI_BYTE, win));
    OK(MPI_Win_fence(0, win));
    CHECK(room[from] == left + 100 && room[from + bytes - 1] == left + 150);
    OK(MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win));
    OK(MPI_Get(&got, 1, MPI_BYTE, right, (MPI_Aint)bytes - 1, 1, MPI_BYTE, win));
    OK(MPI_Fetch_and_op(&one, &old, MPI_UINT64_T, right, word, MPI_SUM, win));
    OK(MPI_Accumulate(many, 2, MPI_UINT64_T, right, word, 2, MPI_UINT64_T, MPI_SUM, win));
    OK(MPI_Win_unlock(right, win));
    CHECK(got == rank_ + 150 && old == 0);
    OK(MPI_Win_fence(0, win));
    memcpy(many, room + from + word, sizeof many);
    CHECK(many[0] == 8 && many[1] == 9);
    OK(MPI_Win_free(&win));
    CHECK(room[from] == left + 100 && room[from + bytes - 1] == left + 150);
    for (size_t i = 0; i < ROOM; i++) CHECK((i >= from && i < from + bytes) || room[i] == i % 251);
}

static void use_all(unsigned char *room) {
    use(room, 0, ROOM);
    use(room, 1, SMALL);
    use(room, 4090, SMALL);
    use(room, 5001, 3 * 4096 + 77);
}

static void everywhere(void) {
    unsigned char stack[ROOM], *heap = malloc(ROOM), *large = malloc(1 << 22);
    for (int round = 0; round < 2; round++) {
        use_all(stack);
        use_all(zeroed);
        use_all(filled);
        use_all(heap);
        use_all(large + 12345);
    }
    free(heap);
    free(large);
}

/* Deep in the stack, while a page of a caller's frame is shared. */
static int deeper(int depth, MPI_Win win) {
    volatile char frame[3000];
    frame[depth % 3000] = (char)depth;
    if (depth > 0) return deeper(depth - 1, win) + (frame[depth % 3000] == (char)depth);
    OK(MPI_Win_fence(0, win));
    return 0;
}

static void frames(void) {
    int counter = 0, one = 1;
    MPI_Win win;
    OK(MPI_Win_create(&counter, sizeof counter, sizeof counter, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    CHECK(deeper(200, win) == 200);
    OK(MPI_Accumulate(&one, 1, MPI_INT, (rank_ + 1) % size_, 0, 1, MPI_INT, MPI_SUM, win));
    CHECK(deeper(200, win) == 200);
    CHECK(counter == 1);
    OK(MPI_Win_free(&win));
    CHECK(counter == 1);
}

/* What the kernel writes of a thread, or the C library, may be beside it. */
static void thread_local_memory(void) {
    static _Thread_local int counter;
    int one = 1;
    MPI_Win win;
    OK(MPI_Win_create(&counter, sizeof counter, sizeof counter, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    for (int turn = 0; turn < 200; turn++) {
        OK(MPI_Win_fence(0, win));
        OK(MPI_Accumulate(&one, 1, MPI_INT, (rank_ + 1) % size_, 0, 1, MPI_INT, MPI_SUM, win));
        OK(MPI_Win_fence(0, win));
        CHECK(counter == turn + 1);
    }
    OK(MPI_Win_free(&win));
}

/* A child has memory of its own, and its parent and peers theirs. */
static void children(void) {
    unsigned char *heap = malloc(ROOM), stack[SMALL], byte;
    int ready[2];
    MPI_Win wins[2];
    memset(heap, 1, ROOM);
    memset(stack, 1, SMALL);
    OK(MPI_Win_create(heap + 7, ROOM - 20, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &wins[0]));
    OK(MPI_Win_create(stack, SMALL, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &wins[1]));
    CHECK(pipe(ready) == 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        if (read(ready[0], &byte, 1) != 1) _exit(9);
        int same = 1;
        for (int i = 7; i < ROOM - 13; i++) same &= heap[i] == 1;
        for (int i = 0; i < SMALL; i++) same &= stack[i] == 1;
        memset(heap, 99, ROOM);
        memset(stack, 99, SMALL);
        _exit(same ? 0 : 1);
    }
    byte = 2;
    for (int i = 0; i < 2; i++) {
        OK(MPI_Win_fence(0, wins[i]));
        OK(MPI_Put(&byte, 1, MPI_BYTE, (rank_ + 1) % size_, 3, 1, MPI_BYTE, wins[i]));
        OK(MPI_Win_fence(0, wins[i]));
    }
    stack[0] = heap[7] = 3;
    CHECK(write(ready[1], &byte, 1) == 1);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(stack[0] == 3 && stack[3] == 2 && stack[4] == 1 && heap[7] == 3 && heap[10] == 2 && heap[11] == 1);
    CHECK(system("exit 5") == 5 << 8);
    child = vfork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", "exit 6", (char *)NULL);
        _exit(1);
    }
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 6);
    for (int i = 0; i < 2; i++) {
        OK(MPI_Win_fence(0, wins[i]));
        OK(MPI_Put(&byte, 1, MPI_BYTE, (rank_ + 1) % size_, 5, 1, MPI_BYTE, wins[i]));
        OK(MPI_Win_fence(0, wins[i]));
        OK(MPI_Win_free(&wins[i]));
    }
    CHECK(stack[5] == 2 && heap[12] == 2);
    free(heap);
}

/* As often as the environment says; else 300 times. */
static int often(void) {
    const char *asked = getenv("TRANSOM_TEST_CREATED");
    return asked ? atoi(asked) : 300;
}

/* TRANSOM_TEST_CREATED: how many windows, where that is more than 300. */
static void overlapping(void) {
    int windows = often() > 300 ? often() : 300;
    MPI_Win *wins = malloc((size_t)windows * sizeof *wins);
    size_t bytes = 100 * (size_t)windows + 5000;
    unsigned char *heap = malloc(bytes), byte = 5;
    int right = (rank_ + 1) % size_;
    memset(heap, 1, bytes);
    for (int i = 0; i < windows; i++)
        OK(MPI_Win_create(heap + 100 * i, 5000, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &wins[i]));
    for (int i = 0; i < windows; i++) {
        OK(MPI_Win_lock(MPI_LOCK_SHARED, right, 0, wins[i]));
        OK(MPI_Put(&byte, 1, MPI_BYTE, right, 100, 1, MPI_BYTE, wins[i]));
        OK(MPI_Win_unlock(right, wins[i]));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    /* In another order: the even ones, then the odd ones. */
    for (int odd = 0; odd < 2; odd++)
        for (int i = odd; i < windows; i += 2) OK(MPI_Win_free(&wins[i]));
    for (int i = 0; i < windows; i++) CHECK(heap[100 * i + 100] == 5 && heap[100 * i + 101] == 1);
    free(heap);
    free(wins);
}

/* The program gives memory back while a window is over it: nobody else is hurt. */
static void given_back(void) {
    for (int large = 0; large < 2; large++) {
        size_t bytes = large ? 1 << 20 : 1000;
        unsigned char *kept = malloc(bytes), *moved = malloc(bytes), *freed = malloc(bytes);
        MPI_Win wins[3];
        memset(kept, 7, bytes);
        memset(moved, 8, bytes);
        OK(MPI_Win_create(kept, (MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &wins[0]));
        OK(MPI_Win_create(moved, (MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &wins[1]));
        OK(MPI_Win_create(freed, (MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &wins[2]));
        moved = realloc(moved, 4 * bytes);
        CHECK(moved && moved[0] == 8 && moved[bytes - 1] == 8);
        memset(moved + bytes, 9, 3 * bytes);
        free(freed);
        unsigned char *others[50];
        for (int i = 0; i < 50; i++) memset(others[i] = malloc(bytes), i, bytes);
        for (int i = 0; i < 3; i++) OK(MPI_Win_free(&wins[i]));
        for (int i = 0; i < 50; i++) {
            CHECK(others[i][0] == i && others[i][bytes - 1] == i);
            free(others[i]);
        }
        CHECK(kept[0] == 7 && kept[bytes - 1] == 7 && moved[bytes - 1] == 8 && moved[4 * bytes - 1] == 9);
        unsigned char *fresh = calloc(4, bytes);
        for (size_t i = 0; i < 4 * bytes; i++) CHECK(fresh[i] == 0);
        free(fresh);
        free(kept);
        free(moved);
    }
}

static void attached(void) {
    static unsigned char statics[ROOM];
    unsigned char *heap = malloc(ROOM), *parts[2] = {heap + 9, statics + 4000}, byte = 6;
    uint64_t one = 1, old = 5;
    MPI_Win win;
    MPI_Aint addresses[2], theirs[2];
    int right = (rank_ + 1) % size_, left = (rank_ + size_ - 1) % size_;
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    for (int round = 0; round < 20; round++) {
        memset(heap, round, ROOM);
        memset(statics, 0, ROOM);
        for (int i = 0; i < 2; i++) {
            OK(MPI_Win_attach(win, parts[i], 20000));
            OK(MPI_Get_address(parts[i], &addresses[i]));
        }
        OK(MPI_Sendrecv(addresses, 2, MPI_AINT, left, 0, theirs, 2, MPI_AINT, right, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win));
        OK(MPI_Put(&byte, 1, MPI_BYTE, right, MPI_Aint_add(theirs[0], 19999), 1, MPI_BYTE, win));
        for (int turn = 0; turn < 10; turn++) {
            OK(MPI_Fetch_and_op(&one, &old, MPI_UINT64_T, right, MPI_Aint_add(theirs[1], 8000), MPI_SUM, win));
            OK(MPI_Win_flush(right, win));
            CHECK(old == (uint64_t)turn);
        }
        OK(MPI_Win_unlock(right, win));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        memcpy(&old, statics + 12000, sizeof old);
        CHECK(heap[9 + 19999] == 6 && heap[9 + 20000] == round && old == 10);
        for (int i = 0; i < 2; i++) OK(MPI_Win_detach(win, parts[i]));
        CHECK(heap[9 + 19999] == 6);
    }
    OK(MPI_Win_free(&win));
    free(heap);
}

static atomic_uint_fast64_t words[4 * 512];
static atomic_int stop;

static void *count(void *turns) {
    while (!stop) {
        /* A load and a store: a store that is lost shows. */
        for (int i = 0; i < 4 * 512; i++) {
            uint64_t now = atomic_load_explicit(&words[i], memory_order_relaxed);
            atomic_store_explicit(&words[i], now + 1, memory_order_relaxed);
        }
        ++*(atomic_uint_fast64_t *)turns;
    }
    return NULL;
}

/* Another thread writes what becomes a window, and is one no more. TRANSOM_TEST_CREATED: how often. */
static void written_meanwhile(void) {
    pthread_t writer;
    atomic_uint_fast64_t turns = 0;
    MPI_Win win;
    CHECK(pthread_create(&writer, NULL, count, &turns) == 0);
    for (int i = 0; i < often(); i++) {
        OK(MPI_Win_create((unsigned char *)words + 100, 3 * 4096, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        OK(MPI_Win_free(&win));
    }
    while (turns == 0) usleep(100);
    stop = 1;
    CHECK(pthread_join(writer, NULL) == 0);
    for (int i = 0; i < 4 * 512; i++) CHECK(words[i] == turns);
}

/* Kibibytes of memory that this process has, of its own and of files. */
static long resident(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%*d %ld", &pages) == 1);
    fclose(file);
    return pages * 4;
}

static void takes_no_memory(void) {
    size_t bytes = 8 << 20;
    unsigned char *heap = malloc(bytes);
    memset(heap, 1, bytes);
    long before = 0;
    for (int i = 0; i < 40; i++) {
        MPI_Win win;
        OK(MPI_Win_create(heap + i, (MPI_Aint)bytes - 100, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        OK(MPI_Win_fence(0, win));
        OK(MPI_Put(heap, 1, MPI_BYTE, (rank_ + 1) % size_, 0, 1, MPI_BYTE, win));
        OK(MPI_Win_fence(0, win));
        OK(MPI_Win_free(&win));
        if (i == 5) before = resident();
    }
    CHECK(resident() - before < 4096);
    free(heap);
}

PROGRAM(everywhere, frames, thread_local_memory, children, overlapping, given_back, attached, takes_no_memory, written_meanwhile)
