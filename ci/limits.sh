#!/bin/bash
# limits.sh [DIR]: jobs under each limit of the system, at values below and above what they need: the right result, or a line that
# names the limit. Prints a table. DIR holds the binaries. What needs root is skipped without it.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$(cd "${1:-target/release}" && pwd)
out=$(mktemp -d)
chmod 1777 "$out"
group=
cleanup() {
    rm -rf "$out"
    [ -z "$group" ] || rmdir "$group" || true
}
trap cleanup EXIT
failed=0
rows=0
ci/count.sh ci/data/*.txt >"$out/expected.tsv"

skip() { # why
    [ -z "${CI:-}" ] || { echo "CI must be able to: $1"; exit 1; }
    echo "skipped: $1"
}

# A user's own limits hold for nobody else; root is not limited in processes.
user=(setpriv --reuid 47110 --regid 47110 --clear-groups --)

# The jobs: programs of their own, which need no second process before `transom`.
mkdir "$out/jobs"
job() { # name arguments...
    local name=$1
    shift
    printf '#!/bin/sh\nexec %s run -n 4 --timeout 150 %s\n' "$bin/transom" "$*" >"$out/jobs/$name"
    chmod a+x "$out/jobs/$name"
}
job words wordcount --tsv "$PWD/ci/data/*.txt"
job picture heat 200 150 10 -o "$out/picture.png"
job plates heat 2500 2500 2 -o "$out/plates.png"
job aborting "sh -c 'cd $out; [ \$PMI_RANK != 1 ] || kill -ABRT \$\$; sleep 20'"
# On a full disk nothing is left of a picture.
mkdir "$out/disk"
cat >"$out/jobs/onto_disk" <<END
#!/bin/sh
"$bin/transom" run -n 4 --timeout 150 heat 200 150 10 -o "$out/disk/picture.png"
code=\$?
[ \$code = 0 ] || [ -z "\$(ls -A "$out/disk")" ] || { echo "left behind: \$(ls -A "$out/disk")" >&2; exit 0; }
exit \$code
END
chmod a+x "$out/jobs/onto_disk"

# A row of the table: limit, value, the job, what is to come (right, or a pattern of a line), and the command that sets the limit.
try() { # limit value job expected command...
    local limit=$1 value=$2 job=$3 expected=$4 code=0 result line=""
    shift 4
    local start=${EPOCHREALTIME/./} ms
    rm -f "$out"/*.png "$out"/.heat-*
    # Nothing but pipes: what is written to files is limited, too.
    { { timeout 200 "$@" "$out/jobs/$job" 2>&3 | cat >"$out/result"; exit "${PIPESTATUS[0]}"; } 3>&1 | cat >"$out/errors"; code=${PIPESTATUS[0]}; } || true
    ms=$(((${EPOCHREALTIME/./} - start) / 1000))
    if [ "$code" = 0 ]; then
        result=right
        [ "$job" != words ] || cmp -s "$out/result" "$out/expected.tsv" || result=wrong
        [ "$job" != picture ] || [ -s "$out/picture.png" ] || result=wrong
    else
        line=$(grep -E -m1 -- "${expected#right or }" "$out/errors" || tail -1 "$out/errors")
        result="code $code"
    fi
    # Where the system leaves what is needed to chance.
    if [ "${expected#right or }" != "$expected" ]; then
        expected=${expected#right or }
        [ "$code" != 0 ] || expected=right
    fi
    local verdict=ok
    case $expected in
    right) [ "$result" = right ] || verdict=FAILED ;;
    *) [ "$code" != 0 ] && [ ! -s "$out/picture.png" ] && [ -z "$(find "$out" -maxdepth 1 -name '.heat-*')" ] && grep -qE -- "$expected" "$out/errors" && [ "$code" != 124 ] && [ $ms -lt 15000 ] || verdict=FAILED ;;
    esac
    [ $verdict = ok ] || failed=$((failed + 1))
    rows=$((rows + 1))
    printf '%-9s %-11s %-9s %-8s %5d ms  %-6s %s\n' "$limit" "$value" "$job" "$result" "$ms" "$verdict" "${line:0:230}"
}

below() { # limit option job pattern values...
    local limit=$1 option=$2 job=$3 pattern=$4
    shift 4
    for value in "$@"; do try "$limit" "$value" "$job" "$pattern" prlimit "--$option=$value"; done
}
above() { # limit option job values...
    local limit=$1 option=$2 job=$3
    shift 3
    for value in "$@"; do try "$limit" "$value" "$job" right prlimit "--$option=$value"; done
}

mib=$((1 << 20))
printf '%-9s %-11s %-9s %-8s\n' limit value job result
below nofile nofile words 'open files.*\(ulimit -H?n\)' 12 24 35
above nofile nofile words 40 64 1024
below as as plates 'address space is [0-9]+ MiB \(ulimit -v\)' $((48 * mib)) $((64 * mib)) $((80 * mib))
above as as plates $((512 * mib)) $((1024 * mib)) $((64 << 30))
below data data words 'data is [0-9]+ [MK]iB \(ulimit -d\)' $((1 * mib)) $((3 * mib / 2)) $((2 * mib))
above data data words $((16 * mib)) $((64 * mib)) $((1024 * mib))
# Where a stack begins is random, and the environment lies on it. Code that is not optimised takes more.
stacks=(16384 18432 20480)
[ "${bin##*/}" = release ] || stacks=(22528 24576 26624)
below stack stack words 'right or stacks is [0-9]+ KiB \(ulimit -s\)' "${stacks[@]}"
above stack stack words 131072 $((1 * mib)) $((8 * mib))
below fsize fsize picture 'size of files is [0-9]+ KiB \(ulimit -f\)' 0 1024 4096
above fsize fsize picture $((1 * mib)) $((16 * mib)) $((1024 * mib))
above fsize fsize words 0 $((1 * mib)) $((16 * mib))
# Nothing is locked on shared memory.
above memlock memlock words 0 65536 $mib
above core core words 0 65536 unlimited
below core core aborting 'rank 1 .* was killed by signal 6 \(SIGABRT\)' 0 65536
if [ "$(id -u)" = 0 ]; then
    for value in 1 4 8; do
        try nproc "$value" words 'processes( and threads)? is [0-9]+ \(ulimit -u\)|limit is [0-9]+ \(ulimit -u\)' "${user[@]}" prlimit "--nproc=$value"
    done
    for value in 24 64 1024; do try nproc "$value" words right "${user[@]}" prlimit "--nproc=$value"; done
    for value in 4k 1m 16m 1g; do
        try /dev/shm "$value" words right unshare -m sh -c "mount -t tmpfs -o size=$value none /dev/shm && exec \"\$@\"" sh
    done
    for value in 4k 8k 16k; do
        try disk "$value" onto_disk 'cannot write .*no space left' unshare -m sh -c "mount -t tmpfs -o size=$value none $out/disk && exec \"\$@\"" sh
    done
    for value in 1m 4m 16m; do
        try disk "$value" onto_disk right unshare -m sh -c "mount -t tmpfs -o size=$value none $out/disk && exec \"\$@\"" sh
    done
else
    skip "limits of processes, /dev/shm, and disks that are full, need root"
fi

# A cgroup of version 2 or 1 whose memory can be limited.
in_group() { # bytes command...
    echo "$1" >"$group/$limit_file"
    # Else the limit holds back nothing but the processes' speed.
    echo 0 >"$group/memory.swap.max" 2>/dev/null || true
    shift
    sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@"
}
for place in "/sys/fs/cgroup memory.max" "/sys/fs/cgroup/memory memory.limit_in_bytes"; do
    read -r root limit_file <<<"$place"
    group=$root/transom-limits-$$
    mkdir "$group" 2>/dev/null && [ -w "$group/$limit_file" ] && break
    rmdir "$group" 2>/dev/null || true
    group=
done
if [ -n "$group" ]; then
    export group limit_file
    export -f in_group
    for value in 24 48 64; do
        try memory "${value}m" plates "cgroup's limit of $value MiB" bash -c 'in_group "$@"' bash $((value * mib))
    done
    for value in 512 1024 4096; do try memory "${value}m" plates right bash -c 'in_group "$@"' bash $((value * mib)); done
else
    # Not every container has one, root or not.
    echo "skipped: no cgroup here whose memory can be limited"
fi
echo "$rows cases, $failed failed"
[ $failed = 0 ]
