#!/bin/bash
# install.sh [--without-vm]: what the tests need beside a Rust toolchain, and the VM for those that need RDMA devices. As root it
# installs what is missing, else it says what is.
set -euo pipefail

# command or file that shows it is there -> Debian package
needs=(
    "lib:libfabric.so.1 libfabric1"
    "cmd:cc gcc"
    "cmd:c++ g++"
    "cmd:gfortran gfortran"
    "cmd:valgrind valgrind"
    "cmd:ip iproute2"
    "cmd:nft nftables"
    "cmd:slurmctld slurm-wlm"
    "cmd:munged munge"
    "lib:libpmix.so.2 libpmix2"
    "py:venv python3-venv"
    "cmd:objcopy binutils"
    "lib:librdmacm.so.1 librdmacm1"
    "file:/etc/libibverbs.d/rxe.driver ibverbs-providers"
)
[ "${1:-}" = --without-vm ] || needs+=(
    "cmd:qemu-system-x86_64 qemu-system-x86"
    "cmd:busybox busybox-static"
    "cmd:cpio cpio"
    "cmd:modprobe kmod"
    "cmd:xz xz-utils"
    "cmd:ibv_devinfo ibverbs-utils"
    "cmd:ib_write_lat perftest"
)
PATH=$PATH:/usr/sbin:/sbin

missing=()
for need in "${needs[@]}"; do
    read -r what package <<<"$need"
    case $what in
    cmd:*) command -v "${what#cmd:}" >/dev/null || missing+=("$package") ;;
    py:*) python3 -c "import ${what#py:}, ensurepip" 2>/dev/null || missing+=("$package") ;;
    file:*) [ -e "${what#file:}" ] || missing+=("$package") ;;
    lib:*) /sbin/ldconfig -p | grep -q "${what#lib:}" || missing+=("$package") ;;
    esac
done
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "missing: ${missing[*]} (Debian's names). Without them the tests that need them are skipped." >&2
    [ -z "${CI:-}" ] || exit 1
    exit 0
fi
echo "installing: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
