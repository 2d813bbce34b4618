/* Calls of windows by the root, of the target's memory. */
#include "sizes.h"

/* Those that fetch read marks of the target, others bring some. */
enum access { PUT, GET, ACCUMULATE, GET_ACCUMULATE };

static void call(enum access access, byte *buffer, MPI_Count count, MPI_Datatype type, MPI_Aint place, MPI_Win win) {
    if (access == PUT) MPI_Put_c(buffer, count, type, TARGET, place, count, type, win);
    if (access == GET) MPI_Get_c(buffer, count, type, TARGET, place, count, type, win);
    if (access == ACCUMULATE) MPI_Accumulate_c(buffer, count, type, TARGET, place, count, type, MPI_SUM, win);
    if (access == GET_ACCUMULATE)
        MPI_Get_accumulate_c(NULL, 0, type, buffer, count, type, TARGET, place, count, type, MPI_NO_OP, win);
}

static void call_with_request(enum access access, byte *buffer, MPI_Win win) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Datatype type = MPI_UINT8_T;
    if (access == PUT) MPI_Rput_c(buffer, bytes, type, TARGET, 0, bytes, type, win, &request);
    if (access == GET) MPI_Rget_c(buffer, bytes, type, TARGET, 0, bytes, type, win, &request);
    if (access == ACCUMULATE) MPI_Raccumulate_c(buffer, bytes, type, TARGET, 0, bytes, type, MPI_SUM, win, &request);
    if (access == GET_ACCUMULATE)
        MPI_Rget_accumulate_c(NULL, 0, type, buffer, bytes, type, TARGET, 0, bytes, type, MPI_NO_OP, win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* How the target's memory comes into a window, and how the call is made. */
enum how { ALLOCATED, CREATED, SHARED, DYNAMIC, BY_REQUEST, BY_TYPE };

/* The target alone has memory. */
static MPI_Win open_window(enum how how, MPI_Count length, byte **exposed, MPI_Aint *place) {
    MPI_Count own = rank == TARGET ? length : 8;
    MPI_Win win;
    *place = 0;
    *exposed = how == CREATED || how == DYNAMIC ? memory(own) : NULL;
    if (how == CREATED) {
        MPI_Win_create_c(*exposed, own, 1, MPI_INFO_NULL, world, &win);
    } else if (how == DYNAMIC) {
        MPI_Win_create_dynamic(MPI_INFO_NULL, world, &win);
        if (rank == TARGET) MPI_Win_attach(win, *exposed, (MPI_Aint)own);
        MPI_Get_address(*exposed, place);
        MPI_Bcast(place, 1, MPI_AINT, TARGET, world);
    } else if (how == SHARED) {
        MPI_Win_allocate_shared_c(own, 1, MPI_INFO_NULL, world, exposed, &win);
    } else {
        MPI_Win_allocate_c(own, 1, MPI_INFO_NULL, world, exposed, &win);
    }
    return win;
}

static void access_window(enum access access, enum how how) {
    byte *buffer = memory(bytes), *exposed;
    int fetches = access == GET || access == GET_ACCUMULATE;
    MPI_Aint place;
    MPI_Win win = open_window(how, bytes, &exposed, &place);
    if (fetches && rank == TARGET) set(exposed, 7);
    if (!fetches && rank == ROOT) set(buffer, 7);
    MPI_Barrier(world);
    MPI_Win_lock_all(0, win);
    if (rank == TARGET) MPI_Win_sync(win);
    MPI_Barrier(world);
    if (rank == ROOT && how == BY_REQUEST) {
        call_with_request(access, buffer, win);
    } else if (rank == ROOT && how == BY_TYPE) {
        MPI_Datatype type;
        MPI_Count lengths[] = {bytes / 2, bytes - bytes / 2}, places[] = {0, bytes / 2};
        MPI_Type_indexed_c(2, lengths, places, MPI_UINT8_T, &type);
        MPI_Type_commit(&type);
        call(access, buffer, 1, type, place, win);
        MPI_Win_flush(TARGET, win);
        MPI_Type_free(&type);
    } else if (rank == ROOT) {
        call(access, buffer, bytes, MPI_UINT8_T, place, win);
    }
    MPI_Win_unlock_all(win);
    if (fetches && rank == ROOT) check(buffer, 7);
    MPI_Barrier(world);
    if (!fetches && rank == TARGET) check(exposed, 7);
    MPI_Win_free(&win);
}

#define ACCESSES(name, how)                                                                             \
    static void put##name(void) { access_window(PUT, how); }                                            \
    static void get##name(void) { access_window(GET, how); }                                            \
    static void accumulate##name(void) { access_window(ACCUMULATE, how); }                              \
    static void get_accumulate##name(void) { access_window(GET_ACCUMULATE, how); }
ACCESSES(, ALLOCATED)
ACCESSES(_created, CREATED)
ACCESSES(_shared, SHARED)
ACCESSES(_dynamic, DYNAMIC)
ACCESSES(_by_request, BY_REQUEST)
ACCESSES(_by_type, BY_TYPE)

/* Pieces of one byte each, as far apart as they can be. */
static void put_strided(void) {
    MPI_Count pieces = 1 << 20, stride = bytes / pieces;
    byte *buffer = memory(pieces), *exposed;
    MPI_Aint place;
    MPI_Win win = open_window(ALLOCATED, bytes, &exposed, &place);
    MPI_Datatype type;
    MPI_Type_vector_c(pieces, 1, stride, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    for (MPI_Count i = 0; i < pieces; i++) buffer[i] = (byte)(i % 251 + 1);
    MPI_Win_fence(0, win);
    if (rank == ROOT) MPI_Put_c(buffer, pieces, MPI_BYTE, TARGET, 0, 1, type, win);
    MPI_Win_fence(0, win);
    for (MPI_Count i = 0; rank == TARGET && i < pieces; i++)
        if (exposed[i * stride] != (byte)(i % 251 + 1)) fail("wrong at byte", (long long)(i * stride));
    MPI_Type_free(&type);
    MPI_Win_free(&win);
}

/* Operations on one element, each at a place that 32 bits do not name. */
static void far_elements(void) {
    enum { ELEMENT = 8 };
    MPI_Count length = bytes / ELEMENT * ELEMENT + 3 * ELEMENT;
    MPI_Aint place, last = (MPI_Aint)length - 3 * ELEMENT;
    byte *exposed;
    MPI_Win win = open_window(ALLOCATED, length, &exposed, &place);
    long long one = 1, two = 2, three = 3, zero = 0, found = -1;
    MPI_Win_lock_all(0, win);
    for (int time = 0; rank == ROOT && time < 2; time++) {
        MPI_Fetch_and_op(&two, &found, MPI_INT64_T, TARGET, last, MPI_SUM, win);
        MPI_Win_flush(TARGET, win);
        if (found != 2 * time) fail("fetched", found);
        MPI_Compare_and_swap(&three, time ? &three : &zero, &found, MPI_INT64_T, TARGET, last + ELEMENT, win);
        MPI_Win_flush(TARGET, win);
        if (found != 3 * time) fail("compared with", found);
        MPI_Accumulate(&one, 1, MPI_INT64_T, TARGET, last + 2 * ELEMENT, 1, MPI_INT64_T, MPI_SUM, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(world);
    long long expected[] = {4, 3, 2};
    if (rank == TARGET && memcmp(exposed + last, expected, sizeof expected) != 0) fail("wrong at byte", (long long)last);
    MPI_Win_free(&win);
}

#define OF(name) {"put" #name, put##name}, {"get" #name, get##name}, {"accumulate" #name, accumulate##name}, {"get_accumulate" #name, get_accumulate##name}
const struct operation windows[] = {
    OF(), OF(_created), OF(_shared), OF(_dynamic), OF(_by_request), OF(_by_type), {"put_strided", put_strided}, {"far_elements", far_elements}, {NULL, NULL},
};
