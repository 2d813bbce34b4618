#!/bin/bash
# cargo-tests.sh locks|launcher|others: `cargo test --workspace` in three parts, which may run at once: the launcher's tests of locks, which
# mostly wait; its other tests; and all others. (By the names of test programs: with fewer packages dependencies would have other
# features, and be compiled again.) Without Python the last part is all.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v python3 >/dev/null; then
    [ "${1:-}" != others ] || cargo test --workspace --quiet --no-fail-fast
    exit
fi

names() { # condition on a package
    cargo metadata --no-deps --format-version 1 | python3 -c "
import json, sys
for package in json.load(sys.stdin)['packages']:
    for target in package['targets']:
        if 'test' in target['kind'] and package['name'] $1 'transom-launcher':
            print(target['name'])" | sort -u
}
launcher=$(names ==)
case ${1:-} in
locks) cargo test --workspace --quiet --no-fail-fast --test locks ;;
launcher) cargo test --workspace --quiet --no-fail-fast $(printf -- '--test %s ' $(grep -vx locks <<<"$launcher")) ;;
others)
    cargo test --workspace --quiet --no-fail-fast --lib --bins --examples $(comm -13 <(echo "$launcher") <(names !=) | sed 's/^/--test /')
    cargo test --workspace --quiet --no-fail-fast --doc
    ;;
*)
    echo "cargo-tests.sh: locks, launcher or others" >&2
    exit 2
    ;;
esac
