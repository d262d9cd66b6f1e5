package mediacheck

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/pion/stun/v4"
)

const (
	// The pause doubles after each check: 3.1 s in all, for a slow or lossy path.
	checks     = 5
	firstPause = 100 * time.Millisecond
	// A host candidate's (RFC 8445 section 5.1.2.1); irrelevant to the answer.
	priority    = 1862270975
	packetBytes = 1500
)

type answer int

const (
	answered answer = iota
	silent          // or refused
	untried         // no route, as for IPv6
)

// RFC 8445 section 7.2.
func check(ctx context.Context, to netip.AddrPort, ufrag, password string) answer {
	conn, err := (&net.Dialer{}).DialContext(ctx, "udp", to.String())
	if err != nil {
		if errors.Is(err, syscall.ENETUNREACH) || errors.Is(err, syscall.EAFNOSUPPORT) || errors.Is(err, syscall.EADDRNOTAVAIL) {
			return untried
		}
		return silent
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	request, err := stun.Build(
		stun.TransactionID, stun.BindingRequest, stun.NewUsername(ufrag+":try"),
		stun.RawAttribute{Type: stun.AttrICEControlling, Value: make([]byte, 8)},
		stun.RawAttribute{Type: stun.AttrPriority, Value: binary.BigEndian.AppendUint32(nil, priority)},
		stun.NewShortTermIntegrity(password), stun.Fingerprint,
	)
	if err != nil {
		return silent
	}
	buffer := make([]byte, packetBytes)
	for n := range checks {
		_, _ = conn.Write(request.Raw) // an error is of the check before: a firewall may come up
		until := time.Now().Add(firstPause << n)
		_ = conn.SetReadDeadline(until)
		for {
			count, err := conn.Read(buffer)
			if err == nil && answers(buffer[:count], request.TransactionID, password) {
				return answered
			}
			if refused := errors.Is(err, syscall.ECONNREFUSED); refused || err == nil {
				continue
			}
			break
		}
		if ctx.Err() != nil {
			break
		}
	}
	return silent
}

// Whoever else has that address now does not know the password.
func answers(packet []byte, id [stun.TransactionIDSize]byte, password string) bool {
	message := stun.Message{Raw: append([]byte(nil), packet...)}
	return message.Decode() == nil && message.Type == stun.BindingSuccess && message.TransactionID == id &&
		stun.NewShortTermIntegrity(password).Check(&message) == nil
}
