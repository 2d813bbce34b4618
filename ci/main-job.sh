#!/bin/bash
# main-job.sh [DIR]: the README's programs, with 4 ranks, over shared memory, TCP and libfabric, and across two network
# namespaces: the same counts as a sequential count, the same field as a single rank's. DIR holds the binaries.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$(cd "${1:-target/release}" && pwd)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
passed=0

check() { # name expected-file actual-file
    cmp -s "$2" "$3" || { echo "FAILED: $1"; diff "$2" "$3" | head -5; exit 1; }
    echo "ok: $1"
    passed=$((passed + 1))
}

ci/count.sh ci/data/*.txt >"$out/expected.tsv"
"$bin/transom" run -n 1 heat 200 150 100 -o "$out/1.png" --field "$out/expected.raw" >/dev/null

try() { # name launcher-arguments...
    local name=$1
    shift
    "$@" -n 4 wordcount --tsv ci/data/*.txt >"$out/counts.tsv"
    check "wordcount, 4 ranks, $name" "$out/expected.tsv" "$out/counts.tsv"
    "$@" -n 4 heat 200 150 100 -o "$out/4.png" --field "$out/field.raw" >/dev/null
    check "heat, 4 ranks, $name" "$out/expected.raw" "$out/field.raw"
    check "heat's picture, 4 ranks, $name" "$out/1.png" "$out/4.png"
}

TRANSOM_TRANSPORT=shm try "shared memory" "$bin/transom" run
TRANSOM_TRANSPORT=tcp try "TCP" "$bin/transom" run
if "$bin/transom" info | grep -q "no libfabric:"; then
    [ -z "${CI:-}" ] || exit 1
    echo "skipped: libfabric is missing"
else
    TRANSOM_TRANSPORT=ofi try "libfabric" "$bin/transom" run
fi
if [ "$(id -u)" = 0 ] && command -v ip >/dev/null; then
    try "two namespaces" ci/netns.sh "$bin/transom" run --rsh "$PWD/ci/netns-rsh" --hosts h1,h2
else
    [ -z "${CI:-}" ] || exit 1
    echo "skipped: namespaces need root and iproute2"
fi
echo "$passed passed, 0 failed"
