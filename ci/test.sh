#!/bin/bash
# test.sh: every test, on this machine. Each step is a command that can be run alone.
#
# With CI set nothing may be skipped; without it, tests that need root, libfabric, Slurm or valgrind say that they are skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

# A shell's background jobs ignore interrupts, and nohup's hangups: the tests of signals want them as they are.
if [ -z "${TRANSOM_CI_SIGNALS:-}" ]; then
    export TRANSOM_CI_SIGNALS=default
    exec env --default-signal=INT,QUIT,HUP bash ci/test.sh "$@"
fi

step() {
    echo "=== $*"
    local start=$SECONDS
    "$@"
    echo "=== done in $((SECONDS - start)) s: $*"
}

step ci/install.sh
step cargo fmt --all --check
step cargo clippy --workspace --all-targets --quiet
step cargo doc --workspace --no-deps --quiet
step ci/licences.sh
step cargo test --workspace --quiet
step cargo build --workspace --release --quiet
step ci/main-job.sh target/release
step ci/instructions-verbs.sh
if [ "$(id -u)" = 0 ] && command -v slurmctld >/dev/null; then
    step ci/slurm/run.sh target/release
else
    [ -z "${CI:-}" ] || { echo "CI must be able to start Slurm (root, slurm-wlm, munge)"; exit 1; }
    echo "skipped: ci/slurm/run.sh (needs root, slurm-wlm and munge)"
fi
step ci/mpiexec.sh target/release
if command -v valgrind >/dev/null && command -v cc >/dev/null; then
    step ci/instructions.sh target/release
else
    [ -z "${CI:-}" ] || { echo "CI must be able to count instructions (valgrind, cc)"; exit 1; }
    echo "skipped: ci/instructions.sh (needs valgrind and a C compiler)"
fi
if command -v qemu-system-x86_64 >/dev/null && [ "$(uname -m)" = x86_64 ]; then
    step ci/verbs.sh
else
    [ -z "${CI:-}" ] || { echo "CI must be able to start a VM with RDMA devices (x86-64, qemu-system-x86)"; exit 1; }
    echo "skipped: ci/verbs.sh (needs an x86-64 machine and qemu-system-x86)"
fi
echo "all tests passed"
