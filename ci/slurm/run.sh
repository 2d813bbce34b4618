#!/bin/bash
# run.sh [DIR]: jobs under a real Slurm on two nodes, and the benchmark's on four. DIR holds the binaries transom, wordcount and bench.
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=$(cd "${1:-target/release}" && pwd)
for program in transom wordcount bench; do
    [ -x "$bin/$program" ] || { echo "run.sh: no $program in $bin: cargo build --release --workspace" >&2; exit 2; }
done
ci/slurm/cluster.sh ci/slurm/checks.sh "$bin"
NODES=4 ci/slurm/cluster.sh ci/slurm/sweep.sh "$bin"
