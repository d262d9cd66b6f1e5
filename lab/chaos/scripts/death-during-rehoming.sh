#!/usr/bin/env bash
# Kills a media node, and makes a signaling node kill itself at a named step of moving its
# rooms (package failpoint lists the steps). The other signaling node goes on. A step is
# reached only by a node that has sockets of a moving room, so the other one is restarted
# after the armed one: everybody is then at the armed one.
#
#   ./death-during-rehoming.sh sfu-1                     at rehome.after-swap
#   ./death-during-rehoming.sh sfu-1 notify.before
set -euo pipefail
cd "$(dirname "$0")"
source ./common.sh

usage "sfu-[0-9]+" "sfu-N [STEP]" "${1:-}"
signal 9 signaling-1
"$holdfast" dev start signaling-1 --env "HOLDFAST_FAILPOINTS=${2:-rehome.after-swap}=exit"
signal 9 signaling-2
sleep 3 # the clients resume
again signaling-2
signal 9 "$1"
sleep 5
show
again "$1"
signal 9 signaling-1 2>/dev/null || true # it lives if nobody was in a room of that node
again signaling-1
