package egress

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"sync"
	"sync/atomic"
)

// MaxSources is from how many addresses one ICE user is heard. Pion keeps a remote candidate
// for every address that a good check came from, until the user's ICE restarts, and forgets
// none. A browser checks from each of its interfaces, in two families and perhaps through a
// relay: eight or fewer on most machines, and where there are more (networks of containers) one
// of the first that are heard is chosen. The rest is for a change of network and for a NAT that
// gives its UDP connections new ports. A client that has used them up is not heard from yet another
// address, finds its path dead, and restarts ICE, which begins with a new user.
const MaxSources = 32

// sources knows the ICE users (RFC 8445 section 5.3, user fragments of ours) that are served on
// a socket, and the addresses from which each was checked. Who is not on the list is
// none of its business: the mux drops that.
//
// An address counts before its check is verified, which takes the user's password. So somebody
// who has seen a user fragment on the wire can take the places of its owner, who
// then can change networks only by an ICE restart. Fragments are random and known to nobody else.
type sources struct {
	refused atomic.Uint64

	mu     sync.Mutex // guards byUser
	byUser map[string]map[netip.AddrPort]struct{}
}

func newSources() *sources {
	return &sources{byUser: make(map[string]map[netip.AddrPort]struct{})}
}

func (s *sources) serve(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byUser[user] == nil {
		s.byUser[user] = make(map[netip.AddrPort]struct{})
	}
}

func (s *sources) forget(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byUser, user)
}

// admits reports whether a packet may be heard.
func (s *sources) admits(packet []byte, from netip.AddrPort) bool {
	user := checkedUser(packet)
	if user == nil {
		return true
	}
	from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
	s.mu.Lock()
	defer s.mu.Unlock()
	heard := s.byUser[string(user)]
	if heard == nil {
		return true
	}
	if _, known := heard[from]; known {
		return true
	}
	if len(heard) == MaxSources {
		s.refused.Add(1)
		return false
	}
	heard[from] = struct{}{}
	return true
}

// The parts of a STUN message (RFC 8489 sections 5 and 14) that say for whom it is.
const (
	stunHeaderBytes    = 20
	stunCookie         = 0x2112A442
	stunBindingRequest = 0x0001
	stunUsername       = 0x0006
)

// checkedUser gives our user fragment in the user name of an ICE check, nil when
// the packet is anything else. It keeps a part of the packet.
func checkedUser(packet []byte) []byte {
	// Pion does not look at the two bits before the type, which must be zero.
	if len(packet) < stunHeaderBytes || binary.BigEndian.Uint16(packet)&0x3FFF != stunBindingRequest ||
		binary.BigEndian.Uint32(packet[4:]) != stunCookie {
		return nil
	}
	attributes := packet[stunHeaderBytes:]
	length := int(binary.BigEndian.Uint16(packet[2:]))
	if length > len(attributes) {
		return nil
	}
	attributes = attributes[:length]
	for len(attributes) >= 4 {
		kind, size := binary.BigEndian.Uint16(attributes), int(binary.BigEndian.Uint16(attributes[2:]))
		attributes = attributes[4:]
		if size > len(attributes) {
			return nil
		}
		if kind == stunUsername {
			user, _, _ := bytes.Cut(attributes[:size], []byte{':'})
			return user
		}
		attributes = attributes[min((size+3)&^3, len(attributes)):] // Values are padded to four bytes.
	}
	return nil
}
