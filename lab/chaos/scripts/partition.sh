#!/usr/bin/env bash
# Cuts a media node off without a word to anybody, as a broken switch does. Its rooms move when
# gossip has given it up; when it is back it learns that they are not its own any more.
#
#   ./partition.sh holdfast_sfu-2_1              a container, from everybody, for 5 seconds
#   ./partition.sh 4711 20                       the host of a process, for 20 seconds
#   ./partition.sh 4711 20 10.0.0.5 10.0.0.6     only from these addresses: name all nodes and the
#                                                store, and people still reach it
set -euo pipefail
cd "$(dirname "$0")"
source ./common.sh
source ./host.sh

usage "[[:alnum:]_.-]+" "CONTAINER|PID [SECONDS [ADDRESS...]]" "${1:-}"
host "$1"
seconds=${2:-5}
if (($# > 2)); then
  addresses=$(IFS=,; echo "${*:3}")
  drop "ip daddr { $addresses }" "ip saddr { $addresses }"
else
  drop "" ""
fi
sleep "$seconds"
