/* Datatypes: constructors, what they say of themselves, packing (MPI-4.1 chapter 5). */
#include "check.h"

struct mixed {
    char c;
    double d[2];
    int i;
};

static void sizes(MPI_Datatype type, int size, MPI_Aint lb, MPI_Aint extent) {
    int s;
    MPI_Aint l, e;
    MPI_Count sc;
    OK(MPI_Type_size(type, &s));
    OK(MPI_Type_size_c(type, &sc));
    OK(MPI_Type_get_extent(type, &l, &e));
    CHECK(s == size && sc == size && l == lb && e == extent);
}

static void envelope(MPI_Datatype type, int combiner, int ints, int addresses, int types) {
    int ni, na, nt, c;
    OK(MPI_Type_get_envelope(type, &ni, &na, &nt, &c));
    CHECK(c == combiner && ni == ints && na == addresses && nt == types);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    errors_return();
    MPI_Datatype t, u, v;
    int lengths[3] = {1, 2, 1}, places[2] = {3, 0}, i;
    char name[MPI_MAX_OBJECT_NAME];

    sizes(MPI_LONG_DOUBLE, 16, 0, 16);
    sizes(MPI_SHORT_INT, 6, 0, 8);
    sizes(MPI_DOUBLE_INT, 12, 0, 16);
    envelope(MPI_INT, MPI_COMBINER_NAMED, 0, 0, 0);
    OK(MPI_Type_get_name(MPI_DOUBLE, name, &i));
    CHECK(strcmp(name, "MPI_DOUBLE") == 0);

    OK(MPI_Type_contiguous(3, MPI_INT, &t));
    sizes(t, 12, 0, 12);
    envelope(t, MPI_COMBINER_CONTIGUOUS, 1, 0, 1);
    OK(MPI_Type_vector(2, 2, -3, t, &u));
    sizes(u, 48, -36, 60);
    int ints[3];
    MPI_Aint addresses[3];
    OK(MPI_Type_get_contents(u, 3, 0, 1, ints, addresses, &v));
    CHECK(ints[0] == 2 && ints[1] == 2 && ints[2] == -3 && v != MPI_DATATYPE_NULL);
    sizes(v, 12, 0, 12);
    OK(MPI_Type_free(&v));
    OK(MPI_Type_free(&u));
    OK(MPI_Type_free(&t));

    OK(MPI_Type_create_hvector(3, 1, 10, MPI_SHORT, &t));
    sizes(t, 6, 0, 22);
    envelope(t, MPI_COMBINER_HVECTOR, 2, 1, 1);
    OK(MPI_Type_create_resized(t, -2, 32, &u));
    sizes(u, 6, -2, 32);
    OK(MPI_Type_get_true_extent(u, &addresses[0], &addresses[1]));
    CHECK(addresses[0] == 0 && addresses[1] == 22);
    OK(MPI_Type_dup(u, &v));
    sizes(v, 6, -2, 32);
    envelope(v, MPI_COMBINER_DUP, 0, 0, 1);
    OK(MPI_Type_free(&v));
    OK(MPI_Type_free(&u));
    OK(MPI_Type_free(&t));

    OK(MPI_Type_indexed(2, lengths, places, MPI_INT, &t));
    sizes(t, 12, 0, 16);
    OK(MPI_Type_commit(&t));
    int from[4] = {1, 2, 3, 4}, to[4] = {0}, position = 0, room;
    char packed[64];
    OK(MPI_Pack_size(1, t, MPI_COMM_WORLD, &room));
    CHECK(room == 12);
    OK(MPI_Pack(from, 1, t, packed, sizeof packed, &position, MPI_COMM_WORLD));
    CHECK(position == 12 && ((int *)packed)[0] == 4 && ((int *)packed)[1] == 1);
    position = 0;
    OK(MPI_Unpack(packed, 12, &position, to, 3, MPI_INT, MPI_COMM_WORLD));
    CHECK(to[0] == 4 && to[1] == 1 && to[2] == 2);
    OK(MPI_Type_free(&t));
    OK(MPI_Type_create_indexed_block(2, 2, places, MPI_INT, &t));
    sizes(t, 16, 0, 20);
    OK(MPI_Type_free(&t));
    MPI_Aint bytes[3] = {0, 8, 24};
    OK(MPI_Type_create_hindexed(2, lengths, bytes, MPI_INT, &t));
    sizes(t, 12, 0, 16);
    OK(MPI_Type_free(&t));

    MPI_Datatype types[3] = {MPI_CHAR, MPI_DOUBLE, MPI_INT};
    OK(MPI_Type_create_struct(3, lengths, bytes, types, &t));
    sizes(t, 21, 0, sizeof(struct mixed));
    envelope(t, MPI_COMBINER_STRUCT, 4, 3, 3);
    OK(MPI_Type_commit(&t));
    struct mixed a[2] = {{'a', {1, 2}, 3}, {'b', {4, 5}, 6}}, b[2];
    memset(b, 0, sizeof b);
    OK(MPI_Sendrecv(a, 2, t, rank_, 1, b, 2, t, rank_, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(b[1].c == 'b' && b[0].d[1] == 2 && b[1].i == 6);

    /* Absolute addresses. */
    OK(MPI_Get_address(&a[0].i, &bytes[0]));
    OK(MPI_Get_address(&a[1].i, &bytes[1]));
    OK(MPI_Type_create_hindexed_block(2, 1, bytes, MPI_INT, &u));
    OK(MPI_Type_commit(&u));
    to[0] = to[1] = 0;
    OK(MPI_Sendrecv(MPI_BOTTOM, 1, u, rank_, 1, to, 2, MPI_INT, rank_, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(to[0] == 3 && to[1] == 6);
    OK(MPI_Type_free(&u));
    OK(MPI_Type_free(&t));

    int whole[2] = {4, 5}, part[2] = {2, 3}, start[2] = {1, 1};
    OK(MPI_Type_create_subarray(2, whole, part, start, MPI_ORDER_C, MPI_INT, &t));
    sizes(t, 24, 0, 80);
    envelope(t, MPI_COMBINER_SUBARRAY, 8, 0, 1);
    FAILS(MPI_Send(from, 1, t, rank_, 0, MPI_COMM_WORLD), MPI_ERR_TYPE); /* not committed */
    OK(MPI_Type_free(&t));
    int grid[1] = {2}, kind[1] = {MPI_DISTRIBUTE_CYCLIC}, block[1] = {MPI_DISTRIBUTE_DFLT_DARG};
    OK(MPI_Type_create_darray(2, 1, 1, whole, kind, block, grid, MPI_ORDER_C, MPI_INT, &t));
    sizes(t, 8, 0, 16);
    OK(MPI_Type_free(&t));

    OK(MPI_Type_create_f90_integer(9, &t));
    OK(MPI_Type_create_f90_integer(9, &u));
    CHECK(t == u);
    sizes(t, 4, 0, 4);
    OK(MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &t));
    sizes(t, 8, 0, 8);
    MPI_Aint size, at = 0;
    OK(MPI_Pack_external_size("external32", 2, MPI_INT, &size));
    CHECK(size == 8);
    OK(MPI_Pack_external("external32", from, 2, MPI_INT, packed, sizeof packed, &at));
    CHECK(at == 8 && packed[3] == 1 && packed[7] == 2 && packed[0] == 0);
    at = 0;
    OK(MPI_Unpack_external("external32", packed, 8, &at, to, 2, MPI_INT));
    CHECK(to[0] == 1 && to[1] == 2);

    FAILS(MPI_Type_contiguous(-1, MPI_INT, &t), MPI_ERR_COUNT);
    FAILS(MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &t), MPI_ERR_TYPE);
    t = MPI_INT;
    FAILS(MPI_Type_free(&t), MPI_ERR_TYPE);
    return end();
}
