#!/usr/bin/env -S python3 -B
"""wheel.py STAGE DIR: packs what stage.sh laid out into a wheel in DIR, and prints the wheel's name.

Wheels know no links. Scripts are copied for each of their names; of a library there is one, and its other names are shared objects of
some kilobytes that need it."""

import base64
import hashlib
import pathlib
import platform
import subprocess
import sys
import tempfile
import zipfile

import elf

ROOT = pathlib.Path(__file__).parents[2]
MPICH = "lib/transom/lib/mpich-abi/libmpi.so.12"
# What every system with such a glibc has, by the rules of manylinux.
SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libgcc_s.so.1"}

METADATA = """\
Metadata-Version: 2.4
Name: transom
Version: {version}
Summary: One-sided communication as a production runtime: the launcher, and libraries with MPI-5's ABI, MPICH's, and OpenSHMEM
License-Expression: MIT OR Apache-2.0
License-File: LICENSE-MIT
License-File: LICENSE-APACHE
License-File: THIRD-PARTY
Classifier: Operating System :: POSIX :: Linux
Requires-Python: >=3.6
Description-Content-Type: text/markdown

"""
WHEEL = "Wheel-Version: 1.0\nGenerator: transom\nRoot-Is-Purelib: false\nTag: {tag}\n"


def forwarder(needed, *options):
    """A shared object with nothing but the need of another."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "forwarder.so")
        # Named by a file, since the linker would put down the library's own name.
        empty = pathlib.Path(folder, "empty.so")
        link = ["cc", "-shared", "-nostdlib", "-x", "c", "/dev/null", "-x", "none"]
        subprocess.run([*link, f"-Wl,-soname,{needed}", "-o", empty], check=True)
        subprocess.run([*link, "-Wl,--no-as-needed", empty, "-Wl,--strip-all", *options, "-o", out], check=True)
        return out.read_bytes()


def content(file):
    """A file's bytes, or what stands for a link in a wheel."""
    if not file.is_symlink() or ".so" not in file.name:
        return file.read_bytes()
    if file.name.endswith(".so"):
        # For the linker alone, which reads its script.
        return f"INPUT({file.readlink()})\n".encode()
    return forwarder(str(file.readlink()), f"-Wl,-soname,{file.name}", "-Wl,-rpath,$ORIGIN")


def files(stage, data):
    """Names in the wheel and their bytes."""
    for file in sorted(file for file in stage.rglob("*") if file.is_file()):
        place = file.relative_to(stage)
        if place.parts[0] == "bin":
            yield f"{data}/scripts/{place.name}", content(file), 0o755
        elif place.parts[:2] != ("share", "doc"):
            yield f"{data}/data/{place}", content(file), 0o755 if ".so" in file.name or "libexec" in place.parts else 0o644
    # mpi4py as PyPI has it looks here when no `transom run` tells it where. The name must not be one that others need: with it the
    # library that is meant would be taken for this one.
    yield f"{data}/data/lib/libmpi.so.12", forwarder(f"$ORIGIN/{MPICH.removeprefix('lib/')}"), 0o755


def tag(stage):
    (major, minor), libraries = elf.needs(stage)
    strange = [name for name in libraries if name not in SYSTEM and not name.startswith("ld-linux")]
    if strange:
        sys.exit(f"wheel.py: not on every Linux: {', '.join(strange)}")
    return f"py3-none-manylinux_{major}_{minor}_{platform.machine()}"


def record(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def main():
    stage, out = map(pathlib.Path, sys.argv[1:])
    said = subprocess.run([stage / "bin/transom", "--version"], check=True, capture_output=True, text=True).stdout
    version = said.split()[1]
    info, data = f"transom-{version}.dist-info", f"transom-{version}.data"
    readme = (ROOT / "README.md").read_text()
    entries = list(files(stage, data))
    for file in sorted((stage / "share/doc/transom").iterdir()):
        entries.append((f"{info}/licenses/{file.name}", file.read_bytes(), 0o644))
    entries.append((f"{info}/METADATA", (METADATA.format(version=version) + readme).encode(), 0o644))
    entries.append((f"{info}/WHEEL", WHEEL.format(tag=tag(stage)).encode(), 0o644))
    lines = "".join(record(name, data) for name, data, _ in entries)
    entries.append((f"{info}/RECORD", f"{lines}{info}/RECORD,,\n".encode(), 0o644))
    out.mkdir(parents=True, exist_ok=True)
    wheel = out / f"transom-{version}-{tag(stage)}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data, mode in entries:
            # The same date always: the same files make the same wheel.
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr, entry.compress_type = (0o100000 | mode) << 16, zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    print(wheel)


main()
