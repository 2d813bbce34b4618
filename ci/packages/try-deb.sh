#!/bin/bash
# try-deb.sh DEB SOURCES: installs the package into this system, which is to be thrown away and in which the sources are hidden, tries
# what it brought, and removes it.
set -euo pipefail
deb=$1 sources=$2
cd "$(dirname "$0")"

failed() { echo "FAILED: $*" >&2; exit 1; }

[ ! -e "$sources/Cargo.toml" ] || failed "the sources are in reach"
dpkg --install "$deb" >/dev/null
files=$(dpkg --listfiles transom)
[ "$(command -v transom)" = /usr/bin/transom ] || failed "transom is $(command -v transom)"
zgrep -q 'EXIT STATUS' /usr/share/man/man1/transom-run.1.gz || failed "no manual"
bash -c 'source /usr/share/bash-completion/completions/transom && complete -p transom' >/dev/null
python3 -m venv venv
shopt -s nullglob
for wheel in mpi4py*.whl; do
    venv/bin/pip install --quiet --disable-pip-version-check --no-index "$wheel"
done
PATH=$PWD/venv/bin:/usr/lib/transom/bin:$PATH bash ./try.sh README.md windows.f90
dpkg --purge transom >/dev/null
while read -r file; do
    # Other packages may have put something into the same folders.
    [ ! -e "$file" ] || [ -d "$file" ] || failed "$file was left"
done <<<"$files"
[ ! -e /usr/lib/transom ] || failed "/usr/lib/transom was left"
