package relay

import (
	"context"
	"net"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/pion/stun/v4"
)

// full is out of descriptors once.
type full struct {
	net.Listener

	failed atomic.Bool
}

func (l *full) Accept() (net.Conn, error) {
	if !l.failed.Swap(true) {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: syscall.EMFILE}
	}
	return l.Listener.Accept()
}

func TestAListenerOutlivesAnErrorOfAccept(t *testing.T) {
	s := newStage(t, nil)
	lis := tcp(t)
	s.tcp = lis.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.relay.Run(ctx, Listeners{TCP: &full{Listener: lis}}) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	h := s.hand("tcp")
	h.send(stun.MethodBinding)
	h.answer()
}
