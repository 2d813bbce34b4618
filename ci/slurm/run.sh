#!/bin/bash
# run.sh [DIR]: jobs under a real Slurm on two nodes. DIR holds the binaries transom and wordcount.
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=$(cd "${1:-target/release}" && pwd)
for program in transom wordcount; do
    [ -x "$bin/$program" ] || { echo "run.sh: no $program in $bin: cargo build --release --workspace" >&2; exit 2; }
done
exec ci/slurm/cluster.sh ci/slurm/checks.sh "$bin"
