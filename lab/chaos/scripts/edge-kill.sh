#!/usr/bin/env bash
# Kills a signaling node. Its clients resume at another one within a moment; media never
# went through it and does not stop.
#
#   ./edge-kill.sh signaling-1
set -euo pipefail
cd "$(dirname "$0")"
source ./common.sh

usage "signaling-[0-9]+" "signaling-N [SECONDS]" "${1:-}"
signal 9 "$1"
show
sleep "${2:-5}"
again "$1"
