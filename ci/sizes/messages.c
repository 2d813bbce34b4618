/* Messages from the root to the target: each way to send and to receive one, and types that are as long. */
#include "sizes.h"

enum { TAG = 3 };

static void check_status(MPI_Status *status) {
    MPI_Count count;
    MPI_Get_count_c(status, MPI_BYTE, &count);
    if (count != bytes) fail("received", (long long)count);
}

/* The target's side of all messages that the root sends by a call of its own. */
static void receive(byte *buffer) {
    MPI_Status status;
    MPI_Recv_c(buffer, bytes, MPI_BYTE, ROOT, TAG, world, &status);
    check_status(&status);
    check(buffer, 5);
}

#define SENT_BY(call)                                                                                   \
    byte *buffer = memory(bytes);                                                                       \
    if (rank == TARGET) receive(buffer);                                                                \
    if (rank != ROOT) return;                                                                           \
    set(buffer, 5);                                                                                     \
    MPI_Request request = MPI_REQUEST_NULL;                                                             \
    call;                                                                                               \
    MPI_Wait(&request, MPI_STATUS_IGNORE)

static void message(void) { SENT_BY(MPI_Send_c(buffer, bytes, MPI_BYTE, TARGET, TAG, world)); }
static void ssend(void) { SENT_BY(MPI_Ssend_c(buffer, bytes, MPI_BYTE, TARGET, TAG, world)); }
static void isend(void) { SENT_BY(MPI_Isend_c(buffer, bytes, MPI_BYTE, TARGET, TAG, world, &request)); }
static void issend(void) { SENT_BY(MPI_Issend_c(buffer, bytes, MPI_BYTE, TARGET, TAG, world, &request)); }
static void isendrecv_null(void) {
    SENT_BY(MPI_Isendrecv_c(buffer, bytes, MPI_BYTE, TARGET, TAG, NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, world, &request));
}

static void bsend(void) {
    MPI_Count room = bytes + MPI_BSEND_OVERHEAD;
    byte *copies = memory(room);
    void *detached;
    if (rank == ROOT) MPI_Buffer_attach_c(copies, room);
    byte *buffer = memory(bytes);
    if (rank == TARGET) receive(buffer);
    if (rank != ROOT) return;
    set(buffer, 5);
    MPI_Bsend_c(buffer, bytes, MPI_BYTE, TARGET, TAG, world);
    MPI_Buffer_detach_c(&detached, &room);
    if (detached != copies || room != bytes + MPI_BSEND_OVERHEAD) fail("detached a buffer of", (long long)room);
}

/* The receive is there before the message. */
static void rsend(void) {
    byte *buffer = memory(bytes);
    MPI_Request request;
    MPI_Status status;
    if (rank == TARGET) MPI_Irecv_c(buffer, bytes, MPI_BYTE, ROOT, TAG, world, &request);
    MPI_Barrier(world);
    if (rank == ROOT) {
        set(buffer, 5);
        MPI_Rsend_c(buffer, bytes, MPI_BYTE, TARGET, TAG, world);
    } else if (rank == TARGET) {
        MPI_Wait(&request, &status);
        check_status(&status);
        check(buffer, 5);
    }
}

static void mrecv(void) {
    byte *buffer = memory(bytes);
    if (rank == ROOT) {
        set(buffer, 5);
        MPI_Send_c(buffer, bytes, MPI_BYTE, TARGET, TAG, world);
    } else if (rank == TARGET) {
        MPI_Message found;
        MPI_Status status;
        MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, world, &found, &status);
        check_status(&status);
        MPI_Mrecv_c(buffer, bytes, MPI_BYTE, &found, &status);
        check_status(&status);
        check(buffer, 5);
    }
}

/* Both ways; without replacing, the target's own message is short: memory is for two buffers. */
static void exchange(int replace) {
    byte *buffer = memory(bytes);
    int peer = rank == ROOT ? TARGET : ROOT;
    MPI_Status status;
    if (rank > TARGET) return;
    if (replace || rank == ROOT) set(buffer, 5 + rank);
    if (replace) {
        MPI_Sendrecv_replace_c(buffer, bytes, MPI_BYTE, peer, TAG, peer, TAG, world, &status);
    } else {
        byte other = 99;
        byte *to = rank == ROOT ? &other : buffer;
        const byte *from = rank == ROOT ? buffer : &other;
        MPI_Count sent = rank == ROOT ? bytes : 1, received = rank == ROOT ? 1 : bytes;
        MPI_Sendrecv_c(from, sent, MPI_BYTE, peer, TAG, to, received, MPI_BYTE, peer, TAG, world, &status);
        if (other != 99) fail("a short message holds", other);
    }
    if (!replace && rank == ROOT) return;
    check_status(&status);
    check(buffer, 5 + peer);
}

static void sendrecv(void) { exchange(0); }
static void sendrecv_replace(void) { exchange(1); }

static void persistent_message(void) {
    byte *buffer = memory(bytes);
    MPI_Request request;
    MPI_Status status;
    if (rank == ROOT) set(buffer, 5);
    if (rank == ROOT) MPI_Send_init_c(buffer, bytes, MPI_BYTE, TARGET, TAG, world, &request);
    else if (rank == TARGET) MPI_Recv_init_c(buffer, bytes, MPI_BYTE, ROOT, TAG, world, &request);
    else return;
    MPI_Start(&request);
    MPI_Wait(&request, &status);
    if (rank == TARGET) check_status(&status);
    check(buffer, 5);
    MPI_Request_free(&request);
}

/* Three parts, which get ready from the last to the first. The last bytes, if they are no whole part, are not sent. */
static void partitioned_message(void) {
    enum { PARTS = 3 };
    bytes = bytes / PARTS * PARTS;
    byte *buffer = memory(bytes);
    MPI_Request request;
    if (rank == ROOT) MPI_Psend_init(buffer, PARTS, bytes / PARTS, MPI_BYTE, TARGET, TAG, world, MPI_INFO_NULL, &request);
    else if (rank == TARGET) MPI_Precv_init(buffer, PARTS, bytes / PARTS, MPI_BYTE, ROOT, TAG, world, MPI_INFO_NULL, &request);
    else return;
    MPI_Start(&request);
    if (rank == ROOT) set(buffer, 5);
    for (int part = PARTS; rank == ROOT && part-- > 0;) MPI_Pready(part, request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check(buffer, 5);
    MPI_Request_free(&request);
}

/* One instance of a type of that size, by functions whose counts are ints. */
static void send_one(byte *buffer, MPI_Datatype type) {
    MPI_Status status;
    MPI_Count elements;
    MPI_Type_commit(&type);
    if (rank == ROOT) MPI_Send(buffer, 1, type, TARGET, TAG, world);
    if (rank == TARGET) {
        MPI_Recv(buffer, 1, type, ROOT, TAG, world, &status);
        MPI_Get_elements_c(&status, type, &elements);
        if (elements != bytes) fail("elements:", (long long)elements);
    }
    MPI_Type_free(&type);
}

static void message_of_type(void) {
    byte *buffer = memory(bytes);
    MPI_Datatype type;
    MPI_Type_contiguous_c(bytes, MPI_BYTE, &type);
    if (rank == ROOT) set(buffer, 5);
    send_one(buffer, type);
    if (rank <= TARGET) check(buffer, 5);
}

/* All bytes but one in their midst, which is nobody's: what is sent lies in two pieces. */
static MPI_Datatype with_hole(MPI_Count before) {
    MPI_Count lengths[] = {before, bytes - before}, places[] = {0, before + 1};
    MPI_Datatype type;
    MPI_Type_create_hindexed_c(2, lengths, places, MPI_BYTE, &type);
    return type;
}

/* The marks of a buffer with a hole, which is made from one without. */
static byte *open_hole(MPI_Count before) {
    byte *buffer = memory(bytes + 1);
    set(buffer, 5);
    memmove(buffer + before + 1, buffer + before, (size_t)(bytes - before));
    buffer[before] = 99;
    return buffer;
}

static void close_hole(byte *buffer, MPI_Count before) {
    if (buffer[before] != 99) fail("between the pieces is", buffer[before]);
    memmove(buffer + before, buffer + before + 1, (size_t)(bytes - before));
    check(buffer, 5);
}

static void message_of_pieces(void) {
    MPI_Count before = bytes / 2;
    byte *buffer = rank == ROOT ? open_hole(before) : memory(bytes + 1);
    buffer[before] = 99;
    send_one(buffer, with_hole(before));
    if (rank == TARGET) close_hole(buffer, before);
}

/* Packed and unpacked by one rank: its own copy is as long. */
static void pack_as(const char *external) {
    if (rank != ROOT) return;
    MPI_Count before = bytes / 2, length, position = 0;
    byte *buffer = open_hole(before);
    MPI_Datatype type = with_hole(before);
    MPI_Type_commit(&type);
    if (external) MPI_Pack_external_size_c(external, 1, type, &length);
    else MPI_Pack_size_c(1, type, world, &length);
    if (length < bytes) fail("packed size", (long long)length);
    byte *packed = memory(length);
    if (external) MPI_Pack_external_c(external, buffer, 1, type, packed, length, &position);
    else MPI_Pack_c(buffer, 1, type, packed, length, &position, world);
    if (position != bytes) fail("packed to", (long long)position);
    check(packed, 5);
    memset(buffer, 0, 2);
    memset(buffer + bytes - 2, 0, 3);
    position = 0;
    if (external) MPI_Unpack_external_c(external, packed, length, &position, buffer, 1, type);
    else MPI_Unpack_c(packed, length, &position, buffer, 1, type, world);
    if (position != bytes) fail("unpacked to", (long long)position);
    close_hole(buffer, before);
    MPI_Type_free(&type);
}

static void pack(void) { pack_as(NULL); }
static void pack_external(void) { pack_as("external32"); }

static void reduce_local(void) {
    if (rank != ROOT) return;
    byte *from = memory(bytes), *to = memory(bytes);
    set(from, 20);
    set(to, 10);
    MPI_Reduce_local_c(from, to, bytes, MPI_UINT8_T, MPI_MAX);
    check(to, 20);
}

const struct operation messages[] = {
    {"message", message},
    {"ssend", ssend},
    {"isend", isend},
    {"issend", issend},
    {"isendrecv", isendrecv_null},
    {"bsend", bsend},
    {"rsend", rsend},
    {"mrecv", mrecv},
    {"sendrecv", sendrecv},
    {"sendrecv_replace", sendrecv_replace},
    {"persistent_message", persistent_message},
    {"partitioned_message", partitioned_message},
    {"message_of_type", message_of_type},
    {"message_of_pieces", message_of_pieces},
    {"pack", pack},
    {"pack_external", pack_external},
    {"reduce_local", reduce_local},
    {NULL, NULL},
};
