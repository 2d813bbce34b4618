#!/bin/bash
# deb.sh STAGE DIR: packs what stage.sh laid out into a Debian package in DIR, and prints its name. DEBFULLNAME and DEBEMAIL say who
# builds it.
#
# The wrappers stay in /usr/lib/transom/bin: mpicc, mpiexec, oshcc and their like in /usr/bin belong to Debian's own MPI, and to its alternatives.
set -euo pipefail
stage=$(cd "$1" && pwd)
mkdir -p "$2"
out=$(cd "$2" && pwd)
cd "$(dirname "$0")/../.."
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
umask 022

version=$("$stage/bin/transom" --version | cut -d' ' -f2)
architecture=$(dpkg --print-architecture)
maintainer="${DEBFULLNAME:-The Transom developers} <${DEBEMAIL:-root@$(hostname -f 2>/dev/null || hostname)}>"
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH

# What the binaries need, by Debian's names.
depends=
while read -r library number; do
    case $library in
    glibc) depends="libc6 (>= $number)" ;;
    libc.so.* | libm.so.* | ld-linux*) ;;
    libgcc_s.so.1) depends="$depends, libgcc-s1 (>= 4.2)" ;;
    *) echo "deb.sh: whose is $library?" >&2; exit 1 ;;
    esac
done < <(ci/packages/elf.py "$stage")

mkdir -p "$root/DEBIAN" "$root/usr"
cp -a "$stage/." "$root/usr/"
mkdir "$root/usr/lib/transom/bin"
mv "$root"/usr/bin/mpi* "$root"/usr/bin/osh* "$root/usr/lib/transom/bin/"
chmod 644 "$root"/usr/lib/transom/lib/*.so.* "$root"/usr/lib/transom/lib/mpich-abi/*.so.*
mv "$root/usr/share/zsh/site-functions" "$root/usr/share/zsh/vendor-completions"

doc=$root/usr/share/doc/transom
cat >"$doc/copyright" <<END
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Transom
Comment: The binaries hold libraries of Rust; THIRD-PARTY.gz has their names and licences.

Files: *
Copyright: $(date -u -d "@$SOURCE_DATE_EPOCH" +%Y) $(sed -n 's/^Copyright (c) //p' LICENSE-MIT)
License: MIT or Apache-2.0

License: MIT
$(sed -e '0,/^Copyright/d' -e '/./,$!d' -e 's/^$/./' -e 's/^/ /' LICENSE-MIT)

License: Apache-2.0
 See /usr/share/common-licenses/Apache-2.0.
END
cat >"$doc/changelog" <<END
transom ($version) unstable; urgency=medium

  * Version $version.

 -- $maintainer  $(date -R -u -d "@$SOURCE_DATE_EPOCH")
END
rm "$doc"/LICENSE-*
gzip -9n "$doc/changelog" "$doc/THIRD-PARTY" "$root"/usr/share/man/man1/*.1

cat >"$root/DEBIAN/control" <<END
Package: transom
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $(du -sk --apparent-size "$root/usr" | cut -f1)
Depends: $depends
Suggests: gcc, gfortran, ibverbs-providers, libfabric1, librdmacm1, openssh-client
Section: net
Priority: optional
Description: one-sided communication: the windows of MPI over shared memory and RDMA
 The command transom starts the ranks of a job on one or several hosts. Programs
 that were built for MPI-5's ABI (libmpi_abi.so.1), or for that of MPICH and
 Intel MPI (libmpi.so.12, libmpich.so.12), run by it on Transom's libraries,
 which are in /usr/lib/transom and in nobody else's way. So is libsma.so, with
 OpenSHMEM 1.5.
 .
 Compilers' wrappers (mpicc, mpicxx, mpifort, oshcc, oshcxx), mpiexec and
 oshrun are in /usr/lib/transom/bin, to be put on the PATH.
END
(cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
package=$out/transom_${version}_$architecture.deb
dpkg-deb --root-owner-group -Zxz --build "$root" "$package" >/dev/null
echo "$package"
