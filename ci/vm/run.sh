#!/bin/bash
# run.sh [options] -- COMMAND [ARGUMENT…]: runs a command of this machine in a VM that has soft-RoCE devices.
#
# COMMAND runs as root, in the same directory and file system; what it writes vanishes with the VM. Its output and exit
# status are given back: 124 says that the time was up, 125 that the VM broke.
#
#   --net pair          devices rxe0 (10.77.0.1) and rxe1 (10.77.0.2), joined by a link (default)
#   --net netns         the same, and namespaces h1 (10.99.0.1) and h2 (10.99.0.2) for processes; see ci/netns-rsh
#   --net single        device rxe0 only
#   --siw               beside each rxe a soft-iWARP device (siw0 10.78.0.1, siw1 10.78.0.2), from $TRANSOM_SIW_KO;
#                       with --net netns one more in each namespace (siw2 10.98.0.1, siw3 10.98.0.2)
#   --env NAME=VALUE    a variable for COMMAND, which inherits PATH, HOME, LANG, TRANSOM_* and RUST_* only
#   --timeout SECONDS   the VM's life, boot included (default 600)
#   --accel kvm         instead of emulation (tcg); where /dev/kvm works
#
# Needs what ci/install.sh installs. TRANSOM_VM_CACHE (default target/vm) keeps the kernel, fetched by the first run.
set -euo pipefail
here=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
cache=${TRANSOM_VM_CACHE:-$here/../../target/vm}
net=pair siw= limit=600 accel=tcg variables=()
PATH=$PATH:/usr/sbin:/sbin

usage() {
    echo "run.sh: $*" >&2
    sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2
    exit 2
}
broken() { echo "run.sh: $*" >&2; exit 125; }

parse() {
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        case $1 in
        --siw)
            siw=${TRANSOM_SIW_KO:-}
            [ -n "$siw" ] || usage "--siw needs TRANSOM_SIW_KO=/path/to/siw.ko"
            shift
            continue
            ;;
        --net | --env | --timeout | --accel) [ $# -gt 1 ] || usage "$1 needs a value" ;;
        *) usage "unknown option $1" ;;
        esac
        [[ "$1 $2" =~ ^(--net (pair|netns|single)|--env [A-Za-z_][A-Za-z0-9_]*=.*|--timeout [1-9][0-9]*|--accel (tcg|kvm))$ ]] ||
            usage "$1 cannot be '$2'"
        case $1 in
        --net) net=$2 ;;
        --env) variables+=("$2") ;;
        --timeout) limit=$2 ;;
        --accel) accel=$2 ;;
        esac
        shift 2
    done
    [ $# -gt 1 ] || usage "no command after --"
    shift
    command=("$@")
}

# What the VM is told, in a directory that it shares.
write_control() { # directory
    local name
    printf '%s=%q\n' scripts "$here" modules "$cache/kernel/lib/modules" net "$net" siw "$siw" >"$1/settings"
    {
        for name in $(compgen -e); do
            case $name in
            PATH | HOME | LANG | TRANSOM_* | RUST_*) printf 'export %s=%q\n' "$name" "${!name}" ;;
            esac
        done
        echo 'export TRANSOM_NETNS=' # the prefix of the namespaces' names
        for name in ${variables[@]+"${variables[@]}"}; do
            printf 'export %q\n' "$name"
        done
        printf 'cd %q || exit 125\n' "$PWD"
        printf 'exec'
        printf ' %q' "${command[@]}"
        echo
    } >"$1/command"
}

qemu() { # directory; descriptors 7 and 8 take the command's output
    local cpu kernel clock=
    cpu=(-cpu host)
    if [ "$accel" = tcg ]; then
        cpu=(-cpu max,-la57,-smap,-smep,-pku,-pks) # not what costs emulation time and gives nothing here
        # The emulated time-stamp counter is the host's. Left alone the VM measures its rate, and is often far off.
        clock="tsc_early_khz=$(awk '/^cpu MHz/ { printf "%d", $4 * 1000; exit }' /proc/cpuinfo) tsc=reliable"
        clock+=" clocksource=tsc no_timer_check"
    fi
    kernel="console=ttyS0 quiet panic=-1 mitigations=off nokaslr audit=0 random.trust_cpu=on net.ifnames=0 $clock"
    # With the death signal it ends even when this script is killed; timeout passes it on.
    exec setpriv --pdeathsig TERM timeout --kill-after 5 "$limit" qemu-system-x86_64 \
        -M q35 -accel "$accel" "${cpu[@]}" -smp 2 -m 4G -nodefaults -no-user-config -display none -no-reboot \
        -kernel "$cache/kernel/vmlinux" -initrd "$cache/initrd" -append "$kernel" \
        -chardev "file,id=console,path=$1/console" -serial chardev:console \
        -virtfs local,path=/,mount_tag=host,security_model=none,multidevs=remap,readonly=on \
        -virtfs "local,path=$1/control,mount_tag=control,security_model=none" \
        -device virtio-serial-pci \
        -add-fd fd=7,set=7 -chardev file,id=out,path=/dev/fdset/7,append=on -device virtserialport,chardev=out,name=stdout \
        -add-fd fd=8,set=8 -chardev file,id=err,path=/dev/fdset/8,append=on -device virtserialport,chardev=err,name=stderr
}

tear_down() {
    if [ -n "$vm" ]; then
        kill "$vm" 2>/dev/null || true
        wait "$vm" || true
    fi
    rm -rf "$run"
}

main() {
    parse "$@"
    [ "$accel" = tcg ] || [ -w /dev/kvm ] || broken "/dev/kvm is missing or not ours"
    command -v qemu-system-x86_64 >/dev/null || broken "qemu-system-x86_64 is missing: run ci/install.sh as root"
    [ -z "$siw" ] || siw=$(readlink -e "$siw") || broken "there is no $TRANSOM_SIW_KO"
    "$here/kernel.sh" "$cache" || exit 125
    cache=$(cd "$cache" && pwd)

    run=$(mktemp -d -t transom-vm.XXXXXX)
    vm=
    trap tear_down EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    trap 'exit 141' USR1 # nobody reads our output any more: the status of a broken pipe
    mkdir "$run/control"
    write_control "$run/control"

    # QEMU wants descriptors that can be written only: pipes, whatever this script's are.
    mkfifo "$run/stdout" "$run/stderr"
    { cat "$run/stdout" || kill -USR1 $$; } & local readers=($!)
    { cat "$run/stderr" >&2 || kill -USR1 $$; } & readers+=($!)
    local started=$SECONDS
    qemu "$run" 7>"$run/stdout" 8>"$run/stderr" </dev/null >"$run/qemu.log" 2>&1 &
    vm=$!
    wait "$vm" || true
    vm=
    wait "${readers[@]}"

    [ ! -s "$run/control/status" ] || exit "$(<"$run/control/status")"
    local status=125
    [ $((SECONDS - started)) -lt "$limit" ] || status=124
    echo "run.sh: no exit status after $((SECONDS - started)) s; QEMU and the VM's console said:" >&2
    tail -n 40 "$run/qemu.log" "$run/console" >&2
    exit $status
}

main "$@"
