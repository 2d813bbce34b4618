#!/bin/bash
# run.sh [DIR]: jobs under a real Slurm on two nodes, and those of all batch scripts that are kept with the launcher on four. DIR holds a
# build of all.
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=$(cd "${1:-target/release}" && pwd)
for program in transom wordcount bench; do
    [ -x "$bin/$program" ] || { echo "run.sh: no $program in $bin: cargo build --release --workspace" >&2; exit 2; }
done
ci/slurm/cluster.sh ci/slurm/checks.sh "$bin"
NODES=4 ci/slurm/cluster.sh ci/slurm/sweep.sh "$bin"
# The nodes share all files but those in /run.
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
CARGO_TARGET_DIR=$(dirname "$bin") ffi/mpi/install.sh "$(basename "$bin")" "$out/mpi" >/dev/null
"$out/mpi/bin/mpicc" -O1 -Wall -Werror -o "$out/bytes" ci/slurm/bytes.c
NODES=4 SLURMD_TIMEOUT=12 ci/slurm/cluster.sh ci/slurm/scripts.sh "$bin" "$out/bytes"
