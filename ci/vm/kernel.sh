#!/bin/bash
# kernel.sh CACHE: what ci/vm/run.sh boots, made in the directory CACHE unless it is there. Installs nothing.
#
#   CACHE/kernel/vmlinux       Debian's kernel, as an ELF file
#   CACHE/kernel/lib/modules   its modules
#   CACHE/initrd               busybox, ci/vm/init and the modules that every VM loads
#
# To move on to Debian's present kernel, remove CACHE.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${1:?usage: kernel.sh CACHE}
PATH=$PATH:/usr/sbin:/sbin

die() { echo "kernel.sh: $*" >&2; exit 1; }

main() {
    for command in apt-cache dpkg-deb xz depmod objcopy busybox cpio flock; do
        command -v $command >/dev/null || die "$command is missing: run ci/install.sh as root"
    done
    mkdir -p "$cache"
    cache=$(cd "$cache" && pwd)
    exec 9>"$cache/lock"
    flock --timeout 600 9 || die "another one has held $cache/lock for 600 s"

    [ -d "$cache/kernel" ] || fetch_kernel
    local source
    for source in "$cache/kernel" "$here/init" "$here/kernel.sh"; do
        [ "$cache/initrd" -nt "$source" ] || { make_initrd; break; }
    done
}

# Everything is made beside and renamed when it is whole.
fetch_kernel() {
    local new=$cache/kernel.new package=
    rm -rf "$new"
    mkdir "$new"
    if ! download "$new" 2>"$cache/apt.log"; then
        # A fresh container has no package lists, an old one lists packages that are gone.
        { apt-get update -qq && download "$new"; } 2>>"$cache/apt.log" || {
            cat "$cache/apt.log" >&2
            die "apt-get download linux-image failed"
        }
    fi
    dpkg-deb --fsys-tarfile "$new/$package"_*.deb | tar -x -C "$new" --exclude='*/kernel/sound' \
        --exclude='*/drivers/gpu' --exclude='*/drivers/media' --exclude='*/drivers/net/*/*' --exclude='*/drivers/usb'
    rm "$new/$package"_*.deb
    [ -d "$new/lib" ] || ln -s usr/lib "$new/lib" # newer releases have /usr/lib/modules
    depmod -b "$new" "${package#linux-image-}" 2>"$cache/depmod.log" || die "depmod failed, see $cache/depmod.log"
    unpack "$new"/boot/vmlinuz-* "$new/vmlinux"
    mv "$new" "$cache/kernel"
}

download() { # directory; sets `package`
    package=$(apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
    [ -n "$package" ] && (cd "$1" && apt-get download -qq -o APT::Sandbox::User=root "$package" >/dev/null)
}

# QEMU starts an ELF kernel directly; an emulated CPU would take 10 s and more to unpack it.
unpack() { # vmlinuz vmlinux
    local start
    for start in $(LC_ALL=C grep -aboP '\xfd7zXZ\x00' "$1" | cut -d: -f1); do
        if tail -c "+$((start + 1))" "$1" | xz -dcq --single-stream >"$2" 2>/dev/null &&
            [ "$(head -c 4 "$2" | tail -c 3)" = ELF ]; then
            return
        fi
    done
    cp "$1" "$2" # packed in another way: QEMU boots it as it is
}

make_initrd() {
    local root=$cache/initrd.new release path name
    ldd "$(command -v busybox)" >/dev/null 2>&1 && die "busybox is not static: install busybox-static"
    release=$(ls "$cache/kernel/lib/modules")
    rm -rf "$root"
    mkdir -p "$root"/{bin,modules,proc,sys,dev,host,writes,root}
    cp "$(command -v busybox)" "$root/bin/busybox"
    for name in sh mount mkdir insmod ln hostname chroot; do
        ln -s busybox "$root/bin/$name"
    done
    install -m 755 "$here/init" "$root/init"
    for name in virtio_pci virtio_console 9p 9pnet_virtio overlay rdma_ucm rdma_rxe veth; do
        modprobe -S "$release" -d "$cache/kernel" --show-depends "$name"
    done | sed -n 's/^insmod \([^ ]*\).*/\1/p' | awk '!seen[$0]++' | while read -r path; do
        name=$(basename "${path%.xz}")
        case $path in
        *.xz) xz -dc "$path" >"$root/modules/$name" ;;
        *) cp "$path" "$root/modules/$name" ;;
        esac
        # This drops the signature, too: an emulated CPU is slow to check it.
        objcopy --strip-debug "$root/modules/$name"
        echo "$name" >>"$root/modules/list"
    done
    (cd "$root" && find . | cpio -o -H newc --quiet) >"$cache/initrd.cpio"
    mv "$cache/initrd.cpio" "$cache/initrd"
    rm -rf "$root"
}

main
