# guest.sh: process 1 of the VM, in the host's file system: makes the devices, runs the command, switches off.
# /run/vm is a directory of ci/vm/run.sh: it has the command and settings, and is told the exit status.
control=/run/vm
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
ulimit -n 65536 -l unlimited # as hosts with RDMA have it
. $control/settings

port() { # name: the device file of the virtio port
    local port
    for port in /sys/class/virtio-ports/*; do
        [ "$(<"$port/name")" != "$1" ] || echo "/dev/${port##*/}"
    done
}

# A port can be opened once only, hence the pipes.
run_command() {
    mkfifo /run/stdout /run/stderr
    cat /run/stdout >"$(port stdout)" &
    local writers=($!)
    cat /run/stderr >"$(port stderr)" &
    writers+=($!)
    bash $control/command >/run/stdout 2>/run/stderr
    local status=$?
    end_all_but 1 "${writers[@]}" # they may hold the pipes open
    wait "${writers[@]}"
    echo $status >$control/status
}

end_all_but() { # processes…
    local directory process
    for directory in /proc/[0-9]*; do
        process=${directory#/proc/}
        case " $* " in *" $process "*) continue ;; esac
        [ ! -e "$directory/exe" ] || kill -KILL "$process" # kernel threads have no program
    done
}

if bash -e "$scripts/net.sh" "$net" "$siw"; then
    run_command
else
    echo "net.sh failed"
fi
busybox poweroff -f
