#!/bin/sh
# Computes golden.txt by a route that shares no code with the package: sha1sum
# for the hashes, sort for the ring, awk for the walk. Run it in this directory:
#
#   LC_ALL=C ./golden.sh > golden.txt
#
# A line is "<number of nodes> <room> <owner> <second> <third>": the first three
# distinct nodes clockwise, on the ring of nodes sfu-1 to sfu-<number>.
set -eu
export LC_ALL=C

hash8() { printf '%s' "$1" | sha1sum | cut -c1-8; }

points() { # points N: "<hash> <node>" lines, in ring order
	n=1
	while [ "$n" -le "$1" ]; do
		v=0
		while [ "$v" -lt 160 ]; do
			echo "$(hash8 "sfu-$n#$v") sfu-$n"
			v=$((v + 1))
		done
		n=$((n + 1))
	done | sort -k1,1 -k2,2
}

rooms() { # "<hash> <room>" lines; the last names are long, and not ASCII
	r=0
	while [ "$r" -lt 40 ]; do
		echo "$(hash8 "room-$r") room-$r"
		r=$((r + 1))
	done
	for room in a lobby Ünïcode-部屋 \
		a-room-name-that-is-much-longer-than-the-thirty-two-bytes-of-a-small-stack-buffer-0123456789; do
		echo "$(hash8 "$room") $room"
	done
}

for nodes in 1 3 10; do
	points "$nodes" >"/tmp/golden.$$"
	rooms | while read -r hash room; do
		# The points from the hash on, then those before it: one turn of the ring.
		# The "x" keeps awk from taking hashes such as 12e45678 for numbers.
		awk -v h="x$hash" '("x" $1) >= h { print $2 }' "/tmp/golden.$$" >"/tmp/golden.$$.turn"
		awk -v h="x$hash" '("x" $1) < h { print $2 }' "/tmp/golden.$$" >>"/tmp/golden.$$.turn"
		awk -v n="$nodes" -v room="$room" '!seen[$1]++ && k < 3 { k++; line = line " " $1 }
			END { print n, room line }' "/tmp/golden.$$.turn"
	done
	rm -f "/tmp/golden.$$" "/tmp/golden.$$.turn"
done
