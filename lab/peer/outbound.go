package peer

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"
	"github.com/pion/srtp/v3"
)

type outbound struct {
	socket *net.UDPConn
	to     atomic.Pointer[netip.AddrPort] // the node's address; nil before it answers a check

	mu            sync.Mutex // guards the fields below
	keys          *srtp.Context
	plain, sealed []byte
	header        rtp.Header // EncryptRTP writes it, with extensions that point into plain
}

func (o *outbound) open(keys *srtp.Context) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.keys = keys
}

// o.plain then holds the plain packet. o.mu must be held.
func (o *outbound) rtp(packet *rtp.Packet) bool {
	if o.keys == nil {
		return false
	}
	o.plain = append(o.plain[:0], make([]byte, packet.MarshalSize())...)
	if _, err := packet.MarshalTo(o.plain); err != nil {
		return false
	}
	var err error
	if o.sealed, err = o.keys.EncryptRTP(o.sealed[:0], o.plain, &o.header); err != nil {
		return false
	}
	_, _ = o.socket.WriteToUDPAddrPort(o.sealed, *o.to.Load())
	return true
}

func (o *outbound) report(packets []rtcp.Packet) {
	b, err := rtcp.Marshal(packets)
	if err != nil || len(b) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.keys == nil {
		return
	}
	if o.sealed, err = o.keys.EncryptRTCP(o.sealed[:0], b, nil); err == nil {
		_, _ = o.socket.WriteToUDPAddrPort(o.sealed, *o.to.Load())
	}
}
