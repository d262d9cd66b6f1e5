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

// Limits bound pending connections.
type Limits struct {
	Total      int
	PerAddress int // see Network
	// Proxies have no limit of their own; see CountFor.
	Proxies []netip.Prefix
}

// Limiter is safe for concurrent use.
type Limiter struct {
	limits Limits

	mu        sync.Mutex
	all       list.List // of *Pending, oldest first
	addresses map[netip.Prefix]*list.List
	dropped   uint64
}

// New is empty.
func New(limits Limits) *Limiter {
	return &Limiter{limits: limits, addresses: make(map[netip.Prefix]*list.List)}
}

// Pending is not authenticated yet.
type Pending struct {
	limiter *Limiter
	address netip.Prefix

	inAll, inAddress *list.Element // nil when done
	drop             func()
}

// Add counts a connection. drop is called at most once, without locks; it must not block.
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

// CountFor names the address behind a proxy.
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

// file needs mu. The caller calls the drops.
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

// unfile needs mu.
func (l *Limiter) unfile(p *Pending) {
	same := l.addresses[p.address]
	same.Remove(p.inAddress)
	if same.Len() == 0 {
		delete(l.addresses, p.address)
	}
}

// expel needs mu.
func (l *Limiter) expel(element *list.Element) func() {
	p, ok := element.Value.(*Pending)
	if !ok {
		return func() {}
	}
	l.remove(p)
	l.dropped++
	return p.drop
}

// remove needs mu.
func (l *Limiter) remove(p *Pending) {
	if p.inAll == nil {
		return
	}
	l.unfile(p)
	l.all.Remove(p.inAll)
	p.inAll, p.inAddress = nil, nil
}

// Count returns the pending, and the dropped so far.
func (l *Limiter) Count() (now int, dropped uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Len(), l.dropped
}

// Done may be called twice.
func (p *Pending) Done() {
	p.limiter.mu.Lock()
	defer p.limiter.mu.Unlock()
	p.limiter.remove(p)
}

// DropBy replaces drop.
func (p *Pending) DropBy(drop func()) {
	p.limiter.mu.Lock()
	defer p.limiter.mu.Unlock()
	p.drop = drop
}

func ipOf(from net.Addr) netip.Addr {
	parsed, _ := netip.ParseAddrPort(from.String())
	return parsed.Addr()
}

// Network is an IPv4 address or IPv6 /64. Zero: no address.
func Network(ip netip.Addr) netip.Prefix {
	ip = ip.Unmap().WithZone("")
	bits := 32
	if ip.Is6() {
		bits = 64
	}
	prefix, _ := ip.Prefix(bits)
	return prefix
}

// Within reports whether a network has ip.
func Within(networks []netip.Prefix, ip netip.Addr) bool {
	return slices.ContainsFunc(networks, func(network netip.Prefix) bool { return network.Contains(ip.Unmap().WithZone("")) })
}
