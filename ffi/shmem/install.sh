#!/bin/sh
# Lays libsma.so.1, shmem.h, pkg-config's file and the wrappers out as build systems of OpenSHMEM programs expect them:
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

mkdir -p "$prefix/bin" "$prefix/lib/pkgconfig" "$prefix/include/mpp"
prefix=$(cd "$prefix" && pwd)
if [ "$prefix" = "$built" ]; then
    ln -sf ../libsma.so "$prefix/lib/libsma.so.1"
    ln -sf ../transom "$prefix/bin/transom"
else
    replace "$built/libsma.so" "$prefix/lib/libsma.so.1"
    replace "$built/transom" "$prefix/bin/transom"
fi
# The names that programs are linked by; all lead to the one that they find at run time.
for name in libsma libshmem liboshmem; do
    ln -sf libsma.so.1 "$prefix/lib/$name.so"
done
for name in shmem.h shmemx.h pshmem.h mpp/shmem.h mpp/shmemx.h; do
    cp -f "$here/include/$name" "$prefix/include/$name"
done
cp -f "$here/wrappers/oshcc" "$here/wrappers/oshrun" "$prefix/bin/"
ln -sf oshcc "$prefix/bin/oshcxx"
ln -sf oshcc "$prefix/bin/oshc++"
ln -sf oshcc "$prefix/bin/oshCC"
for name in shmem sma openshmem; do
    cp -f "$here/wrappers/shmem.pc" "$prefix/lib/pkgconfig/$name.pc"
done
echo "oshcc, oshcxx, oshrun: $prefix/bin"
