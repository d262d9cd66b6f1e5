package ring

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// named returns the nodes prefix-1 to prefix-n.
func named(prefix string, n int) []NodeID {
	nodes := make([]NodeID, n)
	for i := range nodes {
		nodes[i] = NodeID(fmt.Sprintf("%s-%d", prefix, i+1))
	}
	return nodes
}

// numbered returns the rooms room-0 to room-(n-1).
func numbered(n int) []RoomID {
	rooms := make([]RoomID, n)
	for i := range rooms {
		rooms[i] = RoomID(fmt.Sprintf("room-%d", i))
	}
	return rooms
}

var anyNodes = rapid.Map(rapid.SliceOfNDistinct(rapid.String(), 1, 12, rapid.ID[string]),
	func(names []string) []NodeID {
		nodes := make([]NodeID, len(names))
		for i, name := range names {
			nodes[i] = NodeID(name)
		}
		return nodes
	})

var anyRoom = rapid.Map(rapid.String(), func(name string) RoomID { return RoomID(name) })

// TestGolden compares placements with those that testdata/golden.sh computed
// with sha1sum, sort and awk.
func TestGolden(t *testing.T) {
	file, err := os.Open("testdata/golden.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := 0
	for scanner := bufio.NewScanner(file); scanner.Scan(); lines++ {
		fields := strings.Fields(scanner.Text())
		var n int
		if _, err := fmt.Sscan(fields[0], &n); err != nil {
			t.Fatal(err)
		}
		r, room, want := New(named("sfu", n)), RoomID(fields[1]), fields[2:]
		if owner, _ := r.Owner(room); string(owner) != want[0] {
			t.Errorf("%d nodes: %s belongs to %s, sha1sum says %s", n, room, owner, want[0])
		}
		var got []string
		for node := range r.Successors(room) {
			if got = append(got, string(node)); len(got) == 3 {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d nodes: successors of %s = %v, sha1sum says %v", n, room, got, want)
		}
	}
	if lines != 132 {
		t.Fatalf("read %d golden lines, want 132", lines)
	}
}

func TestOrderOfConstructionDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := anyNodes.Draw(t, "nodes")
		shuffled := rapid.Permutation(append(slices.Clone(nodes), nodes[0])).Draw(t, "shuffled with a duplicate")
		a, b := New(nodes), New(shuffled)
		if !slices.Equal(a.nodes, b.nodes) || !slices.Equal(a.hashes, b.hashes) || !slices.Equal(a.owners, b.owners) {
			t.Fatalf("rings of %q and %q differ", nodes, shuffled)
		}
	})
}

func TestSuccessorsAreDistinctAndComplete(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, room := anyNodes.Draw(t, "nodes"), anyRoom.Draw(t, "room")
		r := New(nodes)
		got := slices.Collect(r.Successors(room))
		if owner, ok := r.Owner(room); !ok || got[0] != owner {
			t.Fatalf("first successor is %q, owner is %q", got[0], owner)
		}
		if slices.Sort(got); !slices.Equal(got, r.Nodes()) {
			t.Fatalf("successors %q are not the nodes %q", got, r.Nodes())
		}
	})
	// More nodes than the marks that Successors keeps in its frame.
	big := New(named("n", 1100))
	if got := slices.Collect(big.Successors("room")); len(got) != 1100 || len(slices.Compact(slices.Sorted(slices.Values(got)))) != 1100 {
		t.Fatalf("%d successors on a ring of 1100", len(got))
	}
}

// TestRemovalMovesOnlyItsRooms is the promise of consistent hashing, in both
// directions: a removed node's rooms go to their next successor, all others stay.
func TestRemovalMovesOnlyItsRooms(t *testing.T) {
	rooms := numbered(200)
	rapid.Check(t, func(t *rapid.T) {
		nodes := anyNodes.Filter(func(nodes []NodeID) bool { return len(nodes) > 1 }).Draw(t, "nodes")
		gone := rapid.SampledFrom(nodes).Draw(t, "gone")
		before := New(nodes)
		after := New(slices.DeleteFunc(slices.Clone(nodes), func(n NodeID) bool { return n == gone }))
		moved := map[RoomID]bool{}
		for _, m := range Moves(before, after, rooms) {
			moved[m.Room] = true
			heirs := slices.Collect(before.Successors(m.Room))
			if m.From != gone || m.To != heirs[1] {
				t.Fatalf("%s moved %q -> %q; %q was removed and the heir is %q", m.Room, m.From, m.To, gone, heirs[1])
			}
		}
		for _, room := range rooms {
			if owner, _ := before.Owner(room); owner == gone && !moved[room] {
				t.Fatalf("%s stayed on the removed node %q", room, gone)
			}
		}
	})
}

// TestCollidingPoints forces every node onto the same few points: the lower node
// id owns them, whatever the order of construction, and the others follow.
func TestCollidingPoints(t *testing.T) {
	same := func(_ NodeID, v int) uint32 { return uint32(v%4) << 30 }
	for _, nodes := range [][]NodeID{{"a", "b", "c"}, {"c", "a", "b"}, {"b", "c", "a", "c"}} {
		r := build(nodes, same)
		for _, room := range numbered(50) {
			if owner, _ := r.Owner(room); owner != "a" {
				t.Fatalf("built from %q: %s belongs to %q, want a", nodes, room, owner)
			}
			if got := slices.Collect(r.Successors(room)); !slices.Equal(got, []NodeID{"a", "b", "c"}) {
				t.Fatalf("built from %q: successors %q, want a b c", nodes, got)
			}
		}
	}
	// A room exactly on a point belongs to that point, and past the last it wraps.
	hash := hash32("room")
	r := build([]NodeID{"a", "b"}, func(node NodeID, _ int) uint32 {
		if node == "a" {
			return hash
		}
		return hash - 1
	})
	if owner, _ := r.Owner("room"); owner != "a" {
		t.Fatalf("a room on a's point belongs to %q", owner)
	}
	if wrapped := build([]NodeID{"z"}, func(NodeID, int) uint32 { return 0 }); wrapped.search(1) != 0 {
		t.Fatal("a hash past the last point does not wrap to the first")
	}
}

func TestEmptyRings(t *testing.T) {
	for name, r := range map[string]*Ring{"nil": nil, "New(nil)": New(nil)} {
		if owner, ok := r.Owner("room"); ok || owner != "" {
			t.Errorf("%s: Owner = %q, %v", name, owner, ok)
		}
		if got := slices.Collect(r.Successors("room")); len(got) != 0 {
			t.Errorf("%s: Successors = %q", name, got)
		}
		if r.Len() != 0 || len(r.Nodes()) != 0 {
			t.Errorf("%s: Len = %d, Nodes = %q", name, r.Len(), r.Nodes())
		}
		moves := Moves(r, New(named("sfu", 1)), []RoomID{"room"})
		if want := []Move{{Room: "room", To: "sfu-1"}}; !slices.Equal(moves, want) {
			t.Errorf("%s: Moves = %+v, want %+v", name, moves, want)
		}
	}
	if node, ok := Rendezvous(nil, "key"); ok || node != "" {
		t.Errorf("Rendezvous of nobody = %q, %v", node, ok)
	}
}

func TestRendezvous(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, key := anyNodes.Draw(t, "nodes"), rapid.String().Draw(t, "key")
		elected, ok := Rendezvous(nodes, key)
		if !ok || !slices.Contains(nodes, elected) {
			t.Fatalf("Rendezvous(%q) = %q, %v", nodes, elected, ok)
		}
		if again, _ := Rendezvous(rapid.Permutation(nodes).Draw(t, "shuffled"), key); again != elected {
			t.Fatalf("elected %q, and %q in another order", elected, again)
		}
		rest := slices.DeleteFunc(slices.Clone(nodes), func(n NodeID) bool {
			return n != elected && rapid.Bool().Draw(t, "drop")
		})
		if again, _ := Rendezvous(rest, key); again != elected {
			t.Fatalf("elected %q, and %q after others went", elected, again)
		}
	})
	// By sha1sum: sfu-1#sweeper is 50cc7a2b..., sfu-2's is a500d031..., sfu-3's af94fa8c...
	if elected, _ := Rendezvous(named("sfu", 3), "sweeper"); elected != "sfu-3" {
		t.Fatalf("elected %q for sweeper, want sfu-3", elected)
	}
}

func TestLookUpsDoNotAllocate(t *testing.T) {
	long := RoomID(strings.Repeat("x", 500))
	for _, n := range []int{3, 10, 100, 1000} {
		r := New(named("sfu", n))
		var sink NodeID
		if got := testing.AllocsPerRun(100, func() { sink, _ = r.Owner(long) }); got != 0 {
			t.Errorf("%d nodes: Owner allocates %v times", n, got)
		}
		if got := testing.AllocsPerRun(100, func() {
			for node := range r.Successors(long) {
				sink = node
			}
		}); got != 0 {
			t.Errorf("%d nodes: Successors allocates %v times", n, got)
		}
		_ = sink
	}
}

// FuzzOwner checks Owner against a linear search for the nearest point clockwise.
func FuzzOwner(f *testing.F) {
	f.Add("room", "a", "b")
	f.Add("", "", "#")
	f.Add("room-1", "sfu-1", "sfu-1")
	f.Fuzz(func(t *testing.T, room, a, b string) {
		r := New([]NodeID{NodeID(a), NodeID(b)})
		owner, ok := r.Owner(RoomID(room))
		if !ok {
			t.Fatal("a ring with nodes owns nothing")
		}
		hash := hash32(room)
		var want NodeID
		best := uint64(1) << 33
		for i, at := range r.hashes {
			distance := uint64(at - hash) // Modulo 2^32: the way clockwise.
			if distance < best {
				best, want = distance, r.nodes[r.owners[i]]
			}
		}
		if owner != want {
			t.Fatalf("Owner(%q) of %q = %q, nearest clockwise is %q", room, r.nodes, owner, want)
		}
	})
}

func BenchmarkOwner(b *testing.B) {
	rooms := numbered(1024)
	for _, n := range []int{3, 10, 100, 1000} {
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			r := New(named("sfu", n))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				_, _ = r.Owner(rooms[i%len(rooms)])
			}
		})
	}
}

func BenchmarkNew(b *testing.B) {
	for _, n := range []int{3, 10, 100, 1000} {
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			nodes := named("sfu", n)
			b.ReportAllocs()
			for b.Loop() {
				New(nodes)
			}
		})
	}
}

func BenchmarkSuccessors(b *testing.B) {
	r := New(named("sfu", 10))
	b.ReportAllocs()
	for b.Loop() {
		for range r.Successors("room-17") {
		}
	}
}

// TestSharesAreWhatOwnersHold compares the shares with the owners of many hashes.
func TestSharesAreWhatOwnersHold(t *testing.T) {
	if got := New(nil).Shares(); len(got) != 0 {
		t.Errorf("an empty ring has the shares %v", got)
	}
	r := New(named("sfu", 7))
	shares := r.Shares()
	counted, sum := make([]float64, r.Len()), 0.0
	const samples = 1 << 18
	for i := range uint64(samples) {
		owner, ok := r.OwnerAt(uint32(i << 32 / samples))
		if !ok {
			t.Fatal("a hash has no owner")
		}
		counted[owner] += 1.0 / samples
	}
	for i, share := range shares {
		sum += share
		if math.Abs(share-counted[i]) > 0.002 {
			t.Errorf("%s: a share of %.4f, but it owns %.4f of the hashes", r.Nodes()[i], share, counted[i])
		}
	}
	if math.Abs(sum-1) > 1e-9 {
		t.Errorf("the shares add up to %v", sum)
	}
}
