#!/bin/bash
# perftest.sh TEST SERVER-DEVICE CLIENT-DEVICE [ADDRESS]: both ends of a program of perftest.
#
# $SERVER and $CLIENT may have a command to start an end with ("ip netns exec h1"); ADDRESS is where the client finds the
# server by TCP. GID (default 1) is the index of a RoCE v2 address of both devices; SIZE (default 8) are bytes, sent
# COUNT (default 200) times.
set -euo pipefail
options=(-F -n "${COUNT:-200}" -x "${GID:-1}")
[ "$1" = ib_atomic_lat ] || options+=(-s "${SIZE:-8}") # atomics have 8 bytes
log=$(mktemp)
trap 'rm -f "$log"' EXIT

${SERVER:-} "$1" "${options[@]}" -d "$2" >"$log" 2>&1 &
server=$!
until ${SERVER:-} ss -Hltn | grep -q ':18515 ' || ! kill -0 $server 2>/dev/null; do
    sleep 0.1
done
status=0
${CLIENT:-} "$1" "${options[@]}" -d "$3" "${4:-127.0.0.1}" || status=$?
[ $status = 0 ] || kill $server 2>/dev/null || true
wait $server || { cat "$log" >&2; exit 1; }
exit $status
