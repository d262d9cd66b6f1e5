#!/usr/bin/env bash
# Kills the embedded store, which comes back with nothing in it. Running calls go on;
# joins wait or are refused meanwhile. When it is back, the media nodes write their
# pins again, with the epochs they had.
#
#   ./store-kill.sh          for 6 seconds
#   ./store-kill.sh 30
set -euo pipefail
cd "$(dirname "$0")"
source ./common.sh

usage "[0-9.]*" "[SECONDS]" "${1:-}"
signal 9 store
sleep "${1:-6}"
again store
