#!/bin/bash
# netns.sh COMMAND…: two "hosts" on this machine, for as long as COMMAND runs; gives back its exit code.
#
# h1 (10.99.0.1) and h2 (10.99.0.2) are network namespaces joined by a veth pair, each with a loopback of its own.
# COMMAND itself runs outside of both; it starts things inside with ci/netns-rsh, which is called like ssh:
#
#   ci/netns.sh transom run --rsh ci/netns-rsh --hosts h1,h2 -n 4 PROGRAM
#
# Needs root (or CAP_SYS_ADMIN and CAP_NET_ADMIN) and iproute2. Runs at the same time do not disturb each other.
set -euo pipefail

if [ $# -eq 0 ]; then
    sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2
    exit 2
fi

prefix="transom-$$-"
links=("tv$$a" "tv$$b")

tear_down() {
    for host in h1 h2; do
        # What still runs there would keep the namespace alive without a name.
        ip netns pids "$prefix$host" 2>/dev/null | xargs -r kill -KILL 2>/dev/null || true
        ip netns del "$prefix$host" 2>/dev/null || true
    done
}
trap tear_down EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

ip netns add "${prefix}h1"
ip netns add "${prefix}h2"
ip link add "${links[0]}" netns "${prefix}h1" type veth peer name "${links[1]}" netns "${prefix}h2"
for number in 1 2; do
    namespace="${prefix}h$number"
    link=${links[number - 1]}
    ip -n "$namespace" link set "$link" name eth0
    ip -n "$namespace" address add "10.99.0.$number/24" dev eth0
    ip -n "$namespace" link set lo up
    ip -n "$namespace" link set eth0 up
done

# The kernel reports a new link as running up to a second late, and libfabric passes over links that are not.
for host in h1 h2; do
    for _ in $(seq 300); do
        case $(ip -n "$prefix$host" -br link show dev eth0) in
        *LOWER_UP*) break ;;
        esac
        sleep 0.01
    done
done

# In the foreground, so that it has the terminal and its signals; the traps run when it has ended.
status=0
TRANSOM_NETNS=$prefix "$@" || status=$?
exit "$status"
