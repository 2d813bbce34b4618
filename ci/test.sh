#!/bin/bash
# test.sh: every test, on this machine. Each step is a command that can be run alone.
#
# With CI set nothing may be skipped. Without it, tests that need root, libfabric, Slurm or valgrind say that they are skipped, and
# what takes long is left to CI, said at the end: `CI=1 ci/test.sh` does all.
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

# A command beside the others, at the lowest priority; its output is a step's, later.
beside() {
    beside_log=$(mktemp)
    nice -n 19 "$@" >"$beside_log" 2>&1 &
    beside_job=$!
    trap 'kill "$beside_job" 2>/dev/null' EXIT
}
joined() { # command…
    local code=0
    wait "$beside_job" || code=$?
    trap - EXIT
    cat "$beside_log"
    rm -f "$beside_log"
    return $code
}

left=()
later() { # command what
    left+=("$1: $2")
}

# Programs of the tests are tried as they are built for these, or in CI as users have them.
bin=target/debug
step cargo fmt --all --check
if [ -n "${CI:-}" ]; then
    # A clean checkout compiles each thing once: what a second compilation would reuse only fills the disk.
    export CARGO_INCREMENTAL=0
    step ci/install.sh
    step cargo clippy --workspace --all-targets --quiet
    step cargo doc --workspace --no-deps --quiet
    bin=target/release
    # What is compiled beside the tests; a tool for the licences, too.
    beside bash -c 'ci/licences.sh && cargo build --workspace --release --quiet'
else
    step ci/install.sh --without-vm
    later "cargo clippy --workspace --all-targets" "lints: one more compilation of everything"
    later "cargo doc --workspace --no-deps" "links between the manual's pages"
    later ci/licences.sh "the licences of dependencies; cargo-deny would have to be built first"
    # Of what is random and repeated CI does more.
    export TRANSOM_TEST_DISASTERS=${TRANSOM_TEST_DISASTERS:-16} TRANSOM_TEST_KILLS=${TRANSOM_TEST_KILLS:-6}
    export TRANSOM_TEST_SOAK=${TRANSOM_TEST_SOAK:-3}
fi
step cargo test --workspace --quiet
if [ -n "${CI:-}" ]; then
    step joined "the licences and the release build"
    step cargo build --workspace --release --quiet
else
    step cargo build --workspace --quiet
    later "cargo build --workspace --release" "the optimised programs, with which CI does all that follows"
fi
step ci/main-job.sh $bin
step ci/limits.sh $bin
if [ -n "${CI:-}" ]; then
    step ci/instructions-verbs.sh
    step ci/sizes.sh $bin bcast gather put
else
    later ci/instructions-verbs.sh "instructions of each call over verbs, of optimised programs"
    later ci/sizes.sh "operations on more than 4 GiB"
fi
if [ "$(id -u)" = 0 ] && command -v unshare >/dev/null && command -v ip >/dev/null && command -v cc >/dev/null; then
    step ci/containers.sh $bin
else
    [ -z "${CI:-}" ] || { echo "CI must be able to make containers (root, unshare, setpriv, iproute2, cc)"; exit 1; }
    echo "skipped: ci/containers.sh (needs root, unshare, setpriv, iproute2 and a C compiler)"
fi
if [ "$(id -u)" = 0 ] && command -v slurmctld >/dev/null; then
    step ci/slurm/run.sh $bin
else
    [ -z "${CI:-}" ] || { echo "CI must be able to start Slurm (root, slurm-wlm, munge)"; exit 1; }
    echo "skipped: ci/slurm/run.sh (needs root, slurm-wlm and munge)"
fi
step ci/mpiexec.sh $bin
if [ -z "${CI:-}" ]; then
    later ci/instructions.sh "instructions of each call of MPI and OpenSHMEM, of optimised programs"
elif command -v valgrind >/dev/null && command -v cc >/dev/null; then
    step ci/instructions.sh $bin
else
    echo "CI must be able to count instructions (valgrind, cc)"
    exit 1
fi
if [ -n "${CI:-}" ]; then
    step ci/packages.sh
else
    later ci/packages.sh "the wheel and the Debian package, built and tried; needs PyPI"
fi
if [ -z "${CI:-}" ]; then
    later ci/verbs.sh "all that needs RDMA devices, on emulated ones in a VM: a quarter of an hour"
elif command -v qemu-system-x86_64 >/dev/null && [ "$(uname -m)" = x86_64 ]; then
    step ci/verbs.sh
else
    echo "CI must be able to start a VM with RDMA devices (x86-64, qemu-system-x86)"
    exit 1
fi
for what in "${left[@]}"; do
    echo "left to CI: $what"
done
echo "all tests passed"
