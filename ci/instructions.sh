#!/bin/bash
# instructions.sh [DIR]: instructions that a call from C takes on shared memory, and the most that it may take. They do not
# depend on the machine's speed or load, so a path that becomes longer is noticed at once. DIR holds a release build.
#
# Two ranks, an allocated window, 8 bytes at the other rank; rank 0 runs under callgrind. A row is the difference between two
# loops of different lengths, over the difference in turns: it includes the loop itself, which passes 7 to 12 arguments.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$(cd "${1:-target/release}" && pwd)
for library in libmpi_abi.so libmpich.so libsma.so; do
    [ -e "$bin/$library" ] || { echo "instructions.sh: no $library in $bin" >&2; exit 2; }
done
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# name in calls.c, limits by the standard's ABI and by MPICH's, or - where there are none
limits="put 78 90
get 75 90
flush 35 36
fetch_and_op 100 105
compare_and_swap 100 110
accumulate 100 110
accumulate_double - -
get_accumulate 140 145
rput_wait 120 125
lock_put_unlock 240 255
lock_shared 190 200
flush_all 84 85
flush_local_all 84 85
lock_all_unlock_all 110 120"

# name in shmem.c, limit
shmem_limits="long_p 40
long_g 40
putmem 60
getmem 60
quiet 25
fence 25
fetch_add 60
add 60
compare_swap 60
fetch 70
swap_double 70
wait_until 40
ctx_long_p 60"

CARGO_TARGET_DIR=$(dirname "$bin") ffi/mpi/install.sh "$(basename "$bin")" "$out/mpi" >/dev/null
CARGO_TARGET_DIR=$(dirname "$bin") ffi/shmem/install.sh "$(basename "$bin")" "$out/mpi" >/dev/null
export TRANSOM_TRANSPORT=shm

count() { # name loops column-of-limits compiler…
    local loops=$2 column=$3 number=0 name turns
    echo "== $1"
    shift 3
    rm -f "$out"/counted*
    "$@" -O2 -o "$out/calls" "ci/instructions/$loops.c"
    cat >"$out/rank" <<END
#!/bin/sh
[ "\$PMI_RANK" = 0 ] || exec "$out/calls"
exec valgrind --tool=callgrind --collect-atstart=no --toggle-collect=turns --dump-after=turns \
    --callgrind-out-file="$out/counted" --log-file="$out/log" "$out/calls"
END
    chmod +x "$out/rank"
    timeout 120 "$out/mpi/bin/transom" run -n 2 "$out/rank" >"$out/loops" || { cat "$out/log" >&2; exit 1; }

    # The n-th file of counts belongs to the n-th loop.
    while read -r name turns; do
        number=$((number + 1))
        echo "$name $turns $(sed -n 's/^totals: //p' "$out/counted.$number")"
    done <"$out/loops" >"$out/totals"
    [ "$number" -gt 0 ] || { echo "instructions.sh: no loop was counted" >&2; exit 1; }
    compare
}

compare() {
    awk -v column="$column" '
    NR == FNR { if ($1 in turns) one[$1] = ($3 - total[$1]) / ($2 - turns[$1]); turns[$1] = $2; total[$1] = $3; next }
    FNR == 1 { one["flush"] = one["put_flush"] - one["put"]; printf "%-18s %12s %6s\n", "call", "instructions", "limit" }
    {
        limit = $column
        over = !($1 in one) || one[$1] <= 0 || limit != "-" && one[$1] > limit
        printf "%-18s %12.1f %6s%s\n", $1, one[$1], limit, over ? "  OVER" : ""
        failed += over
    }
    END { if (failed) print failed " over their limits"; exit failed > 0 }
    ' "$out/totals" - <<<"$limits"
}

count libmpi_abi.so.1 calls 2 "$out/mpi/bin/mpicc"
if mpich=$(ci/mpich.sh); then
    count libmpi.so.12 calls 3 cc -I"$mpich/include" -Wl,--no-as-needed "$out/mpi/lib/mpich-abi/libmpi.so.12"
else
    [ -z "${CI:-}" ] || { echo "CI must have MPICH's header" >&2; exit 1; }
    echo "skipped: libmpi.so.12 (there is no MPICH, and it cannot be installed)"
fi
limits=$shmem_limits
count libsma.so.1 shmem 2 "$out/mpi/bin/oshcc"
