package peer

import (
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/pion/stun/v4"
)

const (
	// checkInterval holds until a pair is nominated, keepAlive afterwards (consent, RFC 7675).
	checkInterval = 50 * time.Millisecond
	keepAlive     = time.Second
	// othersEvery is how often Chromium checks a better pair than the one in use.
	othersEvery = 2500 * time.Millisecond
	// RFC 8445 section 5.1.2.1
	hostPriority = 2130706431
)

// checks is an ICE agent as browsers have it, reduced to one local candidate. It begins as the controlling end, and takes the first remote
// candidate that answers, and later a better one.
//
// A media node that has a standby makes it the controlled end, and then only a nomination moves it. It obeys one only if both browsers would:
// the pair has answered a check, as Chromium wants, and its priority is strictly higher than that of the pair in use, as Firefox wants. The best pair
// is in use then, and worse ones are forgotten, as in Chromium. So a standby that moves this agent moves browsers, by the same checks.
type checks struct {
	pairs      []*pair
	chosen     *pair // nil before an answer
	nominated  bool  // the chosen pair has answered twice
	controlled bool
	hops       int // how often a node's nomination has moved the connection
	next       time.Time
	others     time.Time // when other pairs than the chosen one are checked next

	request, response stun.Message // reused
}

// pair is a remote candidate.
type pair struct {
	at        netip.AddrPort
	priority  uint32
	id        [stun.TransactionIDSize]byte // of the check without an answer
	answered  bool
	nominated bool // by the node
}

func newPair(at netip.AddrPort, priority uint32) *pair {
	return &pair{at: at, priority: priority, id: stun.NewTransactionID()}
}

// hop is that of a packet.
func (k *checks) hop(from netip.AddrPort) int {
	if k.hops > 0 && k.chosen.at != from {
		return k.hops - 1
	}
	return k.hops
}

func (k *checks) find(at netip.AddrPort) *pair {
	for _, p := range k.pairs {
		if p.at == at {
			return p
		}
	}
	return nil
}

// checkAgain returns when the next checks are due.
func (c *connection) checkAgain(now time.Time) time.Time {
	k := &c.checks
	if now.Before(k.next) {
		return k.next
	}
	k.next = now.Add(checkInterval)
	if k.nominated {
		k.next = now.Add(keepAlive)
	}
	all := k.chosen == nil || !now.Before(k.others)
	if all {
		k.others = now.Add(othersEvery)
	}
	for _, p := range k.pairs {
		if all || p == k.chosen {
			c.check(p)
		}
	}
	return k.next
}

// RFC 8445 section 7.2.4.
func (c *connection) check(p *pair) {
	k := &c.checks
	role := stun.AttrICEControlling
	if k.controlled {
		role = stun.AttrICEControlled
	}
	setters := []stun.Setter{
		stun.NewTransactionIDSetter(p.id), stun.BindingRequest, stun.NewUsername(c.remote.user.ufrag + ":" + c.own.ufrag),
		stun.RawAttribute{Type: role, Value: make([]byte, 8)},
		stun.RawAttribute{Type: stun.AttrPriority, Value: binary.BigEndian.AppendUint32(nil, hostPriority)},
	}
	if p == k.chosen && !k.controlled {
		setters = append(setters, stun.RawAttribute{Type: stun.AttrUseCandidate})
	}
	if k.request.Build(append(setters, stun.NewShortTermIntegrity(c.remote.user.password), stun.Fingerprint)...) == nil {
		_, _ = c.socket.WriteToUDPAddrPort(k.request.Raw, p.at)
	}
}

func (c *connection) stun(b []byte, from netip.AddrPort, now time.Time) {
	k := &c.checks
	k.request.Reset()
	if _, err := k.request.Write(b); err != nil {
		return
	}
	switch k.request.Type {
	case stun.BindingSuccess:
		p := k.find(from)
		if p != nil && k.request.TransactionID == p.id && stun.NewShortTermIntegrity(c.remote.user.password).Check(&k.request) == nil {
			c.answered(p, now)
		}
	case stun.BindingRequest:
		integrity := stun.NewShortTermIntegrity(c.own.password)
		if integrity.Check(&k.request) != nil {
			return
		}
		mapped := &stun.XORMappedAddress{IP: net.IP(from.Addr().AsSlice()), Port: int(from.Port())}
		if k.response.Build(stun.NewTransactionIDSetter(k.request.TransactionID), stun.BindingSuccess, mapped, integrity, stun.Fingerprint) == nil {
			_, _ = c.socket.WriteToUDPAddrPort(k.response.Raw, from)
		}
		c.checked(from, now)
	}
}

// checked hears the check in k.request. With its tie-breaker of 0 this agent yields in each conflict of roles (RFC 8445 section 7.3.1.1).
func (c *connection) checked(from netip.AddrPort, now time.Time) {
	k := &c.checks
	k.controlled = k.request.Contains(stun.AttrICEControlling)
	p := k.find(from)
	if p == nil {
		// A peer-reflexive candidate (section 7.3.1.3).
		priority, err := k.request.Get(stun.AttrPriority)
		if err != nil || len(priority) != 4 || len(k.pairs) == maxCandidates {
			return
		}
		p = newPair(from, binary.BigEndian.Uint32(priority))
		if k.chosen != nil && p.priority <= k.chosen.priority {
			return
		}
		k.pairs = append(k.pairs, p)
	}
	p.nominated = p.nominated || k.request.Contains(stun.AttrUseCandidate)
	switch {
	case p == k.chosen:
	case p.answered:
		c.reconsider(p, now)
	default:
		c.check(p) // a triggered check (section 7.3.1.4)
	}
}

func (c *connection) answered(p *pair, now time.Time) {
	k := &c.checks
	p.answered, p.id = true, stun.NewTransactionID()
	switch {
	case k.chosen == nil:
		c.choose(p, now)
	case p != k.chosen:
		c.reconsider(p, now)
	default:
		c.heard.Store(now.UnixNano())
		if !k.nominated {
			k.nominated, k.next = true, now.Add(keepAlive)
			c.reached(StepICE, 0)
		}
	}
}

// reconsider takes another pair that has answered, if it is better and nothing forbids it.
func (c *connection) reconsider(p *pair, now time.Time) {
	k := &c.checks
	if p.priority <= k.chosen.priority || k.controlled && !p.nominated {
		return
	}
	c.heard.Store(now.UnixNano())
	c.choose(p, now)
	if k.controlled {
		k.hops++
		c.reached(StepICE, k.hops)
	}
}

func (c *connection) choose(p *pair, now time.Time) {
	k := &c.checks
	k.chosen, k.next = p, now
	k.pairs = slices.DeleteFunc(k.pairs, func(other *pair) bool { return other.priority < p.priority })
	c.out.to.Store(&p.at)
}
