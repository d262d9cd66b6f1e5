#!/usr/bin/env bash
# Makes all of a node's packets late, in both directions. Many kernels have no netem, so a relay does it
# (holdfast cable, lab/hosts/relay.go): it takes the place of the cable between the node's host and the
# bridge that its virtual cable ends at, and keeps each packet for a while. Nothing moves.
#
#   ./delay.sh holdfast_sfu-2_1         200 ms each way, for 10 seconds
#   ./delay.sh 4711 50 60               50 ms, for a minute
set -euo pipefail
cd "$(dirname "$0")"
source ./common.sh
source ./host.sh

usage "[[:alnum:]_.-]+" "CONTAINER|PID [MILLISECONDS [SECONDS]]" "${1:-}"
host "$1"
# The cable has two ends; the one outside has the number that the one inside names after the @.
number=$(inside ip -o link show "$device" | sed -E 's/^[0-9]+: [^@]+@if([0-9]+):.*/\1/')
port=$(ip -o link | awk -F': ' -v number="$number" '$1 == number { sub(/@.*/, "", $2); print $2 }')
if [[ -z $port ]]; then
  echo "the other end of $1's cable is not in this shell's network: run this where its bridge is" >&2
  exit 2
fi
timeout --foreground --signal INT --preserve-status "${3:-10}" "$holdfast" cable "$port" --delay "${2:-200}ms"
