#!/usr/bin/env bash
# Lets the embedded store answer nobody for a while, and keep what it has.
#
#   ./store-pause.sh         for 6 seconds
#   ./store-pause.sh 30
set -euo pipefail
cd "$(dirname "$0")"
source ./common.sh

usage "[0-9.]*" "[SECONDS]" "${1:-}"
trap 'signal 18 store' EXIT # also when this script is interrupted
signal 19 store
sleep "${1:-6}"
