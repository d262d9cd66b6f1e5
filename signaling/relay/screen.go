package relay

import (
	"net"
	"slices"

	"github.com/pion/stun/v4"

	"github.com/holdfast-rtc/holdfast/internal/panics"
)

// A panic in Pion's goroutines would end the process, so messages are first read here by the same code.

type packets struct {
	net.PacketConn
	relay *Relay
}

// ReadFrom returns the next message that passes and that its sender may have answered.
func (p *packets) ReadFrom(into []byte) (int, net.Addr, error) {
	for {
		n, from, err := p.PacketConn.ReadFrom(into)
		if err != nil || p.relay.answerable(into[:n], from) && p.relay.passes(into[:n], from) {
			return n, from, err
		}
	}
}

// answerable is false for a request that must not be answered, because too many came from the networks of addresses
// without an allocation. Only requests are answered (RFC 8489 section 5).
func (r *Relay) answerable(message []byte, from net.Addr) bool {
	const classBits0, classBits1 = 0x01, 0x10
	if len(message) < 2 || message[0] >= 0x40 || message[0]&classBits0 != 0 || message[1]&classBits1 != 0 {
		return true
	}
	if r.allocated(from) || r.unknown.Allow(from) {
		return true
	}
	r.count.requests.Add(1)
	return false
}

func (r *Relay) passes(message []byte, from net.Addr) (ok bool) {
	if len(message) >= 4 && message[0] >= 0x40 {
		return true
	}
	if caught := panics.Catch(func() { ok = r.config.read(message) }); caught != nil {
		r.config.Panics.Report(r.log, caught, "a TURN message broke its reading", "client", from.String())
		return false
	}
	return ok
}

// readable reads all that Pion's server reads.
func readable(message []byte) bool {
	m := stun.Message{Raw: slices.Clone(message)}
	if m.Decode() != nil {
		return false
	}
	switch m.Type.Method {
	case stun.MethodBinding, stun.MethodAllocate, stun.MethodRefresh, stun.MethodSend, stun.MethodCreatePermission, stun.MethodChannelBind:
	default:
		return false // no TCP to peers
	}
	// Pion answers what cannot be read.
	_ = new(stun.Username).GetFrom(&m)
	_ = new(stun.Realm).GetFrom(&m)
	_ = new(stun.Nonce).GetFrom(&m)
	_ = new(stun.XORMappedAddress).GetFromAs(&m, stun.AttrXORPeerAddress)
	_ = stun.MessageIntegrity(realm).Check(&m)
	return true
}
