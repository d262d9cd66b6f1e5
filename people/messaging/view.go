package messaging

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// Peer is one run of a node.
type Peer struct {
	ID   ring.NodeID
	Boot pin.BootID
}

// view is an immutable set of live nodes.
type view struct {
	// mark is a hash of the live nodes. It is never 0.
	mark  uint64
	ids   []ring.NodeID
	peers map[ring.NodeID]Peer
}

func newView(peers []Peer) *view {
	peers = slices.Clone(peers)
	slices.SortFunc(peers, func(a, b Peer) int { return strings.Compare(string(a.ID), string(b.ID)) })
	v := &view{peers: make(map[ring.NodeID]Peer, len(peers))}
	hash := sha256.New()
	for _, p := range peers {
		v.ids = append(v.ids, p.ID)
		v.peers[p.ID] = p
		hash.Write([]byte(string(p.ID) + "@" + string(p.Boot) + "\n"))
	}
	v.mark = max(1, binary.BigEndian.Uint64(hash.Sum(nil)))
	return v
}

func (v *view) has(p Peer) bool { return v.peers[p.ID] == p }

func (v *view) directory(user UserID) (Peer, bool) {
	id, ok := ring.Rendezvous(v.ids, string(user))
	return v.peers[id], ok
}

// Key stands for a user in the directories.
type Key [16]byte

// KeyOf returns half of the SHA-256 of the name, which is long enough that no two users share a key.
func KeyOf(user UserID) Key {
	sum := sha256.Sum256([]byte(user))
	return Key(sum[:16])
}
