#!/bin/bash
# bench.sh DIRECTORY [OPTION…]: what RDMA devices do, by perftest and by `transom bench` (of DIRECTORY, with these options), which
# has the raw limit of the same requests beside each figure. Without options: what completes by the device alone, up to 1 MiB
# (in the VM transfers run into the device's retransmission timers, more of them the longer they are).
#
#     cargo build --release -p transom-launcher -p transom-benches
#     ci/vm/run.sh --timeout 600 -- ci/vm/bench.sh target/release
#
# DEVICES (default rxe0,rxe1) are those of the two ranks; GID as in perftest.sh.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
directory=${1:?"bench.sh DIRECTORY [OPTION…]"}
shift
[ $# -gt 0 ] || set -- put-latency get-latency fetch-and-op-latency compare-and-swap-latency put-bandwidth get-bandwidth put-rate lock-put-unlock \
    --sizes 8,4K,64K,1M --burst 16
devices=${DEVICES:-rxe0,rxe1}

# The line of perftest's table below its header; COUNT and SIZE are of perftest.sh.
measure() { # program…
    printf '%-40s' "$*, $SIZE B"
    "$here/perftest.sh" "$1" "${devices#*,}" "${devices%,*}" 2>/dev/null | grep -A 1 '^ #bytes' | tail -n 1 | tr -s ' \t' ' '
}

echo "perftest: bytes, iterations, min, max, typical, average, deviation, 99 %, 99.9 % in µs; of a write half a round trip"
SIZE=8 COUNT=1000
export SIZE COUNT
for program in ib_write_lat ib_read_lat ib_atomic_lat; do
    measure $program
done
echo "perftest: bytes, iterations, peak and average in MB/s (2^20 bytes), millions of requests a second"
for SIZE in 8 65536 1048576; do
    [ $SIZE = 8 ] || COUNT=$((16777216 / SIZE))
    measure ib_write_bw
done
TRANSOM_TRANSPORT=verbs TRANSOM_VERBS_DEVICE=$devices "$directory/transom" run -n 2 "$directory/bench" "$@"
