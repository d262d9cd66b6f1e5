// Package connlimit bounds connections that have not yet shown a token or a key, and how often, and how many at a
// time, each of many keys does something.
//
// It promises that there are never more pending connections than its limits, of one address and in total; that a
// newcomer is never refused, because the oldest one is dropped instead, so that an honest caller gets through a crowd
// that only waits; and that one address cannot crowd out the others. It does not know what is to be shown.
package connlimit

import (
	"container/list"
	"net"
	"net/netip"
	"slices"
	"sync"
)

// Limits bounds the pending connections.
type Limits struct {
	Total int
	// PerAddress bounds the pending connections of one address. Network says what counts as one.
	PerAddress int
	// Proxies are addresses without a limit of their own. CountFor names the client behind them.
	Proxies []netip.Prefix
}

// Limiter counts pending connections. It is safe for concurrent use.
type Limiter struct {
	limits Limits

	mu sync.Mutex
	// all has *Pending values, the oldest first.
	all       list.List
	addresses map[netip.Prefix]*list.List
	dropped   uint64
}

// New returns a Limiter without connections.
func New(limits Limits) *Limiter {
	return &Limiter{limits: limits, addresses: make(map[netip.Prefix]*list.List)}
}

// Pending is a connection that has not shown a token or a key yet.
type Pending struct {
	limiter *Limiter
	address netip.Prefix

	// inAll and inAddress are nil when the connection is done.
	inAll, inAddress *list.Element
	drop             func()
}

// Add counts a connection. If it has to go, drop is called once, without a lock held. drop must not block.
func (l *Limiter) Add(from net.Addr, drop func()) *Pending {
	p := &Pending{limiter: l, drop: drop}
	ip := ipOf(from)
	l.mu.Lock()
	p.inAll = l.all.PushBack(p)
	drops := l.file(p, Network(ip), Within(l.limits.Proxies, ip))
	if l.all.Len() > l.limits.Total {
		drops = append(drops, l.expel(l.all.Front()))
	}
	l.mu.Unlock()
	for _, drop := range drops {
		drop()
	}
	return p
}

// CountFor counts the connection for an address behind a proxy.
func (p *Pending) CountFor(address netip.Prefix) {
	p.limiter.mu.Lock()
	var drops []func()
	if p.inAll != nil && p.address != address {
		p.limiter.unfile(p)
		drops = p.limiter.file(p, address, false)
	}
	p.limiter.mu.Unlock()
	for _, drop := range drops {
		drop()
	}
}

// file adds the connection to the list of its address, and returns the drop of the one that has to go. The caller
// holds mu, and calls the drops after it has unlocked mu.
func (l *Limiter) file(p *Pending, address netip.Prefix, proxy bool) []func() {
	p.address = address
	same := l.addresses[address]
	if same == nil {
		same = list.New()
		l.addresses[address] = same
	}
	p.inAddress = same.PushBack(p)
	if same.Len() <= l.limits.PerAddress || proxy {
		return nil
	}
	return []func(){l.expel(same.Front())}
}

// unfile takes the connection out of the list of its address. The caller holds mu.
func (l *Limiter) unfile(p *Pending) {
	same := l.addresses[p.address]
	same.Remove(p.inAddress)
	if same.Len() == 0 {
		delete(l.addresses, p.address)
	}
}

// expel takes the connection of this element out and returns its drop. The caller holds mu.
func (l *Limiter) expel(element *list.Element) func() {
	p, ok := element.Value.(*Pending)
	if !ok {
		return func() {}
	}
	l.remove(p)
	l.dropped++
	return p.drop
}

// remove takes the connection out, if it is still there. The caller holds mu.
func (l *Limiter) remove(p *Pending) {
	if p.inAll == nil {
		return
	}
	l.unfile(p)
	l.all.Remove(p.inAll)
	p.inAll, p.inAddress = nil, nil
}

// Count returns how many connections are pending now, and how many were dropped so far.
func (l *Limiter) Count() (now int, dropped uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Len(), l.dropped
}

// Done says that the connection has shown its token or key, or has ended. It may be called twice.
func (p *Pending) Done() {
	p.limiter.mu.Lock()
	defer p.limiter.mu.Unlock()
	p.limiter.remove(p)
}

// DropBy replaces the function that drops the connection.
func (p *Pending) DropBy(drop func()) {
	p.limiter.mu.Lock()
	defer p.limiter.mu.Unlock()
	p.drop = drop
}

func ipOf(from net.Addr) netip.Addr {
	parsed, _ := netip.ParseAddrPort(from.String())
	return parsed.Addr()
}

// Network returns what counts as one address: an IPv4 address, or the /64 of an IPv6 address. For no address it
// returns the zero prefix.
func Network(ip netip.Addr) netip.Prefix {
	ip = ip.Unmap().WithZone("")
	bits := 32
	if ip.Is6() {
		bits = 64
	}
	prefix, _ := ip.Prefix(bits)
	return prefix
}

// Within reports whether one of the networks contains ip.
func Within(networks []netip.Prefix, ip netip.Addr) bool {
	return slices.ContainsFunc(networks, func(network netip.Prefix) bool { return network.Contains(ip.Unmap().WithZone("")) })
}
