#!/bin/bash
# sizes.sh [DIR [OPERATION…]]: operations on more than 4 GiB, where numbers of 32 bits end, by two ranks over each transport. Without
# names all that `sizes names` prints, which takes half an hour and 20 GiB of memory; where equal blocks of all ranks come together
# each has 2.25 GiB, so that they are more than 4 GiB together. DIR holds a release build. TRANSPORTS: "shm tcp" by default.
# BYTES: of the long block, 4 GiB + 1 by default. What fails is said at the end; the others run nevertheless.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$(cd "${1:-target/release}" && pwd)
shift || true
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
needed=20
available=$(awk '/^MemAvailable/ { print int($2 / 1024 / 1024) }' /proc/meminfo)
if [ "$available" -lt $needed ]; then
    echo "skipped: ci/sizes.sh (needs $needed GiB of memory, $available are available)"
    exit 0
fi
CARGO_TARGET_DIR=$(dirname "$bin") ffi/mpi/install.sh "$(basename "$bin")" "$out/mpi" >/dev/null
"$out/mpi/bin/mpicc" -O2 -Wall -Werror -o "$out/sizes" ci/sizes/*.c
if [ $# -eq 0 ]; then
    mapfile -t names < <(LD_LIBRARY_PATH=$out/mpi/lib "$out/sizes" names)
    set -- "${names[@]}"
fi
bytes=${BYTES:-$(((4 << 30) + 1))}
failed=
for transport in ${TRANSPORTS:-shm tcp}; do
    for operation; do
        length=$bytes
        case ${operation%_init} in
        *neighbor* | *reduce_scatter) ;;
        *gather | *scatter | *alltoall | *reduce_scatter_block) length=$(((9 << 28) + 1)) ;;
        esac
        printf '%-4s' "$transport"
        TRANSOM_TRANSPORT=$transport "$out/mpi/bin/transom" run -n 2 --timeout 300 "$out/sizes" "$operation" "$length" ||
            failed+=" $transport:$operation"
    done
done
if [ -n "$failed" ]; then
    echo "failed:$failed"
    exit 1
fi
