/* Packing in external32: sizes and values of the predefined datatypes (MPI-4.1 §5.3, §14.5.2). */
#include "check.h"

#include <complex.h>
#include <stdbool.h>
#include <wchar.h>

enum { N = 3, MOST = 32 * N };

/* The sizes of the standard's table, three times. */
static const struct {
    MPI_Datatype type;
    int bytes;
} sizes[] = {
    {MPI_PACKED, 1},           {MPI_BYTE, 1},
    {MPI_CHAR, 1},             {MPI_UNSIGNED_CHAR, 1},
    {MPI_SIGNED_CHAR, 1},      {MPI_WCHAR, 2},
    {MPI_SHORT, 2},            {MPI_UNSIGNED_SHORT, 2},
    {MPI_INT, 4},              {MPI_UNSIGNED, 4},
    {MPI_LONG, 4},             {MPI_UNSIGNED_LONG, 4},
    {MPI_LONG_LONG_INT, 8},    {MPI_UNSIGNED_LONG_LONG, 8},
    {MPI_FLOAT, 4},            {MPI_DOUBLE, 8},
    {MPI_LONG_DOUBLE, 16},     {MPI_C_BOOL, 1},
    {MPI_INT8_T, 1},           {MPI_INT16_T, 2},
    {MPI_INT32_T, 4},          {MPI_INT64_T, 8},
    {MPI_UINT8_T, 1},          {MPI_UINT16_T, 2},
    {MPI_UINT32_T, 4},         {MPI_UINT64_T, 8},
    {MPI_AINT, 8},             {MPI_COUNT, 8},
    {MPI_OFFSET, 8},           {MPI_C_FLOAT_COMPLEX, 8},
    {MPI_C_DOUBLE_COMPLEX, 16}, {MPI_C_LONG_DOUBLE_COMPLEX, 32},
    {MPI_CXX_BOOL, 1},         {MPI_CXX_FLOAT_COMPLEX, 8},
    {MPI_CXX_DOUBLE_COMPLEX, 16}, {MPI_CXX_LONG_DOUBLE_COMPLEX, 32},
    {MPI_CHARACTER, 1},        {MPI_LOGICAL, 4},
    {MPI_INTEGER, 4},          {MPI_REAL, 4},
    {MPI_DOUBLE_PRECISION, 8}, {MPI_COMPLEX, 8},
    {MPI_DOUBLE_COMPLEX, 16},  {MPI_INTEGER2, 2},
    {MPI_INTEGER8, 8},         {MPI_REAL4, 4},
    {MPI_REAL8, 8},            {MPI_COMPLEX16, 16},
    {MPI_LONG_INT, 8},         {MPI_LONG_DOUBLE_INT, 20},
};

static unsigned char packed[MOST], memory[MOST], back[MOST];

/* Packs N values of a type whose sizes are known. */
static void pack(MPI_Datatype type, const void *values, MPI_Aint bytes) {
    MPI_Aint size, at = 0;
    memset(packed, 0xee, sizeof packed);
    OK(MPI_Pack_external_size("external32", N, type, &size));
    CHECK(size == bytes);
    OK(MPI_Pack_external("external32", values, N, type, packed, sizeof packed, &at));
    CHECK(at == bytes);
}

/* There and back again. */
static void returns(MPI_Datatype type, const void *values, int bytes) {
    MPI_Aint at = 0;
    int size;
    OK(MPI_Type_size(type, &size));
    pack(type, values, N * bytes);
    memset(back, 0xee, sizeof back);
    OK(MPI_Unpack_external("external32", packed, N * bytes, &at, back, N, type));
    CHECK(at == N * bytes && memcmp(back, values, (size_t)(N * size)) == 0);
}

/* The first packed value, from its bytes. */
#define STARTS(...)                                                                                     \
    CHECK(memcmp(packed, (unsigned char[]){__VA_ARGS__}, sizeof((unsigned char[]){__VA_ARGS__})) == 0)

static void integers(void) {
    long longs[N] = {-2, 2147483647, -2147483647 - 1};
    unsigned long naturals[N] = {4294967295, 0, 1};
    long long longer[N] = {-2, 1LL << 40, 0};
    MPI_Aint at = 0;
    returns(MPI_LONG, longs, 4);
    STARTS(0xff, 0xff, 0xff, 0xfe, 0x7f, 0xff, 0xff, 0xff, 0x80, 0, 0, 0);
    returns(MPI_UNSIGNED_LONG, naturals, 4);
    STARTS(0xff, 0xff, 0xff, 0xff, 0);
    returns(MPI_LONG_LONG, longer, 8);
    STARTS(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe);
    returns(MPI_INT64_T, longer, 8);
    /* What has no room there is not cut. */
    longs[2] = 1L << 31;
    FAILS(MPI_Pack_external("external32", longs, N, MPI_LONG, packed, sizeof packed, &at), MPI_ERR_ARG);
    CHECK(at == 0 && packed[0] == 0xff && packed[7] == 0xfe);
    /* The same in a derived type, with another integer of 8 bytes. */
    struct {
        long number;
        int64_t other;
    } pairs[N] = {{-1, 1LL << 33}, {5, 6}, {7, 8}};
    int lengths[2] = {1, 1};
    MPI_Aint places[2] = {0, 8};
    MPI_Datatype types[2] = {MPI_LONG, MPI_INT64_T}, pair;
    OK(MPI_Type_create_struct(2, lengths, places, types, &pair));
    returns(pair, pairs, 12);
    STARTS(0xff, 0xff, 0xff, 0xff, 0, 0, 0, 2, 0, 0, 0, 0);
    OK(MPI_Type_free(&pair));
    struct {
        long value;
        int index;
    } places_of[N] = {{-3, 4}, {5, 6}, {7, 8}};
    pack(MPI_LONG_INT, places_of, 8 * N);
    STARTS(0xff, 0xff, 0xff, 0xfd, 0, 0, 0, 4);
}

static void others(void) {
    wchar_t letters[N] = {L'a', 0x20ac, 0xffff};
    returns(MPI_WCHAR, letters, 2);
    STARTS(0, 'a', 0x20, 0xac, 0xff, 0xff);
    bool truths[N] = {true, false, true};
    returns(MPI_C_BOOL, truths, 1);
    float complex complexes[N] = {1 + 2 * I, 0, 0};
    returns(MPI_C_FLOAT_COMPLEX, complexes, 8);
    STARTS(0x3f, 0x80, 0, 0, 0x40, 0, 0, 0);
    int32_t logicals[N] = {1, 0, 1};
    returns(MPI_LOGICAL, logicals, 4);
    STARTS(0, 0, 0, 1);
    MPI_Aint addresses[N] = {-1, 1, 1L << 40};
    returns(MPI_AINT, addresses, 8);
}

static void long_doubles(void) {
    /* The bits that the compiler has and external32 has not are padding: values are compared. */
    long double numbers[N] = {1, -2.5L, 1 / 3.0L}, read[N];
    long double complex complexes[N] = {1 - 2 * I, 0, I}, come[N];
    MPI_Aint at = 0;
    pack(MPI_LONG_DOUBLE, numbers, 16 * N);
    STARTS(0x3f, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xc0, 0, 0x40);
    OK(MPI_Unpack_external("external32", packed, sizeof packed, &at, read, N, MPI_LONG_DOUBLE));
    CHECK(at == 16 * N && read[0] == numbers[0] && read[1] == numbers[1] && read[2] == numbers[2]);
    at = 0;
    pack(MPI_C_LONG_DOUBLE_COMPLEX, complexes, 32 * N);
    STARTS(0x3f, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xc0, 0, 0, 0);
    OK(MPI_Unpack_external("external32", packed, sizeof packed, &at, come, N, MPI_C_LONG_DOUBLE_COMPLEX));
    CHECK(at == 32 * N && come[0] == complexes[0] && come[1] == 0 && come[2] == I);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    errors_return();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        pack(sizes[i].type, memory, N * sizes[i].bytes);
        MPI_Aint at = 0;
        memset(back, 0, sizeof back);
        OK(MPI_Unpack_external("external32", packed, sizeof packed, &at, back, N, sizes[i].type));
        CHECK(at == N * sizes[i].bytes && memcmp(back, memory, sizeof back) == 0);
    }
    integers();
    others();
    long_doubles();
    return end();
}
