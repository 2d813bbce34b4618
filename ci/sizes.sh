#!/bin/bash
# sizes.sh [DIR [OPERATION…]]: operations on more than 4 GiB, where numbers of 32 bits end, by two ranks over each transport. Without
# names all of sizes/sizes.c, which takes long and 20 GiB of memory; where blocks of all ranks come together
# each has 2.25 GiB, so that they are more than 4 GiB together. DIR holds a release build. TRANSPORTS: "shm tcp" by default.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$(cd "${1:-target/release}" && pwd)
shift || true
collectives="bcast gather scatter allgather alltoall reduce allreduce scan exscan reduce_scatter neighbor_allgather neighbor_alltoall"
# shellcheck disable=SC2086
[ $# -gt 0 ] || set -- $collectives i${collectives// / i} message message_of_type put get accumulate get_accumulate
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
needed=20
available=$(awk '/^MemAvailable/ { print int($2 / 1024 / 1024) }' /proc/meminfo)
if [ "$available" -lt $needed ]; then
    echo "skipped: ci/sizes.sh (needs $needed GiB of memory, $available are available)"
    exit 0
fi
CARGO_TARGET_DIR=$(dirname "$bin") ffi/mpi/install.sh "$(basename "$bin")" "$out/mpi" >/dev/null
"$out/mpi/bin/mpicc" -O2 -Wall -Werror -o "$out/sizes" ci/sizes/sizes.c
for transport in ${TRANSPORTS:-shm tcp}; do
    for operation; do
        case $operation in
        *neighbor*) bytes=$(((4 << 30) + 1)) ;;
        *gather | *scatter | *alltoall) bytes=$(((9 << 28) + 1)) ;;
        *) bytes=$(((4 << 30) + 1)) ;;
        esac
        printf '%-4s' "$transport"
        TRANSOM_TRANSPORT=$transport "$out/mpi/bin/transom" run -n 2 --timeout 300 "$out/sizes" "$operation" $bytes
    done
done
