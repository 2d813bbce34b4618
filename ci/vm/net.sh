# net.sh TOPOLOGY [SIW_KO]: the VM's links and RDMA devices, see README.md. Starting a process is slow on an emulated
# CPU, so `ip` gets its commands in batches.
topology=$1 siw=$2

main() {
    ip link set lo up
    if [ -n "$siw" ]; then
        modprobe --all $(modinfo --field depends "$siw" | tr , ' ')
        insmod "$siw"
    fi
    case $topology in
    single) single ;;
    pair) pairs ;;
    netns)
        pairs
        namespaces
        ;;
    esac
    keep_packets
    keep_order v0 v1
    raise_kernel_threads
    rdma link
}

single() {
    device rxe v0 v1 10.77.0 1
    # rdma_cm chooses a device by its IP address, so siw has a link and addresses of its own.
    [ -z "$siw" ] || device siw w0 w1 10.78.0 2
}

device() { # type end end network number: device TYPE0 at the first end of a link
    {
        link "$2" "$3" "$5"
        echo "address add $4.1/24 dev $2"
    } | ip -batch -
    rdma link add "${1}0" type "$1" netdev "$2"
}

pairs() {
    # The kernel asks its table of local addresses first and would deliver everything through lo.
    printf '%s\n' 'rule add pref 100 lookup local' 'rule del pref 0' | ip -batch -
    echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter
    pair rxe v0 v1 10.77.0 1
    [ -z "$siw" ] || pair siw w0 w1 10.78.0 2
}

pair() { # type end end network number: devices TYPE0 and TYPE1 at the ends of a link
    local type=$1 ends=("$2" "$3") network=$4 number=$5 i
    {
        link "$2" "$3" "$number"
        for i in 0 1; do
            local table=$((10 * number + i)) other=$network.$((2 - i))
            echo "address add $network.$((i + 1))/24 dev ${ends[i]}"
            # What comes in by this end may be for us; what goes to the other end goes out by this one, without ARP.
            echo "rule add pref $table iif ${ends[i]} lookup local"
            echo "rule add pref $((50 + table)) to $other lookup $((100 + table))"
            echo "route add $other dev ${ends[i]} src $network.$((i + 1)) table $((100 + table))"
            echo "neighbour add $other lladdr $(mac "$number" $((1 - i))) dev ${ends[i]} nud permanent"
        done
    } | ip -batch -
    for i in 0 1; do
        echo 1 >"/proc/sys/net/ipv4/conf/${ends[i]}/accept_local"
        echo 0 >"/proc/sys/net/ipv4/conf/${ends[i]}/rp_filter"
        rdma link add "$type$i" type "$type" netdev "${ends[i]}"
    done
}

# The MTU leaves room for RoCE's largest packet, 4096 bytes and headers.
link() { # end end number
    echo "link add $1 mtu 4200 address $(mac "$3" 0) type veth peer name $2 mtu 4200 address $(mac "$3" 1)"
    echo "link set $1 up"
    echo "link set $2 up"
}

mac() { # link end
    echo "02:00:00:00:0$1:0$2"
}

# "Hosts" for processes, as ci/netns.sh makes them. Devices stay outside, where soft-RoCE has its only socket, and can be
# used from inside.
namespaces() {
    printf '%s\n' 'netns add h1' 'netns add h2' \
        'link add eth0 netns h1 type veth peer name eth0 netns h2' | ip -batch -
    local number
    for number in 1 2; do
        printf '%s\n' 'link set lo up' "address add 10.99.0.$number/24 dev eth0" 'link set eth0 up' |
            ip -n h$number -batch -
    done
    [ -z "$siw" ] || siw_of_namespaces
}

# rdma_cm uses a device where its interface is: siw2 in h1, siw3 in h2.
siw_of_namespaces() {
    echo 'link add w2 netns h1 mtu 4200 type veth peer name w3 netns h2 mtu 4200' | ip -batch -
    local number
    for number in 1 2; do
        printf '%s\n' "address add 10.98.0.$number/24 dev w$((number + 1))" "link set w$((number + 1)) up" |
            ip -n h$number -batch -
    done
    # Whoever makes the device while the link is down keeps its port down.
    for number in 1 2; do
        ip netns exec h$number rdma link add "siw$((number + 1))" type siw netdev "w$((number + 1))"
    done
}

# RoCE wants a network that drops nothing. A veth end drops what its peer has no place for, and then soft-RoCE on Linux 6.1
# now and then ends a read as successful that has read nothing (rxe_comp.c warns of it: `WARN_ON_ONCE(wqe->status ==
# IB_WC_SUCCESS)`), or breaks the queue pair with no error but "flushed".
keep_packets() {
    echo 1000000 >/proc/sys/net/core/netdev_max_backlog
}

# And a network that keeps their order. What is sent into a veth end waits for the CPU of the sender to take it out at the
# other, and a sender goes on on another CPU: a READ that soft-RoCE sends again comes after the message that its data have
# arrived, when its memory is registered no more, and breaks the queue pair. So each end's packets have one CPU.
keep_order() {
    local ends=("$@") i
    for i in "${!ends[@]}"; do
        echo $((1 << i % 2)) >"/sys/class/net/${ends[i]}/queues/rx-0/rps_cpus"
    done
}

# The threads that move the devices' packets starve beside processes that poll, for milliseconds a message.
raise_kernel_threads() {
    local directory
    for directory in /proc/[0-9]*; do
        case $(<"$directory/comm") in
        ksoftirqd/* | siw_tx/*) chrt --fifo --pid 10 "${directory#/proc/}" ;;
        esac
    done
}

main
