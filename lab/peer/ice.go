package peer

import (
	"encoding/binary"
	"net"
	"net/netip"
	"time"

	"github.com/pion/stun/v4"
)

const (
	// checkInterval holds until a pair is nominated, keepAlive afterwards (consent, RFC 7675).
	checkInterval = 50 * time.Millisecond
	keepAlive     = time.Second
	// RFC 8445 section 5.1.2.1
	hostPriority = 2130706431
)

// checks is a controlling ICE agent that nominates the first candidate to answer.
type checks struct {
	id        [stun.TransactionIDSize]byte // of the present round
	next      time.Time
	chosen    netip.AddrPort // zero before an answer
	nominated bool

	request, response stun.Message // reused
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
	k.id = stun.NewTransactionID()
	if k.chosen.IsValid() {
		c.check(k.chosen, true)
		return k.next
	}
	for _, candidate := range c.remote.candidates {
		c.check(candidate, false)
	}
	return k.next
}

// RFC 8445 section 7.2.4.
func (c *connection) check(to netip.AddrPort, nominate bool) {
	setters := []stun.Setter{
		stun.NewTransactionIDSetter(c.checks.id), stun.BindingRequest, stun.NewUsername(c.remote.user.ufrag + ":" + c.own.ufrag),
		stun.RawAttribute{Type: stun.AttrICEControlling, Value: make([]byte, 8)},
		stun.RawAttribute{Type: stun.AttrPriority, Value: binary.BigEndian.AppendUint32(nil, hostPriority)},
	}
	if nominate {
		setters = append(setters, stun.RawAttribute{Type: stun.AttrUseCandidate})
	}
	if c.checks.request.Build(append(setters, stun.NewShortTermIntegrity(c.remote.user.password), stun.Fingerprint)...) == nil {
		_, _ = c.socket.WriteToUDPAddrPort(c.checks.request.Raw, to)
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
		if k.request.TransactionID == k.id && stun.NewShortTermIntegrity(c.remote.user.password).Check(&k.request) == nil {
			c.answered(from, now)
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
	}
}

func (c *connection) answered(from netip.AddrPort, now time.Time) {
	k := &c.checks
	switch {
	case !k.chosen.IsValid():
		k.chosen, k.next = from, now
		c.out.to.Store(&from)
	case from == k.chosen:
		c.heard.Store(now.UnixNano())
		if !k.nominated {
			k.nominated, k.next = true, now.Add(keepAlive)
			c.reached(StepICE)
		}
	}
}
