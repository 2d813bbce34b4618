/* The limit of one-sided communication over TCP: a raw socket of the kernel between two processes that spin, in the rows of calls.c
 * and bulk.c, and under their names. A small operation is 8 bytes there and 8 bytes back; a put of some bytes is these there, and 8
 * bytes back; a get, the other way round. One line a sample, "ROW UNIT NUMBER". */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <time.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
enum { BLOCKS = 9, ATTEMPTS = 12, BURST = 64, POLLS = 100 };
static const size_t LONGEST = 4u << 20;
static const double BLOCK = 1e-3, BYTES = 64u << 20;

static int peer;
static char *memory;

/* What the origin asks for: so many times so many bytes there, then so many times so many back. */
struct request {
    size_t out, back, times, turns, step;
};

static void fail(const char *what) {
    perror(what);
    exit(1);
}

/* Polls, and offers the core now and then, as the runtimes do. */
static void move(int sends, char *at, size_t bytes) {
    for (int polls = 1; bytes > 0; polls++) {
        if (polls % POLLS == 0) sched_yield();
        ssize_t moved = sends ? send(peer, at, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) : recv(peer, at, bytes, MSG_DONTWAIT);
        if (moved == 0) exit(0);
        if (moved < 0 && errno != EAGAIN && errno != EINTR) fail(sends ? "send" : "recv");
        if (moved > 0) at += moved, bytes -= (size_t)moved;
    }
}

static void exchange(int origin, const struct request *r) {
    for (size_t turn = 0; turn < r->turns; turn++) {
        int data_goes_out = r->out >= r->back;
        size_t out_times = data_goes_out ? r->times : 1, back_times = data_goes_out ? 1 : r->times;
        for (size_t i = 0; i < out_times; i++) move(origin, memory + i * r->step, r->out);
        for (size_t i = 0; i < back_times; i++) move(!origin, memory + i * r->step, r->back);
    }
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static double timed(struct request r) {
    for (int attempt = 0;; attempt++) {
        struct rusage before, after;
        getrusage(RUSAGE_SELF, &before);
        move(1, (char *)&r, sizeof r);
        double start = now();
        exchange(1, &r);
        double seconds = now() - start;
        getrusage(RUSAGE_SELF, &after);
        if (before.ru_nivcsw == after.ru_nivcsw || attempt >= ATTEMPTS) return seconds;
    }
}

static void small(const char *row, size_t out, size_t back) {
    struct request r = {out, back, 1, 1, 0};
    while (timed(r) < BLOCK) r.turns *= 2;
    for (int block = 0; block < BLOCKS; block++) printf("%s ns %.2f\n", row, 1e9 * timed(r) / (double)r.turns);
}

static void bulk(const char *kind, size_t bytes, const char *manner, size_t times, size_t step) {
    int puts = !strcmp(kind, "put");
    struct request r = {puts ? bytes : 8, puts ? 8 : bytes, times, 0, step};
    r.turns = (size_t)(BYTES / (double)(bytes * times)) + 1;
    char size[32];
    snprintf(size, sizeof size, bytes < 1u << 20 ? "%zuKiB" : "%zuMiB", bytes < 1u << 20 ? bytes >> 10 : bytes >> 20);
    timed(r);
    for (int sample = 0; sample < BLOCKS; sample++)
        printf("%s-%s%s GB/s %.3f\n", kind, size, manner, 1e-9 * (double)bytes * (double)times * (double)r.turns / timed(r));
}

static void calls(void) {
    static const char *const names[] = {"put+flush", "get+flush", "fetch_and_op+flush", "compare_and_swap+flush",
        "accumulate+flush", "get_accumulate+flush", "rput+wait+flush", "lock+put+unlock"};
    for (size_t i = 0; i < COUNT(names); i++) small(names[i], 8, 8);
    small("put-1KiB+flush", 1024, 8);
    small("put-8KiB+flush", 8192, 8);
}

static void transfers(void) {
    static const size_t sizes[] = {4u << 10, 64u << 10, 1u << 20, 4u << 20};
    for (int get = 0; get < 2; get++)
        for (size_t i = 0; i < COUNT(sizes); i++) {
            const char *kind = get ? "get" : "put";
            bulk(kind, sizes[i], "", 1, 0);
            bulk(kind, sizes[i], "-64-same", BURST, 0);
            bulk(kind, sizes[i], "-64-apart", BURST, sizes[i]);
        }
}

/* With an argument, the rows of bulk.c; else those of calls.c. */
int main(int argc, char **argv) {
    (void)argv;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    setvbuf(stdout, NULL, _IOLBF, 0);
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 1)) fail("listen");
    getsockname(listener, (struct sockaddr *)&address, &length);
    pid_t child = fork();
    peer = child ? accept(listener, NULL, NULL) : socket(AF_INET, SOCK_STREAM, 0);
    if (!child && connect(peer, (struct sockaddr *)&address, length)) fail("connect");
    setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    /* Where BBR is the system's choice, its pacing would be the limit. */
    setsockopt(peer, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET((child ? 0 : 1) % (int)sysconf(_SC_NPROCESSORS_ONLN), &cores);
    sched_setaffinity(0, sizeof cores, &cores);
    memory = aligned_alloc(4096, BURST * LONGEST);
    memset(memory, 1, BURST * LONGEST);
    if (child) {
        if (argc > 1) transfers();
        else calls();
        shutdown(peer, SHUT_RDWR);
        return waitpid(child, NULL, 0) == child ? 0 : 1;
    }
    for (struct request r;;) {
        move(0, (char *)&r, sizeof r);
        exchange(0, &r);
    }
}
