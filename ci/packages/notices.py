#!/usr/bin/env python3
"""notices.py: prints the licences of the crates that are linked into the packages, each text once, as their conditions demand."""

import collections
import json
import pathlib
import re
import subprocess

PACKAGES = ["transom-launcher", "transom-mpi", "transom-mpich"]
NAMES = ("license", "licence", "copying", "copyright", "notice", "unlicense")


def said(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def linked():
    """Names and versions of the crates that end up in a binary."""
    packages = [word for package in PACKAGES for word in ("-p", package)]
    lines = said("cargo", "tree", "--locked", "--edges", "normal", "--prefix", "none", "--format", "{p}", *packages).splitlines()
    # "serde v1.0.0", or with "(/path)" one of this repository, or with "(proc-macro)" one of the compiler's.
    return {tuple(line.split()[:2]) for line in lines if line and "(" not in line}


def texts(folder):
    files = [file for file in sorted(folder.iterdir()) if file.is_file() and file.name.lower().startswith(NAMES)]
    return [file.read_text(errors="replace").strip() for file in files]


def main():
    chosen = linked()
    host = re.search("^host: (.*)", said("rustc", "-vV"), re.MULTILINE).group(1)
    metadata = ("cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", host)
    crates = json.loads(said(*metadata))["packages"]
    crates = [crate for crate in crates if (crate["name"], "v" + crate["version"]) in chosen]
    users = collections.defaultdict(list)
    print("Transom's binaries hold these libraries, under these licences:\n")
    print("Rust's standard library: MIT OR Apache-2.0; https://github.com/rust-lang/rust")
    for crate in crates:
        name = f"{crate['name']} {crate['version']}"
        print(f"{name}: {crate['license']}" + (f"; {crate['repository']}" if crate["repository"] else ""))
        for text in texts(pathlib.Path(crate["manifest_path"]).parent):
            users[text].append(name)
    for text, names in users.items():
        print(f"\n{'=' * 100}\n{', '.join(names)}\n\n{text}")


main()
