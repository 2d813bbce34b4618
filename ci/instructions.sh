#!/bin/bash
# instructions.sh [DIR]: instructions that a call from C takes on shared memory, and the most that it may take. They do not
# depend on the machine's speed or load, so a path that becomes longer is noticed at once. DIR holds a release build.
#
# Two ranks, an allocated window, 8 bytes at the other rank; rank 0 runs under callgrind. A row is the difference between two
# loops of different lengths, over the difference in turns: it includes the loop itself, which passes 7 to 12 arguments.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$(cd "${1:-target/release}" && pwd)
[ -e "$bin/libmpi_abi.so" ] || { echo "instructions.sh: no libmpi_abi.so in $bin" >&2; exit 2; }
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# name in calls.c, limit, or - where there is none
limits="put 75
get 75
flush 35
fetch_and_op 100
compare_and_swap 100
accumulate 100
accumulate_double -
get_accumulate 140
rput_wait 120
lock_put_unlock 240"

CARGO_TARGET_DIR=$(dirname "$bin") ffi/mpi/install.sh "$(basename "$bin")" "$out/mpi" >/dev/null
"$out/mpi/bin/mpicc" -O2 -o "$out/calls" ci/instructions/calls.c
cat >"$out/rank" <<END
#!/bin/sh
[ "\$PMI_RANK" = 0 ] || exec "$out/calls"
exec valgrind --tool=callgrind --collect-atstart=no --toggle-collect=turns --dump-after=turns \
    --callgrind-out-file="$out/counted" --log-file="$out/log" "$out/calls"
END
chmod +x "$out/rank"
export TRANSOM_TRANSPORT=shm
timeout 120 "$out/mpi/bin/transom" run -n 2 "$out/rank" >"$out/loops" || { cat "$out/log" >&2; exit 1; }

# The n-th file of counts belongs to the n-th loop.
number=0
while read -r name turns; do
    number=$((number + 1))
    echo "$name $turns $(sed -n 's/^totals: //p' "$out/counted.$number")"
done <"$out/loops" >"$out/totals"
[ "$number" -gt 0 ] || { echo "instructions.sh: no loop was counted" >&2; exit 1; }

awk '
    NR == FNR { if ($1 in turns) one[$1] = ($3 - total[$1]) / ($2 - turns[$1]); turns[$1] = $2; total[$1] = $3; next }
    FNR == 1 { one["flush"] = one["put_flush"] - one["put"]; printf "%-18s %12s %6s\n", "call", "instructions", "limit" }
    {
        over = !($1 in one) || one[$1] <= 0 || $2 != "-" && one[$1] > $2
        printf "%-18s %12.1f %6s%s\n", $1, one[$1], $2, over ? "  OVER" : ""
        failed += over
    }
    END { if (failed) print failed " over their limits"; exit failed > 0 }
' "$out/totals" - <<<"$limits"
