#!/bin/bash
# mpi4py.sh: prints a Python that has mpi4py and NumPy as PyPI has them, built for MPICH's ABI: TRANSOM_PYTHON, else that of
# target/mpi4py, into which they are installed once.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$PWD/target/mpi4py
python=${TRANSOM_PYTHON:-$folder/bin/python}
if ! "$python" -c 'import mpi4py, numpy' 2>/dev/null; then
    python3 -m venv "$folder" >&2
    "$folder/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: mpi4py==4.1.2 numpy >&2
    python=$folder/bin/python
fi
echo "$python"
