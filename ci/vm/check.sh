#!/bin/bash
# check.sh: whether ci/vm/run.sh does what it says. One line a check; two VMs run at a time.
set -uo pipefail
cd "$(dirname "$0")/../.."
out=$(mktemp -d -t transom-vm-check.XXXXXX)
trap 'rm -rf "$out"' EXIT
passed=0
failed=0

vm() { # name run.sh-arguments…: output in $out/NAME, $out/NAME.err; status in $out/NAME.status
    local name=$1
    shift
    ci/vm/run.sh "$@" >"$out/$name" 2>"$out/$name.err"
    echo $? >"$out/$name.status"
}

check() { # name-of-the-vm description command…: passes if the command succeeds
    local name=$1 description=$2
    shift 2
    if "$@" >"$out/why" 2>&1; then
        echo "ok      $description"
        passed=$((passed + 1))
    else
        echo "FAILED  $description (status $(cat "$out/$name.status"))"
        tail -n 20 "$out/$name" "$out/$name.err" "$out/why" | cut -c 1-200 | sed 's/^/        /'
        failed=$((failed + 1))
    fi
}
status() { [ "$(<"$out/$1.status")" = "$2" ]; }
has() { grep -qE -- "$2" "$out/$1"; }

# The first run may have to fetch the kernel.
start=$(date +%s%N)
vm boot -- true
check boot "the first VM, in $((($(date +%s%N) - start) / 1000000)) ms" status boot 0

vm limit --timeout 20 -- sleep 100 &
vm pair -- bash -c 'ibv_devinfo; for test in "ib_write_lat rxe0 rxe1" "ib_read_lat rxe1 rxe1" "ib_atomic_lat rxe0 rxe1"; do
    ci/vm/perftest.sh $test && echo "measured $test"
done'
check pair "ibv_devinfo shows rxe0" has pair 'hca_id:.rxe0'
check pair "ibv_devinfo shows rxe1" has pair 'hca_id:.rxe1'
check pair "ib_write_lat between rxe0 and rxe1" has pair 'measured ib_write_lat'
check pair "ib_atomic_lat between rxe0 and rxe1" has pair 'measured ib_atomic_lat'
check pair "ib_read_lat on rxe1 alone" has pair 'measured ib_read_lat'
wait
check limit "--timeout 20 ends sleep 100 with 124" status limit 124

TRANSOM_PROBE='in herited' PROBE=no vm same --env 'GIVEN=a  "b" $c' -- bash -c '
    pwd; echo "$@"; echo "$TRANSOM_PROBE, ${PROBE-unset}, $GIVEN"; id -u; touch ci/vm/vanishes; ls ci/vm/vanishes
    echo aside >&2; exit 42' zero '1  2' "it's" &
seq 2000000 | head -c 10000000 >"$out/expected"
vm large --net single -- sh -c 'seq 2000000 | head -c 10000000; seq 200000 >&2; exec false'
wait
check same "exit status" status same 42
check same "arguments, environment, directory, user" \
    diff "$out/same" - <<<"$PWD"$'\n'"1  2 it's"$'\nin herited, unset, a  "b" $c\n0\nci/vm/vanishes'
check same "stderr is apart" diff "$out/same.err" - <<<aside
check same "what is written vanishes" test ! -e ci/vm/vanishes
check large "false gives 1" status large 1
check large "10 MB of output" cmp "$out/expected" "$out/large"
check large "1 MB of stderr" cmp <(seq 200000) "$out/large.err"

vm netns --net netns -- bash -c '
    ip netns exec h1 ibv_devices
    ci/netns-rsh h2 "hostname; ip -br address show dev eth0"
    export SERVER="ip netns exec h1" CLIENT="ip netns exec h2"
    ci/vm/perftest.sh ib_write_lat rxe0 rxe1 10.99.0.1 && echo measured ib_write_lat' &
ci/vm/run.sh --timeout 120 -- yes 2>"$out/pipe.err" | head -n 2 >"$out/pipe"
echo "${PIPESTATUS[0]}" >"$out/pipe.status"
vm reset -- sh -c 'echo b >/proc/sysrq-trigger; sleep 60'
wait
check netns "ip netns exec h1 ibv_devices" has netns '^ *rxe1'
check netns "ci/netns-rsh h2" has netns '^h2$'
check netns "it has an address of its own" has netns '10\.99\.0\.2/24'
check netns "ib_write_lat from h2 to h1" has netns 'measured ib_write_lat'
check pipe "a reader that leaves ends the VM, with 141" status pipe 141
check reset "a VM that breaks gives 125" status reset 125

# Killed in both ways; QEMU must go by itself.
mkdir "$out/tmp"
ours() { pgrep -f "^qemu.*path=$out/tmp/"; }
for signal in TERM KILL; do
    TMPDIR=$out/tmp ci/vm/run.sh -- sleep 98765 >"$out/killed" 2>"$out/killed.err" &
    until ours >/dev/null || ! kill -0 $! 2>/dev/null; do sleep 0.1; done
    kill -$signal $!
    wait $! 2>/dev/null
    echo $? >"$out/killed.status"
    for _ in $(seq 50); do
        ours >/dev/null || break
        sleep 0.1
    done
    check killed "no QEMU is left after SIG$signal" eval '! ours'
    [ $signal = KILL ] || check killed "no file either" test -z "$(ls "$out/tmp")"
done

echo "$passed passed, $failed failed"
[ $failed = 0 ]
