#!/bin/bash
# containers.sh [DIR]: jobs whose ranks are in containers of their own, or to which the kernel refuses what it grants elsewhere.
# Prints a table: for each place and program the way between ranks, if the result is right, or how soon one line says why there is
# none. DIR holds the binaries and libmpi_abi.so. Needs root, unshare, setpriv, iproute2 and a C compiler; takes two minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$(cd "${1:-target/release}" && pwd)
for tool in unshare setpriv ip cc; do
    command -v $tool >/dev/null || { echo "containers.sh: $tool is missing" >&2; exit 2; }
done
[ "$(id -u)" = 0 ] || { echo "containers.sh: must be root" >&2; exit 2; }

# A place that users other than root see, and containers that have a /tmp of their own.
out=$(mktemp -d -p /var/tmp)
[ -n "${KEEP:-}" ] || trap 'rm -rf "$out"' EXIT
chmod 755 "$out"
mkdir "$out/work"
chmod 1777 "$out/work"
CARGO_TARGET_DIR=$(dirname "$bin") ffi/mpi/install.sh "$(basename "$bin")" "$out/mpi" >/dev/null
cc -O1 -o "$out/deny" ci/containers/deny.c
"$out/mpi/bin/mpicc" -O1 -o "$out/moves" ci/containers/moves.c
cp "$bin/wordcount" "$bin/heat" "$bin/transom" ci/data/*.txt "$out"
cc -O1 -shared -fPIC -o "$out/sealed.so" ci/containers/sealed.c
ci/count.sh ci/data/*.txt >"$out/expected.tsv"
cd "$out/work"
"$out/transom" run -n 1 "$out/heat" 200 150 100 -o 1.png --field expected.raw >/dev/null

cat >"$out/enter" <<'END'
#!/bin/sh
# enter PLACE PROGRAM...: runs a program in a place of its own.
place=$1
here=$(dirname "$0")
shift
nobody="setpriv --reuid=65534 --regid=65534 --clear-groups"
own="unshare --map-current-user"
case $place in
plain) exec "$@" ;;
user) exec $own "$@" ;;
pid) exec unshare --pid --fork --kill-child "$@" ;;
net) exec unshare --net "$@" ;;
every) exec $own --pid --fork --kill-child --net --ipc --uts "$@" ;;
docker) exec "$here/deny" all "$@" ;;
yama) exec "$here/deny" others "$@" ;;
sealed) LD_PRELOAD=$here/sealed.so exec $nobody "$@" ;;
hidepid) exec unshare --mount sh -c 'mount -t proc -o hidepid=2 proc /proc && exec "$@"' sh $nobody "$@" ;;
noproc) exec unshare --mount sh -c 'umount -l /proc && exec "$@"' sh "$@" ;;
one) if [ "$PMI_RANK" = 0 ]; then exec "$@"; else exec $own --pid --fork --kill-child "$@"; fi ;;
apart) exec unshare --map-root-user --pid --fork --kill-child --mount "$here/enter" hide "$@" ;;
alone) exec unshare --net "$here/enter" apart "$@" ;;
remote) exec "$here/enter" veth "$here/enter" apart "$@" ;;
hide) mount -t tmpfs tmpfs /dev/shm && mount -t tmpfs tmpfs /tmp && cd /tmp && exec "$@" ;;
# Addresses of one network that leads nowhere, where nothing answers and nothing refuses.
dead) exec unshare --net "$here/enter" deaf "$@" ;;
deaf)
    ip link add eth0 type veth peer name eth1 && ip address add "10.7.0.$((PMI_RANK + 1))/24" dev eth0 &&
        ip link set eth0 up && ip link set eth1 up && ip link set lo up || exit 9
    for number in 1 2 3 4; do
        ip neighbour add 10.7.0.$number lladdr 02:00:00:00:00:01 dev eth0 || exit 9
    done
    exec "$@" ;;
veth) exec ip netns exec "${TRANSOM_NETNS}h$((PMI_RANK % 2 + 1))" "$@" ;;
esac
END
chmod 755 "$out/enter"

failed=0
passed=0
declare -A expected=()
# What is to be seen in each cell, which shortens names of ways.
short() {
    sed -n 's/^rank 0, ways to other ranks: \([a-z]*\) (\(.*\)) to .*/\1 \2/p' "$1" | sort -u |
        sed 's/^shm memory files, cross-memory attach.*/shm/; s/^shm memory files.*/shm-/; s/^\(tcp\|ofi\) .*/\1/' |
        sort -u | paste -sd+
}

cell() { # place expected program...
    local place=$1 wanted=$2 program=$3 status=0 found
    shift 3
    local start=${EPOCHREALTIME/./}
    rm -f "$out"/work/{4.png,field.raw}
    LD_LIBRARY_PATH=$out/mpi/lib timeout 240 ${wrapper:-} "$out/transom" run -n 4 \
        "$out/enter" "$place" "$out/$program" "$@" >"$out/stdout" 2>"$out/stderr" </dev/null || status=$?
    local took=$(((${EPOCHREALTIME/./} - start) / 100000))
    took=$((took / 10)).$((took % 10))
    if [ $status = 0 ]; then
        found=$way
        case $program in
        wordcount) cmp -s "$out/expected.tsv" "$out/stdout" || found=WRONG ;;
        heat) cmp -s expected.raw field.raw || found=WRONG ;;
        moves) [ "$(cat "$out/stdout")" = right ] || found=WRONG ;;
        esac
    elif [ $status = 124 ]; then
        found=HANGS
    else
        found="error"
        [ "${took%.*}" -lt "${bound:-12}" ] && grep -q "rank [0-9].*\(rank\|peer\) [0-9]" "$out/stderr" || found=BAD-ERROR
    fi
    if [ "$found" = "$wanted" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        { echo "--- $place, $program $*: $found, not $wanted; exit code $status"; grep -v '^ \|^$' "$out/stderr" | head -12; } >>"$out/failures"
    fi
    printf ' %-15s' "$found ($took s)"
}

row() { # title place expected
    printf '%-34s' "$1"
    if [ -n "${only:-}" ]; then
        cell "$2" "$3" moves $only
        echo " (400 KB messages)"
        grep -h "rank [0-9].*\(rank\|peer\) [0-9]" "$out/stderr" | head -1 | cut -c1-300 | sed 's/^/    /'
        return
    fi
    # Counting operations goes other ways than not counting them, so it is a job of its own that tells the way.
    TRANSOM_EXPLAIN=yes LD_LIBRARY_PATH=$out/mpi/lib timeout 240 ${wrapper:-} "$out/transom" run -n 4 \
        "$out/enter" "$2" "$out/moves" created >"$out/stdout" 2>"$out/stderr" </dev/null || true
    way=$(short "$out/stderr")
    cell "$2" "$3" wordcount --tsv "$out"/*.txt
    cell "$2" "$3" heat 200 150 100 -o "$out/work/4.png" --field "$out/work/field.raw"
    cell "$2" "$3" moves window
    cell "$2" "$3" moves messages
    cell "$2" "$3" moves created
    echo
    [ "$3" != error ] || grep -h "rank [0-9].*\(rank\|peer\) [0-9]" "$out/stderr" | head -1 | cut -c1-300 | sed 's/^/    /'
}

: >"$out/failures"
printf '%-34s %-15s %-15s %-15s %-15s %s\n' "a rank of its own in each" wordcount heat window "400 KB messages" "created windows"
row "process" plain shm
row "user namespace" user shm-
row "PID namespace" pid shm-
row "network namespace" net shm
row "all of these, and IPC, UTS" every shm-
row "seccomp: no process_vm_*, ptrace" docker shm-
row "Yama 2 or 3: none of others" yama shm-
row "user, not dumpable" sealed shm-
row "user, /proc with hidepid=2" hidepid shm
row "mount namespace without /proc" noproc shm
row "container, but for rank 0" one shm-
row "container with its own /tmp" apart shm-
row "the same without a network" alone error
export TRANSOM_TRANSPORT=tcp
row "network namespace, TRANSPORT=tcp" net error
# As long as tcp tries by default is as long as it may take.
only=messages row "network without a way, tcp" dead error
wrapper=$OLDPWD/ci/netns.sh
row "joined by veth, TRANSPORT=tcp" veth tcp
unset TRANSOM_TRANSPORT
row "joined by veth" veth shm
row "container, joined by veth alone" remote shm-+tcp
if ! "$out/transom" info | grep -q "no libfabric:"; then
    export TRANSOM_TRANSPORT=ofi
    row "joined by veth, TRANSPORT=ofi" veth ofi
    wrapper=
    # Libraries of Debian's libfabric measure the clock by 900 short sleeps when they are loaded: on a busy machine 20 s.
    bound=60 row "network namespace, TRANSPORT=ofi" net error
    # libfabric has no bound of its own, and a peer that is besieged by strangers may take long to answer.
    only=messages bound=60 TRANSOM_OFI_SILENCE=8 row "network without a way, ofi" dead error
fi
cat "$out/failures"
echo "shm: shared memory; shm-: the same, with memory that is only the program's by messages"
echo "$passed passed, $failed failed"
[ $failed = 0 ]
