#!/bin/bash
# licences.sh: `cargo deny` by deny.toml; installs it into target/tools if there is none.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PWD/target/tools/bin:$PATH
command -v cargo-deny >/dev/null || cargo install --quiet --locked --root target/tools cargo-deny
cargo deny --log-level error check licenses bans sources
