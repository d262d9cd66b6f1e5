#!/usr/bin/env bash
# Kills two media nodes at the same time. Their rooms move to those that are left; a room
# whose new node is the second of the dead moves on from there.
#
#   ./two-of-three.sh sfu-1 sfu-2
set -euo pipefail
cd "$(dirname "$0")"
source ./common.sh

usage "sfu-[0-9]+" "sfu-N sfu-M [SECONDS]" "${1:-}"
usage "sfu-[0-9]+" "sfu-N sfu-M [SECONDS]" "${2:-}"
signal 9 "$1" &
signal 9 "$2"
wait
show
sleep "${3:-5}"
again "$1"
again "$2"
