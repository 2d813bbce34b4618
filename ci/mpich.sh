#!/bin/bash
# mpich.sh: prints the folder of an MPICH, with include/mpi.h, lib/libmpi.so.12 and bin/mpiexec: TRANSOM_MPICH, else target/mpich, into
# which it is installed from PyPI once.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -z "${TRANSOM_MPICH:-}" ]; then
    ci/venv.sh "$PWD/target/mpich" mpich==5.0.2
fi
echo "${TRANSOM_MPICH:-$PWD/target/mpich}"
