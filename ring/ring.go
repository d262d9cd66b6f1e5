// Package ring is the arithmetic of placement: which node a room belongs to
// when neither load nor a pin decides. It promises that every process, and every other
// language, computes the same answer from the same set of node names:
//
//   - a node has VirtualNodes points on the ring; point v is the first 4 bytes,
//     big-endian, of SHA-1("<node>#<v>"), v in decimal from 0;
//   - a room's hash is the first 4 bytes, big-endian, of SHA-1 of its id;
//   - the first point clockwise of the hash (at or after it, wrapping around)
//     owns the room; points that collide are ordered by node id, the lower first.
//
// These values are an interface: a change of any moves every room. SHA-1 serves
// as a well-mixed hash that every language has, not as a protection: somebody who
// chooses room names can aim at a node, and the headroom check is what stops that.
//
// The package knows neither load nor liveness nor pins, and imports nothing but
// the standard library.
package ring

import (
	"cmp"
	// Package sha1 is part of the interface (see above), and no protection.
	"crypto/sha1"
	"encoding/binary"
	"slices"
	"strconv"
	"unsafe"
)

// VirtualNodes is the number of points of each node. With more points n the nodes' shares differ less, by 1/sqrt(n),
// and the ring needs more memory, in proportion to n.
const VirtualNodes = 160

// Ring is an immutable ring. A nil *Ring has no nodes.
type Ring struct {
	// nodes is sorted.
	nodes []NodeID
	// Hashes and owners are two slices, because a search reads log2(n) hashes and only one owner.
	hashes []uint32
	// owners has the index into nodes of each hash.
	owners []uint32
}

type point struct {
	hash uint32
	// owner is the index into nodes. Indices compare as the nodes' ids do.
	owner uint32
}

// New returns the ring of these nodes. Their order does not matter, and neither do duplicates.
func New(nodes []NodeID) *Ring { return build(nodes, virtualNode) }

func build(nodes []NodeID, hashOf func(node NodeID, v int) uint32) *Ring {
	sorted := slices.Clone(nodes)
	slices.Sort(sorted)
	sorted = slices.Clip(slices.Compact(sorted))
	points := make([]point, 0, len(sorted)*VirtualNodes)
	for i, node := range sorted {
		for v := range VirtualNodes {
			points = append(points, point{hash: hashOf(node, v), owner: uint32(i)})
		}
	}
	slices.SortFunc(points, func(a, b point) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.owner, b.owner))
	})
	r := &Ring{nodes: sorted, hashes: make([]uint32, len(points)), owners: make([]uint32, len(points))}
	for i, p := range points {
		r.hashes[i], r.owners[i] = p.hash, p.owner
	}
	return r
}

// Owner returns the node that owns the room. It returns false if the ring has no nodes. It does not allocate.
func (r *Ring) Owner(room RoomID) (NodeID, bool) {
	if r.Len() == 0 {
		return "", false
	}
	return r.nodes[r.owners[r.search(hash32(string(room)))]], true
}

// Hash returns the room's place on the ring.
func Hash(room RoomID) uint32 { return hash32(string(room)) }

// OwnerAt returns the index into Nodes of the node that owns the hash. It returns false if the ring has no nodes.
func (r *Ring) OwnerAt(hash uint32) (int, bool) {
	if r.Len() == 0 {
		return 0, false
	}
	return int(r.owners[r.search(hash)]), true
}

// Shares returns which part of all hashes each of Nodes owns; the parts add up to 1.
func (r *Ring) Shares() []float64 {
	shares := make([]float64, r.Len())
	if r.Len() == 0 {
		return shares
	}
	for i, owner := range r.owners {
		// The arc of a point begins after the point before it. Numbers of 32 bits wrap around as the ring does.
		arc := r.hashes[i] - r.hashes[(i+len(r.hashes)-1)%len(r.hashes)]
		shares[owner] += float64(arc) / (1 << 32)
	}
	return shares
}

// Nodes returns the nodes in a new, sorted slice.
func (r *Ring) Nodes() []NodeID {
	if r == nil {
		return nil
	}
	return slices.Clone(r.nodes)
}

// Len returns the number of nodes.
func (r *Ring) Len() int {
	if r == nil {
		return 0
	}
	return len(r.nodes)
}

func (r *Ring) search(hash uint32) int {
	i, _ := slices.BinarySearch(r.hashes, hash)
	if i == len(r.hashes) {
		return 0
	}
	return i
}

func virtualNode(node NodeID, v int) uint32 {
	// Names that do not fit into this space are copied to the heap.
	var space [64]byte
	text := append(space[:0], node...)
	text = append(text, '#')
	text = strconv.AppendInt(text, int64(v), 10)
	sum := sha1.Sum(text)
	return binary.BigEndian.Uint32(sum[:4])
}

func hash32(text string) uint32 {
	// The conversion []byte(text) would copy long names. This one is safe, because sha1.Sum neither changes nor keeps
	// its argument.
	sum := sha1.Sum(unsafe.Slice(unsafe.StringData(text), len(text)))
	return binary.BigEndian.Uint32(sum[:4])
}
