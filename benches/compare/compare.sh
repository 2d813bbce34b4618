#!/bin/bash
# compare.sh DIR [NAME…]: Transom's operations from C beside those of other MPIs, which are installed in DIR/NAME; without names
# all that are there, with the name none, none. The same programs are built by each one's mpicc and run by each one's launcher, in
# turns (ROUNDS of them, 7). PROGRAMS: which, of calls, threads, created, contended and bulk; all but created and bulk. TRANSOM_BUILD:
# folder of a release build.
# NETWORK=tcp: over TCP instead of shared memory, beside a raw socket, which is the limit; PROGRAMS then are calls and bulk. Without
# ompi, whose windows stay in shared memory on one node whatever it is told.
set -euo pipefail
shopt -s extglob
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
[ $# -gt 0 ] || { sed -n '2,7s/^# //p' "$0" >&2; exit 2; }
rivals=$(cd "$1" && pwd)
shift
names=("$@")
[ "${names[*]}" != none ] || names=()
[ $# -gt 0 ] || for mpicc in "$rivals"/*/bin/mpicc; do names+=("$(basename "${mpicc%/bin/mpicc}")"); done
release=$(cd "${TRANSOM_BUILD:-$root/target/release}" && pwd)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

CARGO_TARGET_DIR=$(dirname "$release") "$root/ffi/mpi/install.sh" "$(basename "$release")" "$out/transom" >/dev/null
export PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1 I_MPI_PIN=0
case ${NETWORK:-shm} in
shm) export TRANSOM_TRANSPORT=shm ;;
tcp)
    export TRANSOM_TRANSPORT=tcp FI_PROVIDER=tcp MPIR_CVAR_CH4_NETMOD=ofi MPIR_CVAR_NOLOCAL=1 I_MPI_FABRICS=ofi
    PROGRAMS=${PROGRAMS:-calls bulk}
    cc -O2 -o "$out/socket" "$here/socket.c"
    ;;
*) echo "NETWORK is $NETWORK, not shm or tcp" >&2; exit 2 ;;
esac
prefix() { [ "$1" = transom ] && echo "$out/transom" || echo "$rivals/$1"; }

build() { # name program
    PATH=$(prefix "$1")/bin:$PATH mpicc -O2 -pthread -o "$out/$1.bin/$2" "$here/$2.c" -lm -lrt
}
libraries=()
for name in transom ${names[@]+"${names[@]}"}; do
    [ "${NETWORK:-shm}/$name" != tcp/ompi ] || { echo "ompi: left out, it knows no windows over TCP on one node" >&2; continue; }
    mkdir "$out/$name.bin"
    if build "$name" calls >"$out/log" 2>&1 && build "$name" contended >"$out/log" 2>&1 &&
        build "$name" bulk >"$out/log" 2>&1; then
        libraries+=("$name")
    elif [ -e "$rivals/$name/lib/libmpi_abi.so.1" ]; then
        # Without a header it runs the programs that were built for the ABI.
        cp "$out/transom.bin"/* "$out/$name.bin"
        libraries+=("$name")
    else
        echo "$name: left out, its mpicc fails: $(head -1 "$out/log")" >&2
    fi
done

run() { # name program argument…
    local name=$1 at
    at=$(prefix "$1")
    local program=$out/$name.bin/$2
    shift 2
    local launcher=("$at/bin/mpiexec" -n 2)
    [ ! -x "$at/bin/prterun" ] || launcher=("$at/bin/prterun" --prefix "$at" --map-by :OVERSUBSCRIBE --bind-to none -n 2)
    LD_LIBRARY_PATH=$at/lib PATH=$at/bin:$PATH timeout 300 "${launcher[@]}" "$program" "$@" </dev/null
}
for ((round = 0; round < ${ROUNDS:-7}; round++)); do
    for program in ${PROGRAMS:-calls threads contended}; do
        [ ! -e "$out/socket" ] || "$out/socket" ${program/#calls/} | sed 's/^/socket /' >>"$out/samples"
        for name in "${libraries[@]}"; do
            # shellcheck disable=SC2086 # Words.
            run "$name" ${program/%@(threads|created)/calls $program} 2>"$out/log" | sed "s/^/$name /" >>"$out/samples" ||
                echo "$name: $program fails: $(head -3 "$out/log")" >&2
        done
    done
done
[ ! -e "$out/socket" ] || libraries+=(socket)
LC_ALL=C sort -k2,2 -k1,1 -k4,4g "$out/samples" | awk -v names="${libraries[*]}" -f "$here/table.awk"
