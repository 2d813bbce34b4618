#!/bin/bash
# verbs.sh: the tests over verbs, in a VM with soft-RoCE devices; with TRANSOM_HERE=1 on this machine's own devices.
#
# With TRANSOM_SIW_KO=/path/to/siw.ko also on soft-iWARP devices, see ci/vm/README.md.
set -euo pipefail
cd "$(dirname "$0")/.."

# All test programs. (Of the whole workspace: with fewer packages dependencies would have other features, and be compiled again.)
built=$(cargo test --workspace --no-run --quiet --message-format=json | python3 -c "
import json, sys
for message in map(json.loads, sys.stdin):
    if message['reason'] == 'compiler-artifact' and message['executable'] and 'test' in message['target']['kind']:
        print(message['manifest_path'], message['target']['name'], message['executable'])")

# One of them, and those of its tests that need a device.
programs() { # directory test-target names
    local found
    found=$(awk -v manifest="$(pwd -P)/$1/Cargo.toml" -v name="$2" '$1 == manifest && $2 == name { print $3 }' <<<"$built")
    [ -x "$found" ] || { echo "verbs.sh: no test program $2 of $1" >&2; return 1; }
    echo "$found${3:+:$3}"
}
# On any device.
general=(
    "$(programs transports/verbs conformance "")"
    "$(programs transports/verbs tiny "")"
    "$(programs transports/verbs connections "")"
    "$(programs runtime jobs suite_over_verbs)"
    "$(programs runtime flags flags_over_verbs)"
    "$(programs runtime oracle programs_over_verbs)"
    "$(programs runtime atomicity updates_over_verbs)"
    "$(programs runtime explain explain_tells_what_the_device_does_over_verbs)"
)
# On those that have atomics and datagrams.
tests=(
    "$(programs ffi/ibverbs device "")"
    "$(programs transports/verbs manager "")"
    "${general[@]}"
    "$(programs runtime complaints complaint_19_atomics_are_the_devices,complaint_31_gets_are_no_messages_over_verbs)"
    "$(programs launcher verbs "")"
)
# On iWARP, which has neither.
iwarp=(
    "${general[@]}"
    "$(programs runtime complaints complaint_31_gets_are_no_messages_over_verbs)"
    "$(programs launcher verbs a_rank_that_dies_is_named)"
)
cargo build --release --workspace --quiet
# C programs: one over memory of its own, which forks meanwhile, and one of messages and collectives.
bin=$(cd "${CARGO_TARGET_DIR:-target}/release" && pwd)
CARGO_TARGET_DIR=$(dirname "$bin") ffi/mpi/install.sh release "$bin/../mpi-over-verbs" >/dev/null
export TRANSOM_TEST_C=$bin/../mpi-over-verbs
for program in created mixture; do
    "$TRANSOM_TEST_C/bin/mpicc" -O1 -pthread -o "$TRANSOM_TEST_C/$program" ffi/mpi/tests/c/$program.c
done
if [ "${TRANSOM_HERE:-}" = 1 ]; then
    exec ci/vm/tests.sh target/release "${tests[@]}"
fi
ci/vm/run.sh --net netns --timeout 2400 --env TRANSOM_TEST_C="$TRANSOM_TEST_C" -- ci/vm/tests.sh target/release "${tests[@]}"
# Devices are taken away: in a VM of its own.
ci/vm/run.sh --timeout 300 --env TRANSOM_TEST_DEVICES_GO=1 --env TRANSOM_CI_REQUIRE_VERBS=1 -- \
    "$(programs transports/verbs faults "")" --test-threads=1
if [ -z "${TRANSOM_SIW_KO:-}" ]; then
    echo "skipped: the tests over soft-iWARP (TRANSOM_SIW_KO names no siw.ko, and Debian's kernel has none)"
    exit
fi
ci/vm/run.sh --siw --net netns --timeout 7200 \
    --env TRANSOM_TEST_C="$TRANSOM_TEST_C" --env TRANSOM_VERBS_DEVICE=siw0,siw1 --env TRANSOM_TEST_HOST_DEVICES=siw2,siw3 -- \
    ci/vm/tests.sh target/release "${iwarp[@]}"
