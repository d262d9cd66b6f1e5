#!/usr/bin/env bash
# Cuts a node off without a word to anybody, as a broken switch does. The node must be a host of its
# own: a container, or any process in another network namespace than this shell's. A media node's
# rooms move when gossip has given it up; when it is back, it learns that they are not its own any more.
#
#   ./partition.sh holdfast_sfu-2_1              a container, from everybody, for 5 seconds
#   ./partition.sh 4711 20                       the host of a process, for 20 seconds
#   ./partition.sh 4711 20 10.0.0.5 10.0.0.6     only from these addresses: name all nodes and the
#                                                store, and people still reach it
#   LOSE=5 ./partition.sh 4711                   loses 5 packets of 100 instead
#
# It needs root, Linux 5.16 or later, nsenter and nft. The rules are in the node's namespace alone
# and are taken away at the end, also when this script is interrupted.
set -euo pipefail
pid=${1:?CONTAINER or PID, then [SECONDS [ADDRESS...]]}
if [[ ! $pid =~ ^[0-9]+$ ]]; then
  pid=$(docker inspect --format '{{.State.Pid}}' "$pid")
fi
if [[ $(readlink "/proc/$pid/ns/net") == "$(readlink /proc/self/ns/net)" ]]; then
  echo "$1 is in this shell's own network: the rules would hurt everybody here" >&2
  exit 2
fi
inside() { nsenter --net="/proc/$pid/ns/net" "$@"; }
device=$(inside ip -o -4 addr show scope global | awk 'NR == 1 { print $2 }')
out='' in=''
if (($# > 2)); then
  addresses=$(IFS=,; echo "${*:3}")
  out="ip daddr { $addresses }" in="ip saddr { $addresses }"
fi
some=${LOSE:+numgen random mod 100 < $LOSE}
# Ingress and egress lie below the sockets, so whoever sends hears of no error, as when a cable is pulled.
inside nft -f - <<END
table netdev holdfast_chaos {
  chain out { type filter hook egress device $device priority 0; $out $some counter drop; }
  chain in { type filter hook ingress device $device priority 0; $in $some counter drop; }
}
END
trap 'inside nft list table netdev holdfast_chaos; inside nft delete table netdev holdfast_chaos' EXIT
sleep "${2:-5}"
