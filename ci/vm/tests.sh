#!/bin/bash
# tests.sh DIR BINARY…: the tests over verbs, in the VM (`ci/vm/run.sh --net netns`) or on hosts with RDMA devices.
#
# DIR holds transom, wordcount and heat; TRANSOM_VERBS_DEVICE names the devices, and TRANSOM_TEST_HOST_DEVICES those of the two hosts
# h1 and h2 if they have others; each BINARY is a test program, followed by `:` and the names of tests, with commas,
# or by nothing for all. `ci/verbs.sh` builds them and calls this.
set -uo pipefail
cd "$(dirname "$0")/../.."
bin=$(cd "${1:?DIR}" && pwd)
shift
export TRANSOM_CI_REQUIRE_VERBS=1
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
passed=0 failed=0

check() { # name command…
    local name=$1 start=$SECONDS
    shift
    if "$@" >"$out/log" 2>&1; then
        echo "ok: $name ($((SECONDS - start)) s)"
        grep -hE "^[0-9]+ (updates|added|puts)|programs in" "$out/log" | sed 's/^/    /'
        passed=$((passed + 1))
    else
        echo "FAILED: $name ($((SECONDS - start)) s)"
        tail -n 60 "$out/log"
        failed=$((failed + 1))
    fi
}

# The README's programs: the same results as a sequential count, and as a single rank's.
same() { # expected actual command…
    local expected=$1 actual=$2
    shift 2
    "$@" >"$out/stdout" && cmp "$expected" "$actual"
}
ci/count.sh ci/data/*.txt >"$out/expected.tsv"
"$bin/transom" run -n 1 heat 200 150 100 -o "$out/1.png" --field "$out/expected.raw" >/dev/null
programs() { # name launcher-arguments…
    local name=$1
    shift
    check "wordcount, $name" same "$out/expected.tsv" "$out/stdout" "$@" wordcount --tsv ci/data/*.txt
    check "heat, $name" same "$out/expected.raw" "$out/field.raw" \
        "$@" heat 200 150 100 -o "$out/n.png" --field "$out/field.raw"
}
devices=${TRANSOM_VERBS_DEVICE:-$(ls /sys/class/infiniband | grep -v siw | paste -sd,)}
# Ranks take turns at devices; on two hosts each half has one.
halves() { # ranks
    local device
    for device in $(tr , ' ' <<<"${TRANSOM_TEST_HOST_DEVICES:-$devices}"); do
        printf "$device\n%.0s" $(seq $(($1 / 2)))
    done | paste -sd,
}
for ranks in 2 4; do
    programs "$ranks ranks" env TRANSOM_TRANSPORT=verbs TRANSOM_VERBS_DEVICE="$devices" "$bin/transom" run -n $ranks
    if [ -e /run/netns/h1 ]; then
        programs "$ranks ranks on two hosts" env TRANSOM_TRANSPORT=shm,verbs \
            TRANSOM_VERBS_DEVICE="$(halves $ranks)" "$bin/transom" run --rsh "$PWD/ci/netns-rsh" --hosts h1,h2 -n $ranks
    fi
done

# Programs of MPI's C interface, in a folder. One forks while the device reads and writes its memory.
if [ -n "${TRANSOM_TEST_C:-}" ]; then
    check "windows of a program that forks" \
        env TRANSOM_TRANSPORT=verbs TRANSOM_VERBS_DEVICE="$devices" TRANSOM_TEST_CREATED=20 "$bin/transom" run -n 2 "$TRANSOM_TEST_C/created"
    for ranks in 2 4; do
        check "mixtures of collectives and messages, $ranks ranks" \
            env TRANSOM_TRANSPORT=verbs TRANSOM_VERBS_DEVICE="$devices" "$bin/transom" run -n $ranks "$TRANSOM_TEST_C/mixture"
    done
fi

# Too little locked memory is an error that names the limit.
check "little locked memory" bash -c '
    ! setpriv --inh-caps=-ipc_lock --bounding-set=-ipc_lock bash -c "ulimit -l 512; exec \"\$@\"" - \
        env TRANSOM_TRANSPORT=verbs "$0" run -n 2 wordcount --tsv ci/data/*.txt 2>"$1" && cat "$1" && grep -q "ulimit -l" "$1"
' "$bin/transom" "$out/stderr"

for test in "$@"; do
    names=()
    case $test in *:*) IFS=, read -ra names <<<"${test#*:}" ;; esac
    check "$(basename "${test%%:*}") ${names[*]:-}" "${test%%:*}" --test-threads=1 --nocapture "${names[@]}"
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
