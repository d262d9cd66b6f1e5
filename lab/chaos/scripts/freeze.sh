#!/usr/bin/env bash
# Stops a media node without ending it, as a paused virtual machine does, and wakes it
# up. Its rooms move when gossip has given it up, after about 1.3 s; when it wakes, it
# learns that they are not its own any more and closes them. A pause that is shorter
# than that moves nothing, and people see a still picture meanwhile.
#
#   ./freeze.sh sfu-2        for 5 seconds
#   ./freeze.sh sfu-2 0.5    for half a second: nothing moves
set -euo pipefail
cd "$(dirname "$0")"
source ./common.sh

usage "sfu-[0-9]+" "sfu-N [SECONDS]" "${1:-}"
trap 'signal 18 "$1"' EXIT # also when this script is interrupted
signal 19 "$1"
sleep "${2:-5}"
