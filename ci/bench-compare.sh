#!/bin/bash
# bench-compare.sh [DIR [PAIRS [OPTION…]]]: whether `transom bench --compare` can be believed on this machine. DIR holds a release build.
#
# PAIRS (20) pairs of runs of a short selection, or of what the options say: both of a pair are of one build, so each row that is told to
# be faster or slower is a false alarm; at most one pair may have any. Then a slowdown is planted in the second run of each pair: all
# times of put-latency become 10 % longer in its file of samples (nothing is built into the programs for it), and the comparison has to
# end with exit code 1 in all pairs but one. Not part of ci/test.sh: it takes minutes, and what it finds is the machine's, too.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$(cd "${1:-target/release}" && pwd)
pairs=${2:-20}
shift $(($# < 2 ? $# : 2))
[ $# -gt 0 ] || set -- put-latency get-latency accumulate-latency fetch-and-op-latency put-bandwidth get-bandwidth put-rate lock-unlock fence \
    --sizes 8,4K,64K,1M
out=${BENCH_COMPARE_KEEP:-$(mktemp -d)}
mkdir -p "$out"
[ -n "${BENCH_COMPARE_KEEP:-}" ] || trap 'rm -rf "$out"' EXIT

# 10 % more in every sample of put-latency.
plant='
import json, sys
report = json.load(open(sys.argv[1]))
rows = [row for row in report["rows"] if row["name"] == "put-latency"]
for row in rows:
    row["rounds"] = [[1.1 * sample for sample in samples] for samples in row["rounds"]]
json.dump(report, open(sys.argv[2], "w"))
sys.exit(not rows)
'

compare() { # old new: its verdicts, one a line
    local code=0
    "$bin/transom" bench --from "$2" --compare "$1" >"$out/table" 2>"$out/errors" || code=$?
    [ $code -le 1 ] || { cat "$out/table" "$out/errors" >&2; echo "bench-compare.sh: exit code $code" >&2; exit 1; }
    grep -E '(faster|slower)$' "$out/table" || true
    return $code
}

alarms=0 found=0 rows=0 planted=0
for pair in $(seq "$pairs"); do
    for half in old new; do
        "$bin/transom" bench "$@" --json "$out/$pair-$half.json" >/dev/null
    done
    verdicts=$(compare "$out/$pair-old.json" "$out/$pair-new.json") || true
    if [ -n "$verdicts" ]; then
        alarms=$((alarms + 1))
        echo "pair $pair, false alarms:"
        echo "$verdicts"
    fi
    python3 -c "$plant" "$out/$pair-new.json" "$out/$pair-slower.json"
    verdicts=$(compare "$out/$pair-old.json" "$out/$pair-slower.json") && code=0 || code=$?
    all=$(grep -cE '^ *put-latency .*(no change|faster|slower)$' "$out/table")
    seen=$(grep -c '^ *put-latency .*slower$' <<<"$verdicts" || true)
    rows=$((rows + seen)) planted=$((planted + all))
    [ $code = 1 ] && [ "$seen" -gt 0 ] && found=$((found + 1)) || echo "pair $pair: the slowdown was not found"
done
echo "of $pairs pairs of runs of one build $alarms had false alarms"
echo "a slowdown of 10 % of put-latency was found in $found of $pairs pairs, in $rows of $planted of its rows"
[ "$alarms" -le 1 ] && [ "$found" -ge $((pairs - 1)) ]
