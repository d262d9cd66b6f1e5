#!/usr/bin/env bash
# Kills a node of the development cluster that runs here, as a crash would, and starts it again.
# A media node's rooms move to others in a fraction of a second; the clients of a signaling node
# resume at another one; the store comes back empty and the media nodes write their pins again.
#
#   ./kill.sh sfu-2              for 5 seconds
#   ./kill.sh signaling-1 60     for a minute
#   ./kill.sh store
#
# HOLDFAST names the binary, by default the one on the PATH.
set -euo pipefail
if [[ ! ${1:-} =~ ^((sfu|signaling)-[0-9]+|store)$ ]]; then
  echo "usage: $0 NODE [SECONDS]" >&2
  exit 2
fi
holdfast=${HOLDFAST:-holdfast}
"$holdfast" dev kill --signal 9 "$1"
"$holdfast" dev status
sleep "${2:-5}"
"$holdfast" dev start "$1"
