// Package lobby keeps count of the connections that have not yet shown that
// they belong here: no token, no key, often not one byte.
//
// It promises that there are never more of them than its limits, of one address
// and in total; that a newcomer is never refused: when the lobby is full, whoever
// has waited longest is sent away, so that an honest caller, who shows what he
// has within a round trip, gets through a crowd that only waits; and that one
// address cannot crowd out the others. It does not know what is to be shown.
package lobby

import (
	"container/list"
	"net"
	"net/netip"
	"slices"
	"sync"
)

// Limits bound a lobby.
type Limits struct {
	Total      int // of all addresses together
	PerAddress int // of one IPv4 address, or one IPv6 network of 64 bits

	// Proxies are addresses that bring the connections of many people, and have no limit of
	// their own: CountFor says whose a connection is, once that is known.
	Proxies []netip.Prefix
}

// Lobby is where guests wait. Its methods may be called from any goroutine.
type Lobby struct {
	limits Limits

	mu        sync.Mutex // guards the fields below
	all       list.List  // of *Guest, the one who has waited longest first
	addresses map[netip.Prefix]*list.List
	sentAway  uint64
}

// New makes an empty lobby.
func New(limits Limits) *Lobby {
	return &Lobby{limits: limits, addresses: make(map[netip.Prefix]*list.List)}
}

// Guest is one connection in a lobby.
type Guest struct {
	lobby   *Lobby
	address netip.Prefix

	// Guarded by the lobby's mu.
	inAll, inAddress *list.Element // nil once it has left
	sendAway         func()
}

// Enter lets a connection in. sendAway is called, once at most and without locks,
// if it must go for others; it must not block.
func (l *Lobby) Enter(from net.Addr, sendAway func()) *Guest {
	g := &Guest{lobby: l, sendAway: sendAway}
	ip := ipOf(from)
	l.mu.Lock()
	g.inAll = l.all.PushBack(g)
	leaving := l.file(g, Network(ip), Within(l.limits.Proxies, ip))
	if l.all.Len() > l.limits.Total {
		leaving = append(leaving, l.expel(l.all.Front()))
	}
	l.mu.Unlock()
	for _, leave := range leaving {
		leave()
	}
	return g
}

// CountFor says for which address a guest counts that came through a proxy. It may cost
// the one of that address who has waited longest the place.
func (g *Guest) CountFor(address netip.Prefix) {
	g.lobby.mu.Lock()
	var leaving []func()
	if g.inAll != nil && g.address != address {
		g.lobby.unfile(g)
		leaving = g.lobby.file(g, address, false)
	}
	g.lobby.mu.Unlock()
	for _, leave := range leaving {
		leave()
	}
}

// file counts a guest for an address, and returns how whoever must go for it is sent away. Call it with mu held.
func (l *Lobby) file(g *Guest, address netip.Prefix, proxy bool) []func() {
	g.address = address
	mates := l.addresses[address]
	if mates == nil {
		mates = list.New()
		l.addresses[address] = mates
	}
	g.inAddress = mates.PushBack(g)
	if mates.Len() <= l.limits.PerAddress || proxy {
		return nil
	}
	return []func(){l.expel(mates.Front())}
}

// unfile undoes file. Call it with mu held.
func (l *Lobby) unfile(g *Guest) {
	mates := l.addresses[g.address]
	mates.Remove(g.inAddress)
	if mates.Len() == 0 {
		delete(l.addresses, g.address)
	}
}

// expel takes the guest of an element out and returns how it is sent away. Call it
// with mu held.
func (l *Lobby) expel(element *list.Element) func() {
	g, ok := element.Value.(*Guest)
	if !ok {
		return func() {}
	}
	l.remove(g)
	l.sentAway++
	return g.sendAway
}

// remove takes a guest out if it is in. Call it with mu held.
func (l *Lobby) remove(g *Guest) {
	if g.inAll == nil {
		return
	}
	l.unfile(g)
	l.all.Remove(g.inAll)
	g.inAll, g.inAddress = nil, nil
}

// Waiting counts the guests, and those that were sent away so far.
func (l *Lobby) Waiting() (now int, sentAway uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Len(), l.sentAway
}

// Leave takes the guest out: it has shown what it had to, or it is gone. Leaving twice
// does no harm.
func (g *Guest) Leave() {
	g.lobby.mu.Lock()
	defer g.lobby.mu.Unlock()
	g.lobby.remove(g)
}

// SendAwayBy says how the guest is sent away from now on.
func (g *Guest) SendAwayBy(sendAway func()) {
	g.lobby.mu.Lock()
	defer g.lobby.mu.Unlock()
	g.sendAway = sendAway
}

// ipOf is the IP address of a connection, the zero Addr where it has none.
func ipOf(from net.Addr) netip.Addr {
	parsed, _ := netip.ParseAddrPort(from.String())
	return parsed.Addr()
}

// Network is who an address counts for. Somebody with IPv6 has at least 2^64
// addresses, so those of one network of 64 bits count as one. What is no address counts as
// one address, the zero Prefix.
func Network(ip netip.Addr) netip.Prefix {
	ip = ip.Unmap().WithZone("")
	bits := 32
	if ip.Is6() {
		bits = 64
	}
	prefix, _ := ip.Prefix(bits)
	return prefix
}

// Within reports whether one of the networks has the address.
func Within(networks []netip.Prefix, ip netip.Addr) bool {
	return slices.ContainsFunc(networks, func(network netip.Prefix) bool { return network.Contains(ip.Unmap().WithZone("")) })
}
