#!/bin/bash
# mpi4py.sh: prints a Python that has mpi4py and NumPy as PyPI has them, built for MPICH's ABI: TRANSOM_PYTHON, else that of
# target/mpi4py, into which they are installed once.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -n "${TRANSOM_PYTHON:-}" ]; then
    "$TRANSOM_PYTHON" -c 'import mpi4py, numpy'
    echo "$TRANSOM_PYTHON"
else
    ci/venv.sh "$PWD/target/mpi4py" --only-binary :all: mpi4py==4.1.2 numpy
    echo "$PWD/target/mpi4py/bin/python"
fi
