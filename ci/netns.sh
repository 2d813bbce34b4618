#!/bin/bash
# netns.sh COMMAND…: two "hosts" on this machine, for as long as COMMAND runs; gives back its exit code.
# TRANSOM_NETNS_HOSTS: how many, if not two. TRANSOM_NETNS_NAMES, if set: they know each other's names, as MPICH's launcher wants.
#
# h1 (10.99.0.1), h2 (10.99.0.2)… are network namespaces, each with a loopback of its own: two are joined by a veth pair, more
# by a bridge.
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
numbers=$(seq "${TRANSOM_NETNS_HOSTS:-2}")

tear_down() {
    for number in $numbers; do
        # What still runs there would keep the namespace alive without a name.
        ip netns pids "${prefix}h$number" 2>/dev/null | xargs -r kill -KILL 2>/dev/null || true
        ip netns del "${prefix}h$number" 2>/dev/null || true
        rm -rf "/etc/netns/${prefix}h$number"
    done
    ip netns del "${prefix}switch" 2>/dev/null || true
}
trap tear_down EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

for number in $numbers; do
    namespace="${prefix}h$number"
    ip netns add "$namespace"
    ip -n "$namespace" link set lo up
    if [ -n "${TRANSOM_NETNS_NAMES:-}" ]; then
        # What ip netns exec puts in the place of /etc/hosts.
        mkdir -p "/etc/netns/$namespace"
        { echo 127.0.0.1 localhost; for other in $numbers; do echo "10.99.0.$other h$other"; done; } >"/etc/netns/$namespace/hosts"
    fi
done
if [ "$numbers" = $'1\n2' ]; then
    ip link add eth0 netns "${prefix}h1" type veth peer name eth0 netns "${prefix}h2"
else
    ip netns add "${prefix}switch"
    ip -n "${prefix}switch" link add bridge up type bridge
    for number in $numbers; do
        ip link add eth0 netns "${prefix}h$number" type veth peer name "h$number" netns "${prefix}switch"
        ip -n "${prefix}switch" link set "h$number" master bridge up
    done
fi
for number in $numbers; do
    namespace="${prefix}h$number"
    ip -n "$namespace" address add "10.99.0.$number/24" dev eth0
    ip -n "$namespace" link set eth0 up
done

# The kernel reports a new link as running up to a second late, and libfabric passes over links that are not.
for number in $numbers; do
    for _ in $(seq 300); do
        case $(ip -n "${prefix}h$number" -br link show dev eth0) in
        *LOWER_UP*) break ;;
        esac
        sleep 0.01
    done
done

# In the foreground, so that it has the terminal and its signals; the traps run when it has ended.
status=0
TRANSOM_NETNS=$prefix "$@" || status=$?
exit "$status"
