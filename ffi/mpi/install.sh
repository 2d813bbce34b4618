#!/bin/sh
# Lays libmpi_abi.so.1, mpi.h, pkg-config's file and the wrappers out as C programs' build systems expect them, and below
# lib/mpich-abi, by all its names, the library for programs that were built for MPICH or what has its ABI. Fortran's modules are compiled
# by gfortran, or what MPI_FC names, if there is one:
# install.sh [PROFILE [PREFIX]], after `cargo build`. By default release, into target/release, where `transom` is.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
target=${CARGO_TARGET_DIR:-$here/../../target}
profile=${1:-release}
built=$(cd "$target/$profile" && pwd)
prefix=${2:-$built}

# A file under a new name that takes the old one's place: jobs that run go on with what they have mapped.
replace() { # file place
    cp -f "$1" "$2.new" && mv -f "$2.new" "$2"
}

mkdir -p "$prefix/bin" "$prefix/lib/pkgconfig" "$prefix/lib/fortran" "$prefix/include"
prefix=$(cd "$prefix" && pwd)
if [ "$prefix" = "$built" ]; then
    ln -sf ../libmpi_abi.so "$prefix/lib/libmpi_abi.so.1"
    ln -sf ../transom "$prefix/bin/transom"
else
    replace "$built/libmpi_abi.so" "$prefix/lib/libmpi_abi.so.1"
    replace "$built/transom" "$prefix/bin/transom"
fi
ln -sf libmpi_abi.so.1 "$prefix/lib/libmpi_abi.so"
mpich=$prefix/lib/mpich-abi
mkdir -p "$mpich"
if [ "$prefix" = "$built" ]; then
    ln -sf ../../libmpich.so "$mpich/libmpi.so.12"
else
    replace "$built/libmpich.so" "$mpich/libmpi.so.12"
fi
# The name that linkers want; CMake takes no other for a library.
ln -sf libmpi.so.12 "$mpich/libmpi.so"
# Fortran's functions are in the same library.
for name in libmpich libmpifort libmpichfort; do
    ln -sf libmpi.so.12 "$mpich/$name.so.12"
done
cp -f "$here/include/mpi.h" "$here/include/mpi-ext.h" "$prefix/include/"
cp -f "$here/../mpich/include/mpif.h" "$prefix/include/mpif.h"
rm -rf "$prefix"/lib/fortran/*/
cp -f "$built"/fortran/*.f90 "$prefix/lib/fortran/"
cp -f "$here"/wrappers/mpicc "$here"/wrappers/mpifort "$here"/wrappers/mpiexec "$prefix/bin/"
ln -sf mpifort "$prefix/bin/mpif77"
ln -sf mpifort "$prefix/bin/mpif90"
ln -sf mpicc "$prefix/bin/mpicxx"
ln -sf mpicc "$prefix/bin/mpic++"
ln -sf mpiexec "$prefix/bin/mpirun"
for name in mpi mpi_abi; do
    cp -f "$here/wrappers/mpi.pc" "$prefix/lib/pkgconfig/$name.pc"
done
if "$prefix/bin/mpifort" -modules; then
    echo "modules mpi and mpi_f08, by ${MPI_FC:-gfortran}: $prefix/lib/fortran"
else
    echo "no modules mpi and mpi_f08: mpifort compiles them when there is a compiler"
fi
echo "mpicc, mpicxx, mpifort, mpiexec: $prefix/bin"
