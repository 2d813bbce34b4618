#!/bin/bash
# cluster.sh COMMAND…: a real Slurm cluster on this machine for as long as COMMAND runs; gives back its exit code.
#
# The controller and NODES nodes (2), n1, n2, … (4 processors each, as far as Slurm knows), are each in a network, mount,
# UTS, IPC and PID namespace of their own, joined by a bridge: nodes share files, and nothing else. All of it is inside
# further namespaces of this script's own: whatever happens to it, the kernel takes down the whole cluster, no port or
# name of this machine is used, and the files, in /run there, are gone as well. COMMAND runs beside the controller.
#
# Needs root (CAP_SYS_ADMIN, CAP_NET_ADMIN) and Debian's slurm-wlm, munge, iproute2; for srun --mpi=pmix libpmix2.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin

if [ $# -eq 0 ]; then
    sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2
    exit 2
fi
if [ "${1:-}" != --inside ]; then
    exec unshare --net --mount --uts --ipc --pid --fork --kill-child --mount-proc "$0" --inside "$@"
fi
shift
trap 'exit 143' TERM HUP
trap 'exit 130' INT

mount -t tmpfs -o mode=755 tmpfs /run
run=/run/slurm
net=10.98.0
nodes=${NODES:-2}
mkdir -p $run/{munge,state,log} /run/netns
chmod 711 $run/munge
cd $run

fail() {
    echo "cluster.sh: $*" >&2
    tail -n 20 $run/log/* >&2
    exit 1
}
wait_for() { # seconds what command…
    local turns=$(($1 * 50)) what=$2
    shift 2
    until "$@" >/dev/null 2>&1; do
        turns=$((turns - 1))
        [ $turns -gt 0 ] || fail "no $what"
        sleep 0.02
    done
}

# Debian's plugin for --mpi=pmix opens libpmix.so, a name that is only in libpmix-dev.
for folder in /usr/lib/*/pmix2/lib; do
    [ -e "$folder/libpmix.so.2" ] && [ ! -e "$folder/libpmix.so" ] || continue
    mkdir -p pmix
    ln -s libpmix.so.2 pmix/libpmix.so
    mount -t overlay -o "lowerdir=$run/pmix:$folder" overlay "$folder" || echo "cluster.sh: no --mpi=pmix: apt install libpmix-dev" >&2
done

hostname ctl
printf '127.0.0.1 localhost\n%s.1 ctl\n' $net >hosts
for ((node = 1; node <= nodes; node++)); do
    echo "$net.$((10 + node)) n$node"
done >>hosts
mount --bind hosts /etc/hosts
ip link set lo up
ip link add bridge type bridge
ip address add $net.1/24 dev bridge
ip link set bridge up
for ((node = 1; node <= nodes; node++)); do
    ip netns add n$node
    ip link add node$node type veth peer name eth0 netns n$node
    ip link set node$node master bridge up
    ip -n n$node link set lo up
    ip -n n$node address add $net.$((10 + node))/24 dev eth0
    ip -n n$node link set eth0 up
done

cat >slurm.conf <<CONF
ClusterName=transom
SlurmctldHost=ctl($net.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$run/munge/socket
StateSaveLocation=$run/state
SlurmdSpoolDir=$run/spool.%n
SlurmctldPidFile=$run/slurmctld.pid
SlurmdPidFile=$run/slurmd.%n.pid
SlurmctldLogFile=$run/log/slurmctld
SlurmdLogFile=$run/log/slurmd.%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SlurmdParameters=config_overrides
PropagateResourceLimits=NONE
ReturnToService=2
KillWait=3
# Its programs wait longer than 10 s for an answer where all processors are busy.
MessageTimeout=60
SlurmdTimeout=${SLURMD_TIMEOUT:-300}
SchedulerParameters=batch_sched_delay=0,sched_min_interval=1000,sched_interval=2,bf_interval=1,bf_hetjob_immediate
MailProg=/bin/true
NodeName=n[1-$nodes] NodeAddr=$net.[11-$((10 + nodes))] CPUs=4
PartitionName=all Nodes=n[1-$nodes] Default=YES MaxTime=INFINITE State=UP OverSubscribe=EXCLUSIVE
CONF
echo 'CgroupPlugin=cgroup/v1' >cgroup.conf
# A folder for each node, since they share files.
for ((node = 1; node <= nodes; node++)); do
    mkdir pmix-n$node
    echo "PMIxCliTmpDirBase=$run/pmix-n$node" >mpi.conf.n$node
done
touch mpi.conf
export SLURM_CONF=$run/slurm.conf

head -c 1024 /dev/urandom >munge/key
chmod 400 munge/key
munged --foreground --socket=$run/munge/socket --key-file=$run/munge/key --pid-file=$run/munge/pid \
    --log-file=$run/log/munged --seed-file=$run/munge/seed </dev/null >log/munged.out 2>&1 &
wait_for 10 "munged" test -S munge/socket
slurmctld -D -c </dev/null >log/slurmctld.out 2>&1 &

# Memory files, /dev/shm, /proc and signals of one node do not reach the other. The shell stays as the namespace's
# init, because slurmd does not bury orphans.
# shellcheck disable=SC2016
for ((node = 1; node <= nodes; node++)); do
    nsenter --net=/run/netns/n$node unshare --mount --uts --ipc --pid --fork --kill-child --mount-proc bash -c '
        hostname "$1"
        mount -t sysfs sysfs /sys
        mount -t tmpfs -o mode=1777 tmpfs /dev/shm
        mount --bind mpi.conf.$1 mpi.conf
        slurmd -D -N "$1" &
        while kill -0 $! 2>/dev/null; do wait; done' bash n$node </dev/null >log/n$node.out 2>&1 &
done
idle() { [ "$(sinfo --noheader --Node --format=%T | grep -cx idle)" = "$nodes" ]; }
wait_for 30 "idle nodes" idle

cd "$OLDPWD"
status=0
"$@" || status=$?
exit $status
