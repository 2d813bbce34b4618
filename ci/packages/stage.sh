#!/bin/bash
# stage.sh DIR [PROFILE]: lays out below DIR, from what `cargo build --release` built, what packages hold: bin, lib/transom (libraries
# and headers, apart from those of others), share (manual pages, completions, batch scripts, licences).
set -euo pipefail
stage=$1 profile=${2:-release}
cd "$(dirname "$0")/../.."

rm -rf "$stage"
mkdir -p "$stage/lib/transom"
stage=$(cd "$stage" && pwd)
ffi/mpi/install.sh "$profile" "$stage/lib/transom" >/dev/null
ffi/shmem/install.sh "$profile" "$stage/lib/transom" >/dev/null
mv "$stage/lib/transom/bin" "$stage/bin"
mkdir "$stage/lib/transom/libexec"
cp "${CARGO_TARGET_DIR:-target}/$profile/bench" "$stage/lib/transom/libexec/"
find "$stage" -type f \( -name transom -o -name bench -o -name '*.so.*' \) -exec strip --strip-unneeded {} +

transom=$stage/bin/transom
share=$stage/share
mkdir -p "$share/doc/transom" "$share/transom/slurm"
"$transom" man "$share/man/man1"
completions() { # shell file
    mkdir -p "$share/$(dirname "$2")"
    "$transom" completions "$1" >"$share/$2"
}
completions bash bash-completion/completions/transom
completions zsh zsh/site-functions/_transom
completions fish fish/vendor_completions.d/transom.fish
cp LICENSE-MIT LICENSE-APACHE "$share/doc/transom/"
cp launcher/slurm/*.sbatch "$share/transom/slurm/"
ci/packages/notices.py >"$share/doc/transom/THIRD-PARTY"
