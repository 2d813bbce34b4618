#!/bin/sh
# Lays libmpi_abi.so.1, mpi.h, pkg-config's file and the wrappers out as C programs' build systems expect them:
# install.sh [PROFILE [PREFIX]], after `cargo build`. By default release, into target/release, where `transom` is.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
target=${CARGO_TARGET_DIR:-$here/../../target}
profile=${1:-release}
built=$(cd "$target/$profile" && pwd)
prefix=${2:-$built}

mkdir -p "$prefix/bin" "$prefix/lib/pkgconfig" "$prefix/include"
prefix=$(cd "$prefix" && pwd)
if [ "$prefix" = "$built" ]; then
    ln -sf ../libmpi_abi.so "$prefix/lib/libmpi_abi.so.1"
    ln -sf ../transom "$prefix/bin/transom"
else
    cp -f "$built/libmpi_abi.so" "$prefix/lib/libmpi_abi.so.1"
    cp -f "$built/transom" "$prefix/bin/transom"
fi
ln -sf libmpi_abi.so.1 "$prefix/lib/libmpi_abi.so"
cp -f "$here/include/mpi.h" "$prefix/include/mpi.h"
cp -f "$here"/wrappers/mpicc "$here"/wrappers/mpiexec "$prefix/bin/"
ln -sf mpicc "$prefix/bin/mpicxx"
ln -sf mpicc "$prefix/bin/mpic++"
ln -sf mpiexec "$prefix/bin/mpirun"
for name in mpi mpi_abi; do
    sed "s|@prefix@|$prefix|" "$here/wrappers/mpi.pc" > "$prefix/lib/pkgconfig/$name.pc"
done
echo "mpicc, mpicxx, mpiexec: $prefix/bin"
