#!/bin/bash
# instructions-verbs.sh [MEASURE...]: counts the instructions of operations over verbs, and fails if there are more than
# the limits below.
#
# The device is transports/verbs/loopback, which carries requests out while they are posted, so that nothing waits but for
# the progress thread. Counted by callgrind at the thread of rank 0, each batch of turns by itself; the median batch is shown,
# which is the same in every run. The device's own instructions count, too, and are shown apart.
set -euo pipefail
cd "$(dirname "$0")/.."

# One turn of the loop in benches/examples/turns.rs, and at most how many instructions.
limits=(
    "put 940"
    "get 920"
    "fetch_and_op 860"
    "compare_and_swap 870"
    "put_borrowed 1030"
    "get_borrowed 1060"
)
# Batches, and the turns of each (TURNS there).
batches=41 turns=100

if ! command -v valgrind >/dev/null; then
    [ -z "${CI:-}" ] || { echo "CI must be able to count instructions (valgrind)"; exit 1; }
    echo "skipped: instructions over verbs (needs valgrind)"
    exit 0
fi
cargo build --release --quiet -p transom-verbs-loopback
cargo build --release --quiet -p transom-benches --example turns
device=$PWD/target/release/libtransom_verbs_loopback.so
export TRANSOM_TRANSPORT=verbs TRANSOM_IBVERBS=$device

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# Instructions of the median batch by the turn: all, and those of the device.
count() { # operation
    rm -f "$out"/profile.*
    valgrind --tool=callgrind --callgrind-out-file="$out/profile" \
        --toggle-collect=turns::batch --dump-after=turns::batch \
        target/release/examples/turns "$1" $batches >"$out/log" 2>&1 || { cat "$out/log" >&2; return 1; }
    # "ob=(number) file" begins the costs of an object, whose name is given once; "calls=" precedes a line of what is called.
    awk '
        FNR == 1 { if (NR > 1) print all, own + 0; all = own = here = 0; delete device }
        /^c?ob=/ {
            number = $1; sub(/^c?ob=/, "", number)
            if (NF > 1) device[number] = ($2 ~ /libtransom_verbs_loopback/)
            if (/^ob=/) here = device[number]
        }
        /^calls=/ { getline; next }
        /^[0-9+*-]/ { all += $2; if (here) own += $2 }
        END { print all, own + 0 }
    ' "$out"/profile.[0-9]* | sort -n | awk -v turns=$turns '
        $1 > 0 { all[++count] = $1; own[count] = $2 }
        END { middle = int((count + 1) / 2); printf "%d %d\n", all[middle] / turns, own[middle] / turns }
    '
}

failed=0
printf '%-18s %8s %8s %8s\n' "one turn" all device limit
for limit in "${limits[@]}"; do
    read -r name most <<<"$limit"
    [ $# = 0 ] || [[ " $* " == *" $name "* ]] || continue
    read -r all own <<<"$(count "$name")"
    printf '%-18s %8d %8d %8d\n' "$name" $all $own "$most"
    [ $all -le "$most" ] || failed=1
done
[ $failed = 0 ] || { echo "more instructions than the limit"; exit 1; }
