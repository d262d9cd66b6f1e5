#!/usr/bin/env bash
# Kills a media node, as a crash would. Its rooms move to other nodes in a fraction of
# a second; the calls in them go on, and those on other nodes notice nothing.
#
#   ./kill.sh sfu-2          kill it, and start it again after 5 seconds
#   ./kill.sh sfu-2 60       the same after a minute
set -euo pipefail
cd "$(dirname "$0")"
source ./common.sh

usage "sfu-[0-9]+" "sfu-N [SECONDS]" "${1:-}"
signal 9 "$1"
show
sleep "${2:-5}"
again "$1"
