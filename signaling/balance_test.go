package signaling

import (
	"testing"

	"pgregory.net/rapid"
)

// However sockets come and go, and however old the counts are: as soon as all know all counts, somebody takes new ones, and no
// node that is about as full as the others refuses them.
func TestEvenness(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(1, 5).Draw(t, "nodes")
		states, sockets, known := make([]evenness, nodes), make([]int, nodes), make([]int, nodes)
		count := func() (taking int) {
			for i := range states {
				all := sockets[i]
				for j := range known {
					if j != i {
						all += known[j]
					}
				}
				if !states[i].count(sockets[i], all, nodes) {
					taking++
				}
			}
			return taking
		}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			node := rapid.IntRange(0, nodes-1).Draw(t, "node")
			sockets[node] = max(0, sockets[node]+rapid.IntRange(-300, 500).Draw(t, "change"))
			count()
			copy(known, sockets) // a second later
			if count() == 0 {
				t.Fatalf("none of %v takes sockets", sockets)
			}
		}
		least, all := sockets[0], 0
		for _, n := range sockets {
			least, all = min(least, n), all+n
		}
		for i := range sockets {
			sockets[i] = least
		}
		copy(known, sockets)
		if taking := count(); taking != nodes {
			t.Fatalf("%d of %d take sockets, though all have %d", taking, nodes, least)
		}
	})
}

// A node to which most are connected leaves the next ones to a new node, and takes them again before that has as many.
func TestANewNodeCatchesUp(t *testing.T) {
	var old evenness
	for range overloadedAfter - 1 {
		if old.count(500, 1000, 3) {
			t.Fatal("the node is overloaded at once")
		}
	}
	if !old.count(500, 1000, 3) {
		t.Fatal("500 of 1000 sockets at one of three nodes are not too many")
	}
	for caught := range 500 {
		if !old.count(500, 1000+caught, 3) {
			if caught < 150 || caught > 400 {
				t.Errorf("it takes sockets again when the new node has %d", caught)
			}
			return
		}
	}
	t.Error("it never takes sockets again")
}
