package relay

import (
	"net"
	"slices"

	"github.com/pion/stun/v4"

	"github.com/holdfast-rtc/holdfast/panics"
)

// A panic in Pion's goroutines would end the process, so messages are first read here by the same code.

type packets struct {
	net.PacketConn
	relay *Relay
}

// ReadFrom returns the next message that passes.
func (p *packets) ReadFrom(into []byte) (int, net.Addr, error) {
	for {
		n, from, err := p.PacketConn.ReadFrom(into)
		if err != nil || p.relay.passes(into[:n], from) {
			return n, from, err
		}
	}
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
