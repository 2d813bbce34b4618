/* Random mixtures of collectives, blocking and not, messages and atomics on several communicators, by ranks that are out of step: every
 * result is checked. What is done all ranks know from the seed; when a receive is posted and a request tested each decides by itself.
 *
 *     mixture [SEED [STEPS]]
 *
 * TRANSOM_TEST_MIXTURES: how many seeds, one after the other. */
#include <stdint.h>
#include <time.h>
#include "check.h"

enum { COMMS = 4, ANY = COMMS, RANKS = 64, TAGS = 3, MOST = 2048, BETWEEN = 24 };
enum kind { BARRIER, BCAST, REDUCE, ALLREDUCE, SCAN, EXSCAN, SCATTER_BLOCK, SCATTER, GATHER, SPREAD, ALLGATHER, ALLTOALL, KINDS };
typedef uint32_t word;

/* Two generators: of what all know, and of what is a rank's own. */
static uint64_t common, own;
static int draw(uint64_t *state, int below) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (int)((*state >> 33) % (unsigned)below);
}

/* Communicators, with the ranks of the world that are in them; the last is for receives from any rank. */
static struct { MPI_Comm comm; int rank, size, world[RANKS]; } comms[COMMS + 1];
static MPI_Op compose;
static MPI_Datatype maps;

/* Something under way, or a receive to be posted. */
struct work {
    enum { COLLECTIVE, SENT, RECEIVED } sort;
    enum kind kind;
    int step, on, root, count, composes, in_place, peer, tag, whole;
    word *in, *out;
    int out_words, counts[RANKS], places[RANKS], from_each[RANKS], from_places[RANKS];
    MPI_Request request;
};
static struct work *works[MOST], *waiting[MOST];
static int under_way, to_receive;

/* Word i of what a rank of the world gives to a step is START + i * FACTOR. */
static const word FACTOR = 2654435761u;
static word start_of(int step, int world) {
    word mixed = (word)step * 0x85ebca6bu ^ (word)(world + 1) * 0xc2b2ae35u;
    return mixed ^ mixed >> 15;
}
static void fill(word *words, int count, word start, int first) {
    for (int i = 0; i < count; i++) words[i] = start + (word)(first + i) * FACTOR;
}
static int is(const word *words, int count, word start, word factor, int first) {
    for (int i = 0; i < count; i++)
        if (words[i] != start + (word)(first + i) * factor) return 0;
    return 1;
}

/* Affine maps, one after the other: it does not commute. */
static void composed(void *left, void *right, int *count, MPI_Datatype *type) {
    (void)type;
    word *l = left, *r = right;
    for (int i = 0; i < 2 * *count; i += 2) {
        r[i + 1] = l[i] * r[i + 1] + l[i + 1];
        r[i] *= l[i];
    }
}

/* The reduction of the first ranks' words from `first` on. */
static int is_reduction(const struct work *w, const word *words, int count, int ranks, int first) {
    word start = 0;
    const int *world = comms[w->on].world;
    for (int r = 0; r < ranks; r++) start += start_of(w->step, world[r]);
    if (!w->composes) return is(words, count, start, (word)ranks * FACTOR, first);
    for (int i = 0; i < count; i += 2) {
        word left[2] = {1, 0}, right[2];
        for (int r = 0; r < ranks; r++) {
            fill(right, 2, start_of(w->step, world[r]), first + i);
            composed(left, right, &(int){1}, &maps);
            memcpy(left, right, sizeof left);
        }
        if (words[i] != left[0] || words[i + 1] != left[1]) return 0;
    }
    return 1;
}

static word *memory(int words) {
    word *memory = calloc((size_t)words + 1, sizeof(word));
    CHECK(memory != NULL);
    memory[words] = 0xfeedface;
    return memory;
}
static int length(int most) {
    static const int lengths[] = {0, 1, 2, 3, 16, 17, 100, 1000, 1100, 4096, 17000, 66000, 300000};
    int length = lengths[draw(&common, sizeof lengths / sizeof *lengths)];
    return length > most ? length % 50 : length;
}
static struct work *new_work(int sort, int step, int on) {
    struct work *w = calloc(1, sizeof *w);
    CHECK(w != NULL);
    w->sort = sort;
    w->step = step;
    w->on = on;
    w->request = MPI_REQUEST_NULL;
    return w;
}

/* A collective that all know; the halves of a communicator each do their own. */
static struct work *collective(int step) {
    struct work *w = new_work(COLLECTIVE, step, draw(&common, COMMS));
    int n = comms[w->on].size, varies = draw(&common, 2);
    w->kind = draw(&common, KINDS);
    w->root = draw(&common, RANKS * 64) % n;
    w->composes = draw(&common, 3) == 0 && w->kind >= REDUCE && w->kind <= SCATTER;
    w->in_place = draw(&common, 3) == 0;
    w->count = length(w->kind >= SCATTER_BLOCK ? 70000 / size_ : 300000) & ~w->composes;
    varies &= w->kind >= SCATTER && w->count > 0;
    for (int i = 0; i < n; i++) {
        w->counts[i] = varies ? (w->count + i * 37 + step) % (2 * w->count) & ~w->composes : w->count;
        w->places[i] = w->whole;
        w->whole += w->counts[i];
    }
    return w;
}

static int mine(const struct work *w) { return w->counts[comms[w->on].rank]; }

/* How many words go in and come out. */
static void lengths(const struct work *w, int *in, int *out) {
    int root = comms[w->on].rank == w->root;
    *in = *out = w->count;
    switch (w->kind) {
    case BARRIER: *in = *out = 0; break;
    case SCATTER_BLOCK: case SCATTER: *in = w->whole, *out = mine(w); break;
    case GATHER: *in = mine(w), *out = root ? w->whole : 0; break;
    case SPREAD: *in = root ? w->whole : 0, *out = mine(w); break;
    case ALLGATHER: *in = mine(w), *out = w->whole; break;
    case ALLTOALL: *in = w->whole, *out = mine(w) * comms[w->on].size; break;
    default: break;
    }
}

#define EITHER(now, later, ...) OK(blocks ? MPI_##now(__VA_ARGS__) : MPI_##later(__VA_ARGS__, &w->request))
static void start(struct work *w, int blocks) {
    MPI_Comm comm = comms[w->on].comm;
    int n = comms[w->on].size, me = comms[w->on].rank, root = me == w->root, in_words, shape = 1 + w->composes;
    MPI_Datatype type = w->composes ? maps : MPI_UINT32_T;
    MPI_Op op = w->composes ? compose : MPI_SUM;
    lengths(w, &in_words, &w->out_words);
    w->in = memory(in_words);
    w->out = memory(w->out_words);
    fill(w->in, in_words, start_of(w->step, rank_), 0);
    void *in = w->in;
    int in_place = w->in_place && (w->kind == ALLREDUCE || w->kind == SCAN || w->kind == ALLGATHER
                                   || (root && (w->kind == REDUCE || w->kind == GATHER)));
    if (in_place || (w->kind == BCAST && root)) {
        int gathers = w->kind == GATHER || w->kind == ALLGATHER;
        memcpy(w->out + (gathers ? w->places[me] : 0), w->in, (size_t)in_words * sizeof(word));
    }
    if (in_place) in = MPI_IN_PLACE;
    int counts[RANKS];
    for (int i = 0; i < n; i++) {
        counts[i] = w->counts[i] / shape;
        w->from_each[i] = mine(w);
        w->from_places[i] = i * mine(w);
    }
    /* Equal blocks by one call or the other. */
    int equal = w->step % 2;
    for (int i = 0; i < n; i++) equal &= w->counts[i] == w->count;
    switch (w->kind) {
    case BARRIER: OK(blocks ? MPI_Barrier(comm) : MPI_Ibarrier(comm, &w->request)); break;
    case BCAST: EITHER(Bcast, Ibcast, w->out, w->count, MPI_UINT32_T, w->root, comm); break;
    case REDUCE: EITHER(Reduce, Ireduce, in, w->out, w->count / shape, type, op, w->root, comm); break;
    case ALLREDUCE: EITHER(Allreduce, Iallreduce, in, w->out, w->count / shape, type, op, comm); break;
    case SCAN: EITHER(Scan, Iscan, in, w->out, w->count / shape, type, op, comm); break;
    case EXSCAN: EITHER(Exscan, Iexscan, in, w->out, w->count / shape, type, op, comm); break;
    case SCATTER_BLOCK: EITHER(Reduce_scatter_block, Ireduce_scatter_block, in, w->out, w->count / shape, type, op, comm); break;
    case SCATTER:
        memcpy(w->from_each, counts, sizeof counts);
        EITHER(Reduce_scatter, Ireduce_scatter, in, w->out, w->from_each, type, op, comm);
        break;
    case GATHER:
        if (equal) EITHER(Gather, Igather, in, w->count, MPI_UINT32_T, w->out, w->count, MPI_UINT32_T, w->root, comm);
        else EITHER(Gatherv, Igatherv, in, mine(w), MPI_UINT32_T, w->out, w->counts, w->places, MPI_UINT32_T, w->root, comm);
        break;
    case SPREAD:
        if (equal) EITHER(Scatter, Iscatter, in, w->count, MPI_UINT32_T, w->out, w->count, MPI_UINT32_T, w->root, comm);
        else EITHER(Scatterv, Iscatterv, in, w->counts, w->places, MPI_UINT32_T, w->out, mine(w), MPI_UINT32_T, w->root, comm);
        break;
    case ALLGATHER:
        if (equal) EITHER(Allgather, Iallgather, in, w->count, MPI_UINT32_T, w->out, w->count, MPI_UINT32_T, comm);
        else EITHER(Allgatherv, Iallgatherv, in, mine(w), MPI_UINT32_T, w->out, w->counts, w->places, MPI_UINT32_T, comm);
        break;
    default:
        if (equal) EITHER(Alltoall, Ialltoall, in, w->count, MPI_UINT32_T, w->out, w->count, MPI_UINT32_T, comm);
        else EITHER(Alltoallv, Ialltoallv, in, w->counts, w->places, MPI_UINT32_T, w->out, w->from_each, w->from_places, MPI_UINT32_T, comm);
    }
}

/* Whether a collective has left what it should. */
static int is_right(const struct work *w) {
    int n = comms[w->on].size, me = comms[w->on].rank, root = me == w->root;
    const int *world = comms[w->on].world;
    const word *out = w->out;
    switch (w->kind) {
    case BARRIER: return 1;
    case BCAST: return is(out, w->count, start_of(w->step, world[w->root]), FACTOR, 0);
    case REDUCE: return !root || is_reduction(w, out, w->count, n, 0);
    case ALLREDUCE: return is_reduction(w, out, w->count, n, 0);
    case SCAN: return is_reduction(w, out, w->count, me + 1, 0);
    case EXSCAN: return me == 0 || is_reduction(w, out, w->count, me, 0);
    case SCATTER_BLOCK: case SCATTER: return is_reduction(w, out, mine(w), n, w->places[me]);
    case SPREAD: return is(out, mine(w), start_of(w->step, world[w->root]), FACTOR, w->places[me]);
    default: break;
    }
    int all = 1;
    for (int i = 0; i < n; i++) {
        word start = start_of(w->step, world[i]);
        if (w->kind == ALLTOALL) all &= is(out + w->from_places[i], mine(w), start, FACTOR, w->places[me]);
        else if (w->kind == ALLGATHER || root) all &= is(out + w->places[i], w->counts[i], start, FACTOR, 0);
    }
    return all;
}

/* The messages to one rank from any: the next number from each. */
static int next_to[RANKS], next_from[RANKS];

static void finish(struct work *w, const MPI_Status *status) {
    int right = w->out[w->out_words] == 0xfeedface;
    if (w->sort == COLLECTIVE) right &= is_right(w);
    if (w->sort == RECEIVED) {
        int count;
        MPI_Get_count(status, MPI_UINT32_T, &count);
        if (w->peer != MPI_ANY_SOURCE) {
            int from = comms[w->on].world[w->peer];
            right &= status->MPI_SOURCE == w->peer && status->MPI_TAG == w->tag && count == w->count;
            right &= is(w->out, w->count, start_of(w->step, from), FACTOR, 0);
        } else {
            right &= count >= 1 && is(w->out + 1, count - 1, start_of(count, status->MPI_SOURCE), FACTOR, 0);
            w->peer = status->MPI_SOURCE;
            w->tag = -1;
        }
    }
    if (!right)
        fprintf(stderr, "rank %d: wrong: step %d, sort %d, kind %d on %d, root %d, count %d, composes %d, in place %d, from %d, tag %d\n",
                rank_, w->step, w->sort, w->kind, w->on, w->root, w->count, w->composes, w->in_place, w->peer, w->tag);
    CHECK(right);
}
static void forget(struct work *w) {
    free(w->in);
    free(w->out);
    free(w);
}

/* Receives from any rank are looked at in the order in which they were posted: messages of one rank do not overtake each other. */
static struct work *any_order[MOST];
static int any_posted, of_any;
static void done(int which, const MPI_Status *status) {
    struct work *w = works[which];
    works[which] = works[--under_way];
    finish(w, status);
    if (w->sort != RECEIVED || w->on != ANY) forget(w);
}

/* Messages, all drawn by all. */
static void messages(int step) {
    int on = draw(&common, COMMS + 1), many = 1 + draw(&common, 8 * size_);
    int burst = draw(&common, 4) == 0;
    if (on == 2) on = 0; /* the halves have fewer ranks */
    of_any |= on == ANY;
    for (int i = 0; i < many; i++) {
        int n = comms[on].size, from = draw(&common, n), to = burst ? step % n : draw(&common, n), tag = draw(&common, TAGS);
        int count = length(70000), kind = draw(&common, 3);
        int me = comms[on].rank;
        if (on == ANY) count++;
        if (me == to) {
            CHECK(to_receive < MOST);
            struct work *w = new_work(RECEIVED, step * 512 + i, on);
            w->peer = on == ANY ? MPI_ANY_SOURCE : from;
            w->tag = on == ANY ? MPI_ANY_TAG : tag;
            w->count = on == ANY ? 70001 : count;
            waiting[to_receive++] = w;
        }
        if (me == from) {
            struct work *w = new_work(SENT, step * 512 + i, on);
            w->out_words = w->count = count;
            w->out = memory(count);
            fill(w->out, count, start_of(w->step, rank_), 0);
            if (on == ANY) {
                fill(w->out + 1, count - 1, start_of(count, rank_), 0);
                w->out[0] = (word)next_to[to]++;
            }
            MPI_Comm comm = comms[on].comm;
            if (kind == 0) OK(MPI_Issend(w->out, count, MPI_UINT32_T, to, tag, comm, &w->request));
            else OK(MPI_Isend(w->out, count, MPI_UINT32_T, to, tag, comm, &w->request));
            CHECK(under_way < MOST);
            works[under_way++] = w;
        }
    }
}

/* Posts the receive that is next. */
static void post(void) {
    static int posted;
    if (to_receive == 0) return;
    struct work *w = waiting[posted++];
    w->out_words = w->count;
    w->out = memory(w->count);
    int found = 0;
    MPI_Message message;
    MPI_Status status;
    MPI_Comm comm = comms[w->on].comm;
    if (draw(&own, 3) == 0) OK(MPI_Improbe(w->peer, w->tag, comm, &found, &message, &status));
    if (found) OK(MPI_Imrecv(w->out, w->count, MPI_UINT32_T, &message, &w->request));
    else OK(MPI_Irecv(w->out, w->count, MPI_UINT32_T, w->peer, w->tag, comm, &w->request));
    CHECK(under_way < MOST);
    works[under_way++] = w;
    if (w->on == ANY) any_order[any_posted++] = w;
    if (posted == to_receive) posted = to_receive = 0;
}

static void test_some(void) {
    for (int i = 0; i < 4 && under_way; i++) {
        int which = draw(&own, under_way), is_done;
        MPI_Status status;
        OK(MPI_Test(&works[which]->request, &is_done, &status));
        if (is_done) done(which, &status);
    }
}

/* All ranks get here: what was sent is received, what has begun ends. Where receives from any rank were posted, no later message may
 * meet them. */
static void settle(void) {
    while (to_receive) post();
    while (under_way) {
        int which = draw(&own, under_way), how = draw(&own, 3);
        MPI_Status status;
        if (how == 0) {
            MPI_Request requests[MOST];
            for (int i = 0; i < under_way; i++) requests[i] = works[i]->request;
            OK(MPI_Waitany(under_way, requests, &which, &status));
            works[which]->request = requests[which];
        } else {
            OK(MPI_Wait(&works[which]->request, &status));
        }
        done(which, &status);
    }
    for (int i = 0; i < any_posted; i++) {
        struct work *w = any_order[i];
        CHECK(w->out[0] == (word)next_from[w->peer]++);
        forget(w);
    }
    any_posted = 0;
    if (of_any) OK(MPI_Barrier(comms[ANY].comm));
    of_any = 0;
}

static void pause_a_little(void) {
    if (draw(&own, 6)) return;
    struct timespec time = {0, draw(&own, 3) ? draw(&own, 100000) : draw(&own, 4000000)};
    nanosleep(&time, NULL);
}

static void ring(int step) {
    int on = draw(&common, COMMS), n = comms[on].size, me = comms[on].rank, by = 1 + draw(&common, 3), count = length(300000);
    int to = (me + by) % n, from = (me + n - by % n) % n;
    word *out = memory(count), *in = memory(count);
    fill(out, count, start_of(step, rank_), 0);
    OK(MPI_Sendrecv(out, count, MPI_UINT32_T, to, 77, in, count, MPI_UINT32_T, from, 77, comms[on].comm, MPI_STATUS_IGNORE));
    CHECK(is(in, count, start_of(step, comms[on].world[from]), FACTOR, 0) && in[count] == 0xfeedface);
    free(out);
    free(in);
}

/* A communicator that does not live long. */
static void passing(int step) {
    int on = draw(&common, COMMS), sum = 0;
    MPI_Comm comm;
    OK(MPI_Comm_dup(comms[on].comm, &comm));
    OK(MPI_Allreduce(&step, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum == step * comms[on].size);
    OK(MPI_Comm_free(&comm));
}

static void add(int which, MPI_Comm comm) {
    comms[which].comm = comm;
    MPI_Group all, group;
    OK(MPI_Comm_rank(comm, &comms[which].rank));
    OK(MPI_Comm_size(comm, &comms[which].size));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Comm_group(comm, &group));
    for (int i = 0; i < comms[which].size; i++) OK(MPI_Group_translate_ranks(group, 1, &i, all, &comms[which].world[i]));
    OK(MPI_Group_free(&all));
    OK(MPI_Group_free(&group));
}
static void make(void) {
    MPI_Comm comm;
    CHECK(size_ <= RANKS);
    add(0, MPI_COMM_WORLD);
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -rank_, &comm));
    add(1, comm);
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank_ % 2, rank_, &comm));
    add(2, comm);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    add(3, comm);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    add(ANY, comm);
    OK(MPI_Op_create(composed, 0, &compose));
    OK(MPI_Type_contiguous(2, MPI_UINT32_T, &maps));
    OK(MPI_Type_commit(&maps));
}

/* Words that ranks count up beside all else. */
static MPI_Win window;
static word *counted, counts[RANKS];

static void count_up(void) {
    for (int i = draw(&own, 4); i > 0; i--) {
        int to = draw(&own, size_);
        word one = 1, before;
        OK(MPI_Fetch_and_op(&one, &before, MPI_UINT32_T, to, 0, MPI_SUM, window));
        OK(draw(&own, 2) ? MPI_Win_flush(to, window) : MPI_Win_flush_all(window));
        counts[to]++;
    }
}

static void act(int step) {
    int what = draw(&common, 16);
    if (what < 9) {
        struct work *w = collective(step);
        start(w, what < 5);
        if (what < 5) {
            finish(w, MPI_STATUS_IGNORE);
            forget(w);
        } else {
            works[under_way++] = w;
        }
    } else if (what < 13) messages(step);
    else if (what == 13) ring(step);
    else if (what == 14) passing(step);
}

static void mix(int seed, int steps) {
    common = (uint64_t)seed * 7919 + (uint64_t)size_;
    own = (uint64_t)seed * 104729 + (uint64_t)rank_;
    for (int step = 1, since = 0; step <= steps; step++) {
        pause_a_little();
        act(step);
        count_up();
        for (int i = draw(&own, 6); i > 0; i--) post();
        if (draw(&own, 2)) test_some();
        if (draw(&common, 12) == 0 || ++since == BETWEEN || step == steps) {
            settle();
            since = 0;
        }
    }
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    const char *set = getenv("TRANSOM_TEST_MIXTURES");
    int first = argc > 1 ? atoi(argv[1]) : 1, seeds = set ? atoi(set) : 1;
    make();
    OK(MPI_Win_allocate(sizeof *counted, sizeof *counted, MPI_INFO_NULL, MPI_COMM_WORLD, &counted, &window));
    *counted = 0;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Win_lock_all(0, window));
    for (int seed = first; seed < first + seeds; seed++) mix(seed, argc > 2 ? atoi(argv[2]) : 300);
    OK(MPI_Win_unlock_all(window));
    OK(MPI_Allreduce(MPI_IN_PLACE, counts, size_, MPI_UINT32_T, MPI_SUM, MPI_COMM_WORLD));
    CHECK(*counted == counts[rank_]);
    OK(MPI_Win_free(&window));
    return end();
}
