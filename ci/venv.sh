#!/bin/bash
# venv.sh FOLDER PACKAGE…: a virtual environment with these packages from PyPI; made once, though several tests ask for it at the same
# time, and made again where the last attempt was broken off.
set -euo pipefail
folder=$1
shift
mkdir -p "$(dirname "$folder")"
exec 9>"$folder.lock"
flock 9
if ! grep -qxs -- "$*" "$folder/packages"; then
    python3 -m venv --clear "$folder" >&2
    "$folder/bin/pip" install --quiet --disable-pip-version-check "$@" >&2 9>&-
    echo "$*" >"$folder/packages"
fi
