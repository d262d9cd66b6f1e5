#!/usr/bin/env bash
# Stops a node of the development cluster that runs here without ending it, as a paused virtual
# machine does, and wakes it up. A media node's rooms move after about 1.3 s; when it wakes, it
# learns of that and closes them. A shorter pause moves nothing.
#
#   ./freeze.sh sfu-2        for 5 seconds
#   ./freeze.sh sfu-2 0.5    for half a second
#   ./freeze.sh store 30
#
# HOLDFAST names the binary, by default the one on the PATH.
set -euo pipefail
if [[ ! ${1:-} =~ ^((sfu|signaling)-[0-9]+|store)$ ]]; then
  echo "usage: $0 NODE [SECONDS]" >&2
  exit 2
fi
holdfast=${HOLDFAST:-holdfast}
trap '"$holdfast" dev kill --signal 18 "$1"' EXIT # also when this script is interrupted
"$holdfast" dev kill --signal 19 "$1"
sleep "${2:-5}"
