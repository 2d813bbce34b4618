#!/bin/bash
# packages.sh [DIR]: builds the wheel and the Debian package from what `cargo build --release` built, into DIR (target/packages), and
# tries both where nothing but what they bring is in reach: a new virtual environment, with mpi4py as PyPI has it, and this system
# under an overlay in which the sources are hidden.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
packages=${1:-target/packages}
mkdir -p "$packages"
packages=$(cd "$packages" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

failed() { echo "FAILED: $*" >&2; exit 1; }
missing() {
    [ -z "${CI:-}" ] || { echo "CI must have $1" >&2; exit 1; }
    echo "skipped: there is no $1"
}
pip() { python3 -m venv "$work/venv" && "$work/venv/bin/pip" --quiet --disable-pip-version-check "$@"; }

ci/packages/stage.sh "$work/stage"
wheel=$(ci/packages/wheel.py "$work/stage" "$packages")
deb=
if command -v dpkg-deb >/dev/null; then
    deb=$(ci/packages/deb.sh "$work/stage" "$packages")
    if command -v lintian >/dev/null; then
        # Who builds the package here is nobody that could be written to.
        builder=bogus-mail-host,bogus-mail-host-in-debian-changelog,root-in-contact
        lintian --allow-root --fail-on error --suppress-tags $builder "$deb"
        echo "ok: lintian"
    fi
fi
(cd "$work/stage" && du -h --apparent-size bin/transom lib/transom/lib/{libmpi_abi.so.1,mpich-abi/libmpi.so.12} "$wheel" ${deb:+"$deb"})

# What is tried, out of the sources, and nothing of this shell's environment.
mkdir "$work/try"
cp README.md ci/packages/try*.sh ffi/mpich/tests/fortran/windows.f90 "$work/try/"
pip download --only-binary :all: --no-deps --dest "$work/try" mpi4py || missing "PyPI, for mpi4py"
cd "$work/try"
clean() { # PATH command...
    local path=$1
    shift
    env -i ${CI:+CI="$CI"} HOME="$work/try" LANG=C.UTF-8 PATH="$path" "$@"
}

try_wheel() {
    echo "--- the wheel, in a new virtual environment"
    local venv=$work/venv python=$work/venv/bin/python
    shopt -s nullglob
    pip install --no-index "$wheel" mpi4py*.whl
    clean "$venv/bin:/usr/bin:/bin" bash ./try.sh README.md windows.f90
    [ -s "$venv/share/man/man1/transom-run.1" ] || failed "no manual"
    [ -s "$venv/share/transom/slurm/transom.sbatch" ] || failed "no batch scripts"
    if "$python" -c 'import mpi4py' 2>/dev/null; then
        local ask='from mpi4py import MPI; print(MPI.COMM_WORLD.size, MPI.Get_library_version().split()[0])'
        [ "$(clean /usr/bin:/bin "$python" -c "$ask")" = "1 Transom" ] || failed "Python alone"
        # Another package's libmpi.so in Python's own lib, which mpi4py takes first if it is not told.
        echo 'int MPI_Get_version(int *a, int *b) { return a != b; }' |
            cc -shared -fPIC -x c - -Wl,-soname,libmpi.so.12 -o "$venv/lib/libmpi.so"
        ! clean /usr/bin:/bin "$python" -c "$ask" 2>/dev/null || failed "the other library was not taken"
        clean /usr/bin:/bin "$venv/bin/transom" run -n 2 "$python" -c "$ask" >asked
        [ "$(grep -cx "2 Transom" asked)" = 2 ] || failed "Python beside another MPI: $(cat asked)"
        echo "ok: Python, alone, and beside another MPI"
    fi
    "$venv/bin/pip" uninstall --quiet --yes transom
    # Pip leaves empty folders.
    local left
    left=$(find "$venv" -not -type d \( -path '*transom*' -o -path '*/bin/mpi[cefr]*' -o -path '*/bin/osh*' -o -name 'libmpi.so.12' \))
    [ -z "$left" ] || failed "left was $left"
}

# In a mount namespace of its own: this system with an upper layer in memory, into which the package is installed.
try_deb() {
    echo "--- the Debian package, on this system under an overlay"
    local layer=$work/layer new=$work/layer/root
    mkdir "$layer"
    mount -t tmpfs none "$layer"
    mkdir "$layer"/{upper,work,root}
    mount -t overlay overlay -o "lowerdir=/,upperdir=$layer/upper,workdir=$layer/work" "$new"
    for folder in proc dev sys; do mount --rbind "/$folder" "$new/$folder"; done
    # These may be on other file systems than the root's.
    mkdir -p "$new/$work" "$new/$root"
    mount -t tmpfs none "$new/$root"
    cp -r "$work/try" "$deb" "$new/$work/"
    clean /usr/sbin:/usr/bin:/sbin:/bin chroot "$new" bash "$work/try/try-deb.sh" "$work/${deb##*/}" "$root"
}

try_wheel
if [ -z "$deb" ]; then
    missing dpkg-deb
elif [ "$(id -u)" != 0 ] || ! command -v unshare >/dev/null; then
    missing "root with unshare, to install the Debian package under an overlay"
else
    export -f try_deb clean
    export work deb root
    unshare --mount bash -euo pipefail -c try_deb
fi
echo "packages: $wheel${deb:+, $deb}"
