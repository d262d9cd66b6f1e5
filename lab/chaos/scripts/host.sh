# Read by partition.sh, loss.sh and delay.sh: what they share. Each hurts the network of a node that
# is a host of its own: a container, or any process in a network namespace that is not this shell's.
# They need root, Linux 5.16 or later, nsenter and nft. The rules are in that namespace alone and are
# taken away at the end, also when a script is interrupted.

# host NAME: finds a container, or a process by its number, and the interface it speaks through.
host() {
  pid=$1
  if [[ ! $pid =~ ^[0-9]+$ ]]; then
    pid=$(docker inspect --format '{{.State.Pid}}' "$1")
  fi
  if [[ ! -e /proc/$pid/ns/net ]]; then
    echo "$1 does not run, or you may not look at it: this needs root" >&2
    exit 2
  fi
  if [[ $(readlink "/proc/$pid/ns/net") == "$(readlink /proc/self/ns/net)" ]]; then
    echo "$1 is in this shell's own network: its rules would hurt everybody here" >&2
    exit 2
  fi
  device=$(inside ip -o -4 addr show scope global | awk 'NR == 1 { print $2 }')
  if [[ -z $device ]]; then
    echo "$1 has no IPv4 address but its own loopback's" >&2
    exit 2
  fi
}

# inside COMMAND: runs a command in the host's network.
inside() { nsenter --net="/proc/$pid/ns/net" "$@"; }

# drop OUT IN: drops what these rules of nftables say of packets that leave, and that come. Ingress and
# egress lie below the sockets, so whoever sends hears of no error, as when a cable is pulled.
drop() {
  inside nft -f - <<END
table netdev holdfast_chaos {
  chain out { type filter hook egress device $device priority 0; $1 counter drop; }
  chain in { type filter hook ingress device $device priority 0; $2 counter drop; }
}
END
  trap 'inside nft list table netdev holdfast_chaos; inside nft delete table netdev holdfast_chaos' EXIT
}
