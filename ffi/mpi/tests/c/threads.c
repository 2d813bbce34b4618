/* Threads of one process on one window, or request, at MPI_THREAD_MULTIPLE: one that waits for a peer never keeps another from the call
 * that the peer waits for. Each part ends in a deadlock otherwise. */
#include <pthread.h>
#include <time.h>

#include "check.h"

enum { COUNTER, SLOT, PLACES = 16, THREADS = 4, ROUNDS = 500 };

static MPI_Win win;
static long *memory;
static MPI_Group other;

/* Time for another thread to come to where it waits. */
static void a_moment(void) {
    struct timespec moment = {0, 50 * 1000 * 1000};
    nanosleep(&moment, NULL);
}

static void together(void) { OK(MPI_Barrier(MPI_COMM_WORLD)); }

static void *in_thread(pthread_t *thread, void *(*work)(void *)) {
    CHECK(pthread_create(thread, NULL, work, NULL) == 0);
    a_moment();
    return NULL;
}

static void *lock_the_other(void *nothing) {
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win));
    OK(MPI_Win_unlock(1, win));
    return nothing;
}

/* A thread waits for rank 1's lock, rank 1 for a lock that another thread gives back. */
static void locks(void) {
    pthread_t thread;
    long one = 1;
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank_, 0, win));
    together();
    if (rank_ == 0) {
        in_thread(&thread, lock_the_other);
        OK(MPI_Put(&one, 1, MPI_LONG, 0, SLOT, 1, MPI_LONG, win));
        OK(MPI_Win_flush(0, win));
        OK(MPI_Win_flush_all(win));
        OK(MPI_Win_unlock(0, win));
        CHECK(pthread_join(thread, NULL) == 0);
    } else {
        long found = 0;
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
        OK(MPI_Get(&found, 1, MPI_LONG, 0, SLOT, 1, MPI_LONG, win));
        OK(MPI_Win_unlock(0, win));
        CHECK(found == 1);
        OK(MPI_Win_unlock(1, win));
    }
    together();
}

static void *put_to_the_other(void *nothing) {
    long two = 2;
    OK(MPI_Put(&two, 1, MPI_LONG, 1, SLOT, 1, MPI_LONG, win));
    OK(MPI_Win_flush(1, win));
    return nothing;
}

/* In an epoch of lock_all two threads' first access to rank 1 waits until that has a message from this one. */
static void lock_all(void) {
    pthread_t threads[2];
    long three = 3, word = 0;
    if (rank_ == 1) OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win));
    together();
    if (rank_ == 0) {
        OK(MPI_Win_lock_all(0, win));
        in_thread(&threads[0], put_to_the_other);
        in_thread(&threads[1], put_to_the_other);
        OK(MPI_Put(&three, 1, MPI_LONG, 0, SLOT, 1, MPI_LONG, win));
        OK(MPI_Fetch_and_op(&three, &word, MPI_LONG, 0, COUNTER, MPI_NO_OP, win));
        OK(MPI_Win_flush(0, win));
        OK(MPI_Send(&word, 1, MPI_LONG, 1, 0, MPI_COMM_WORLD));
        for (int i = 0; i < 2; i++) CHECK(pthread_join(threads[i], NULL) == 0);
        OK(MPI_Win_unlock_all(win));
    } else {
        OK(MPI_Recv(&word, 1, MPI_LONG, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Win_unlock(1, win));
    }
    together();
    if (rank_ == 1) {
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win));
        CHECK(memory[SLOT] == 2);
        OK(MPI_Win_unlock(1, win));
    }
    together();
}

static void *post(void *nothing) {
    OK(MPI_Win_post(other, 0, win));
    OK(MPI_Win_wait(win));
    return nothing;
}

static void *access_the_other(void *nothing) {
    OK(MPI_Win_start(other, 0, win));
    long four = 4;
    OK(MPI_Put(&four, 1, MPI_LONG, 1 - rank_, SLOT, 1, MPI_LONG, win));
    OK(MPI_Win_complete(win));
    return nothing;
}

/* A put of rank 0 waits for rank 1's post, which comes after rank 0 has posted in another thread. */
static void start_and_post(void) {
    pthread_t thread;
    if (rank_ == 0) {
        in_thread(&thread, access_the_other);
        post(NULL);
        CHECK(pthread_join(thread, NULL) == 0);
    } else {
        long five = 5;
        OK(MPI_Win_start(other, 0, win));
        OK(MPI_Put(&five, 1, MPI_LONG, 0, SLOT, 1, MPI_LONG, win));
        OK(MPI_Win_complete(win));
        OK(MPI_Win_post(other, 0, win));
        OK(MPI_Win_wait(win));
    }
    CHECK(memory[SLOT] == (rank_ == 0 ? 5 : 4));
    together();
}

/* A thread waits for the end of the exposure while this one accesses. */
static void wait_and_start(void) {
    pthread_t thread;
    memory[SLOT] = 0;
    together();
    in_thread(&thread, post);
    access_the_other(NULL);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(memory[SLOT] == 4);
    together();
}

static void *count(void *place) {
    long own = *(long *)place, one = 1, old;
    for (int i = 0; i < ROUNDS; i++)
        for (int target = 0; target < size_; target++) {
            OK(MPI_Fetch_and_op(&one, &old, MPI_LONG, target, COUNTER, MPI_SUM, win));
            OK(MPI_Put(&old, 1, MPI_LONG, target, own, 1, MPI_LONG, win));
            OK(MPI_Win_flush(target, win));
            long back = -1;
            OK(MPI_Get(&back, 1, MPI_LONG, target, own, 1, MPI_LONG, win));
            OK(i % 2 ? MPI_Win_flush_all(win) : MPI_Win_flush_local(target, win));
            CHECK(back == old);
        }
    return NULL;
}

/* Threads share an epoch. */
static void everybody(void) {
    pthread_t threads[THREADS];
    long places[THREADS];
    memory[COUNTER] = 0;
    together();
    OK(MPI_Win_lock_all(0, win));
    for (int i = 0; i < THREADS; i++) {
        places[i] = 2 + rank_ * THREADS + i;
        CHECK(pthread_create(&threads[i], NULL, count, &places[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    OK(MPI_Win_unlock_all(win));
    together();
    CHECK(memory[COUNTER] == (long)THREADS * ROUNDS * size_);
    together();
}

static MPI_Request awaited;

static void *wait_for_it(void *nothing) {
    MPI_Status status;
    int cancelled;
    OK(MPI_Wait(&awaited, &status));
    OK(MPI_Test_cancelled(&status, &cancelled));
    CHECK(cancelled);
    return nothing;
}

/* A receive that a thread waits for is taken back by another. */
static void cancel(void) {
    pthread_t thread;
    long word;
    OK(MPI_Irecv(&word, 1, MPI_LONG, 1 - rank_, 77, MPI_COMM_WORLD, &awaited));
    MPI_Request same = awaited;
    in_thread(&thread, wait_for_it);
    OK(MPI_Cancel(&same));
    CHECK(pthread_join(thread, NULL) == 0);
    together();
}

int main(int argc, char **argv) {
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    CHECK(level == MPI_THREAD_MULTIPLE && size_ == 2);
    MPI_Group all;
    int there = 1 - rank_;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Group_incl(all, 1, &there, &other));
    OK(MPI_Win_allocate(PLACES * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    memset(memory, 0, PLACES * sizeof(long));
    RUN(together, locks, lock_all, start_and_post, wait_and_start, everybody, cancel);
    OK(MPI_Win_free(&win));
    OK(MPI_Group_free(&other));
    OK(MPI_Group_free(&all));
    return end();
}
