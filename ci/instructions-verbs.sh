#!/bin/bash
# instructions-verbs.sh [MEASURE...]: counts the instructions of operations over verbs, and fails if there are more than
# the limits below.
#
# The device is transports/verbs/loopback, which carries requests out while they are posted, so that nothing waits. Counted by
# callgrind at the thread of rank 0: the difference of two lengths of the loop, so that its start cancels. The device's own
# instructions count, too, and are shown apart.
set -euo pipefail
cd "$(dirname "$0")/.."

# One turn of the loop in benches/examples/turns.rs, and at most how many instructions.
limits=(
    "put 940"
    "get 950"
    "fetch_and_op 970"
    "compare_and_swap 930"
    "put_borrowed 980"
    "get_borrowed 1050"
)
short=1000 long=3000

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

# Instructions of a loop: all, and those of the device.
count() { # operation turns
    valgrind --tool=callgrind --callgrind-out-file="$out/profile" --toggle-collect=turns::rank_0 \
        target/release/examples/turns "$1" "$2" >"$out/log" 2>&1 || { cat "$out/log" >&2; return 1; }
    # "ob=(number) file" begins the costs of an object, whose name is given once; "calls=" precedes a line of what is called.
    awk '
        /^c?ob=/ {
            number = $1; sub(/^c?ob=/, "", number)
            if (NF > 1) device[number] = ($2 ~ /libtransom_verbs_loopback/)
            if (/^ob=/) here = device[number]
        }
        /^calls=/ { getline; next }
        /^[0-9+*-]/ { all += $2; if (here) own += $2 }
        END { print all, own + 0 }
    ' "$out/profile"
}

failed=0
printf '%-18s %8s %8s %8s\n' "one turn" all device limit
for limit in "${limits[@]}"; do
    read -r name most <<<"$limit"
    [ $# = 0 ] || [[ " $* " == *" $name "* ]] || continue
    # A turn in which the progress thread has the lock waits for it: on a busy machine not the first try counts.
    for _ in 1 2 3; do
        read -r all own <<<"$(count "$name" $short)"
        read -r all_long own_long <<<"$(count "$name" $long)"
        all=$(((all_long - all) / (long - short))) own=$(((own_long - own) / (long - short)))
        [ $all -gt "$most" ] || break
    done
    printf '%-18s %8d %8d %8d\n' "$name" $all $own "$most"
    [ $all -le "$most" ] || failed=1
done
[ $failed = 0 ] || { echo "more instructions than the limit"; exit 1; }
