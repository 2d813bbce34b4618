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

# A command beside the others, in a group of its own; its output is a step's, later.
declare -A jobs logs
beside() { # name command…
    local name=$1
    shift
    logs[$name]=$(mktemp)
    setsid env --default-signal=INT,QUIT,HUP "$@" >"${logs[$name]}" 2>&1 &
    jobs[$name]=$!
}
trap 'for job in "${jobs[@]}"; do kill -- -"$job" 2>/dev/null || true; done' EXIT
joined() { # name
    local code=0
    wait "${jobs[$1]}" || code=$?
    cat "${logs[$1]}"
    rm -f "${logs[$1]}"
    unset "jobs[$1]"
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
    bin=target/release
    # What is compiled beside the tests, which mostly wait: the programs of what follows, a tool for the licences, and all again for
    # lints; these elsewhere, since some tests call cargo, and would wait for its lock.
    beside compiled nice -n 19 bash -c 'set -ex
        ci/licences.sh
        cargo build --workspace --release --quiet
        export CARGO_TARGET_DIR=target/lints
        cargo clippy --workspace --all-targets --quiet
        cargo doc --workspace --no-deps --quiet'
else
    step ci/install.sh --without-vm
    later "cargo clippy --workspace --all-targets" "lints: one more compilation of everything"
    later "cargo doc --workspace --no-deps" "links between the manual's pages"
    later ci/licences.sh "the licences of dependencies; cargo-deny would have to be built first"
    # Of what is random and repeated CI does more.
    export TRANSOM_TEST_DISASTERS=${TRANSOM_TEST_DISASTERS:-8} TRANSOM_TEST_KILLS=${TRANSOM_TEST_KILLS:-6}
    export TRANSOM_TEST_SOAK=${TRANSOM_TEST_SOAK:-3} TRANSOM_TEST_SHORT=1
    later "cargo test --workspace" "jobs of the suite with more ranks, and more random programs, deaths and sizes"
    later "cargo build --workspace --release" "the optimised programs, with which CI does all that follows"
fi
step cargo test --workspace --quiet --no-run
step cargo build --workspace --lib --bins --examples --quiet
# Each mostly waits: for processes, clocks and the network.
beside launcher ci/cargo-tests.sh launcher
if [ -n "${CI:-}" ]; then
    step ci/cargo-tests.sh others
    step ci/cargo-tests.sh locks
    step joined launcher
    step joined compiled
    step cargo build --workspace --release --quiet
else
    beside others ci/cargo-tests.sh others
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
if [ -z "${CI:-}" ]; then
    step ci/cargo-tests.sh locks
    step joined launcher
    step joined others
fi
for what in "${left[@]}"; do
    echo "left to CI: $what"
done
echo "all tests passed"
