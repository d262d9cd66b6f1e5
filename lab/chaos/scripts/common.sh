# Read by the other scripts: what they share. Each hurts a development cluster that
# runs already (holdfast dev, in another terminal), so that you can watch a call in a
# browser meanwhile. HOLDFAST is the binary, by default the one on the PATH.

holdfast=${HOLDFAST:-holdfast}

# usage PATTERN TEXT NAME: ends the script unless NAME looks like PATTERN.
usage() {
  if [[ ! ${3:-} =~ ^($1)$ ]]; then
    echo "usage: $0 $2" >&2
    exit 2
  fi
}

# signal NUMBER NODE: 9 kills, 19 freezes and 18 thaws (on Linux).
signal() { "$holdfast" dev kill --signal "$1" "$2"; }

# again NODE: starts a dead node and returns when the cluster sees it.
again() { "$holdfast" dev start "$1"; }

# show: who runs.
show() { "$holdfast" dev status; }
