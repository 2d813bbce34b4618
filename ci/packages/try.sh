#!/bin/bash
# try.sh README FORTRAN: the README's lines of C, Fortran, OpenSHMEM and Python, and a program with mpif.h, with the `transom`, `mpicc`, `mpifort`,
# `oshcc` and `python3` that are on the PATH, in an empty folder.
set -euo pipefail
readme=$(readlink -f "$1") fortran=$(readlink -f "$2")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

failed() { echo "FAILED: $*" >&2; exit 1; }

# The README's program in a language, and the line that compiles and runs it: each of four ranks draws another ticket.
tickets() { # language begin end
    sed -n "/^cat > $2/,/^$3/p" "$readme" >lines.sh
    timeout 100 bash -euo pipefail lines.sh >out
    diff <(seq 0 3) <(sed -n 's/^[a-zA-Z]* [0-3] drew ticket //p' out | sort) || failed "the README's lines of $1"
    diff <(seq 0 3) <(sed -n 's/^[a-zA-Z]* \([0-3]\) drew ticket .*/\1/p' out | sort) || failed "the README's lines of $1: ranks"
}
tickets C 'ticket\.c' mpicc
./ticket | grep -qx "rank 0 drew ticket 0" || failed "a program of C, alone"
echo "ok: C"
if command -v pkg-config >/dev/null; then
    options=$(PKG_CONFIG_PATH=$(mpicc -showme:libdirs)/pkgconfig pkg-config --cflags --libs mpi)
    # shellcheck disable=SC2086
    cc -o by-pkg-config ticket.c $options
    ./by-pkg-config | grep -qx "rank 0 drew ticket 0" || failed "a program of C, by pkg-config"
    echo "ok: pkg-config"
fi

tickets OpenSHMEM 'counter\.c' oshcc
./counter | grep -qx "PE 0 drew ticket 0" || failed "a program of OpenSHMEM, alone"
# By each name of the library and of pkg-config's file, and in C++.
oshmem=$(oshcc -showme:libdirs)
for name in sma shmem oshmem; do
    cc -o named counter.c "$(oshcc -showme:compile)" -L"$oshmem" -l$name -Wl,-rpath,"$oshmem"
    timeout 100 oshrun -np 2 ./named >out || failed "a program linked by -l$name"
done
cat >both.cpp <<'END'
#include <mpi.h>
#include <shmem.h>
#include <shmemx.h>
#include <cstdio>

static long sum;

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    shmem_init();
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    shmem_atomic_add(&sum, rank + 1L, 0);
    shmem_quiet();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) std::printf("%ld\n", sum);
    shmem_finalize();
    return MPI_Finalize();
}
END
if command -v c++ >/dev/null; then
    oshcxx -o both both.cpp -lmpi_abi
    timeout 100 oshrun -np 3 ./both >out
    [ "$(cat out)" = 6 ] || failed "OpenSHMEM and MPI in one program of C++"
fi
if command -v pkg-config >/dev/null; then
    for name in shmem sma openshmem; do
        options=$(PKG_CONFIG_PATH=$oshmem/pkgconfig pkg-config --cflags --libs $name)
        # shellcheck disable=SC2086
        cc -o by-pkg-config counter.c $options
        ./by-pkg-config | grep -qx "PE 0 drew ticket 0" || failed "a program of OpenSHMEM, by pkg-config's $name"
    done
fi
echo "ok: OpenSHMEM"

timeout 100 transom bench --quick put-latency >out || failed "the microbenchmarks"
grep -q put-latency out || failed "the microbenchmarks' table"
echo "ok: bench"

if command -v gfortran >/dev/null; then
    mpifort -w -fallow-argument-mismatch -o fortran "$fortran"
    timeout 100 transom run -n 3 ./fortran >/dev/null || failed "a program of Fortran"
    timeout 100 ./fortran >/dev/null || failed "a program of Fortran, alone"
    tickets Fortran 'ticket\.f90' mpifort
    echo "ok: Fortran"
else
    [ -z "${CI:-}" ] || failed "CI must have gfortran"
    echo "skipped: Fortran (there is no gfortran)"
fi

if ! python3 -c 'import mpi4py' 2>/dev/null; then
    [ -z "${CI:-}" ] || failed "CI must have mpi4py"
    echo "skipped: Python (there is no mpi4py)"
    exit
fi
cat >script.py <<'END'
import ctypes
from mpi4py import MPI

world = MPI.COMM_WORLD
window = MPI.Win.Allocate(8, 8, comm=world)
counter, one = bytearray(8), (1).to_bytes(8, "little")
window.Lock(0)
window.Fetch_and_op([bytearray(one), MPI.INT64_T], [counter, MPI.INT64_T], 0)
window.Unlock(0)
window.Free()
for name in "libmpi", "libmpich", "libmpifort", "libmpichfort":
    ctypes.CDLL(name + ".so.12").MPI_Get_version
assert MPI.Get_library_version().startswith("Transom"), MPI.Get_library_version()
print(f"{world.size} ranks, ticket {int.from_bytes(counter, 'little')}")
END
timeout 100 transom run -n 4 python3 script.py | sort >python.out
diff <(seq 0 3 | sed 's/.*/4 ranks, ticket &/') python.out || failed "a script of Python"
echo "ok: Python"
