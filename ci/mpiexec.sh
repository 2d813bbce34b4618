#!/bin/bash
# mpiexec.sh [DIR]: jobs started by MPICH's mpiexec. DIR holds the binary wordcount.
#
# TRANSOM_MPIEXEC names an mpiexec; otherwise it is that of ci/mpich.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$(cd "${1:-target/release}" && pwd)
[ -x "$bin/wordcount" ] || { echo "mpiexec.sh: no wordcount in $bin" >&2; exit 2; }
mpiexec=${TRANSOM_MPIEXEC:-$(ci/mpich.sh)/bin/mpiexec}

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
files=(ci/data/*.txt)
ci/count.sh "${files[@]}" >"$out/expected"
passed=0
failed=0
check() { # name command…
    local name=$1 start=$SECONDS
    shift
    if timeout 240 "$@" >"$out/stdout" 2>"$out/stderr" </dev/null && cmp "$out/expected" "$out/stdout" >&2; then
        echo "ok      $name ($((SECONDS - start)) s)"
        passed=$((passed + 1))
    else
        echo "FAILED  $name"
        head -n 20 "$out/stderr" | sed 's/^/        /'
        failed=$((failed + 1))
    fi
}
for transport in shm tcp ofi; do
    export TRANSOM_TRANSPORT=$transport
    check "mpiexec, 4 ranks, $transport" "$mpiexec" -n 4 "$bin/wordcount" --tsv "${files[@]}"
    check "mpiexec -pmi-port, 4 ranks, $transport" "$mpiexec" -pmi-port -n 4 "$bin/wordcount" --tsv "${files[@]}"
done
check "mpiexec, 1 rank" "$mpiexec" -n 1 "$bin/wordcount" --tsv "${files[@]}"
echo "$passed passed, $failed failed"
[ $failed = 0 ]
