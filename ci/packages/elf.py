#!/usr/bin/env python3
"""elf.py DIR: what the programs and libraries below a folder need of the system: the version of glibc, and libraries.

Prints "glibc 2.34", then a line for each library that is not below the folder."""

import pathlib
import re
import subprocess
import sys


def binaries(folder):
    files = [file for file in pathlib.Path(folder).rglob("*") if file.is_file() and not file.is_symlink()]
    return [file for file in files if file.open("rb").read(4) == b"\x7fELF"]


def needs(folder):
    """The newest version of glibc that a symbol has, as a pair, and the names of libraries."""
    versions, libraries = set(), set()
    own = {file.name for file in pathlib.Path(folder).rglob("*.so*")}
    for file in binaries(folder):
        said = subprocess.run(["objdump", "-p", file], check=True, capture_output=True, text=True).stdout
        versions |= {(int(major), int(minor)) for major, minor in re.findall(r"\bGLIBC_(\d+)\.(\d+)", said)}
        libraries |= set(re.findall(r"^\s*NEEDED\s+(\S+)", said, re.MULTILINE))
    libraries = {name for name in libraries if name.rpartition("/")[2] not in own}
    return max(versions), sorted(libraries)


if __name__ == "__main__":
    glibc, libraries = needs(sys.argv[1])
    print("glibc", "{}.{}".format(*glibc))
    print("\n".join(libraries))
