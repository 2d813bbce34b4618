#!/bin/bash
# mpich.sh: prints the folder of an MPICH, with include/mpi.h, lib/libmpi.so.12 and bin/mpiexec: TRANSOM_MPICH, else target/mpich, into
# which it is installed from PyPI once.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${TRANSOM_MPICH:-$PWD/target/mpich}
if ! [ -e "$folder/lib/libmpi.so.12" ]; then
    python3 -m venv "$folder" >&2
    "$folder/bin/pip" install --quiet --disable-pip-version-check mpich==5.0.2 >&2
fi
echo "$folder"
