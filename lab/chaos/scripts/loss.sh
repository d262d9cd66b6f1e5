#!/usr/bin/env bash
# Loses some of a node's packets, by chance, in both directions. Nothing moves: what is lost is asked
# for again, and gossip asks others before it believes that a node is dead.
#
#   ./loss.sh holdfast_sfu-2_1         5 of 100, for 10 seconds
#   ./loss.sh 4711 20 60               20 of 100, for a minute
set -euo pipefail
cd "$(dirname "$0")"
source ./common.sh
source ./host.sh

usage "[[:alnum:]_.-]+" "CONTAINER|PID [PERCENT [SECONDS]]" "${1:-}"
host "$1"
some="numgen random mod 100 < ${2:-5}"
drop "$some" "$some"
sleep "${3:-10}"
