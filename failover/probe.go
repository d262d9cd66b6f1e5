package failover

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
)

const (
	// Each wait is twice as long as the one before, 126 ms in all. There are several because a killed process's
	// sockets may still be open at the first.
	mediaProbes    = 6
	mediaProbeWait = 2 * time.Millisecond
	resolveTimeout = time.Second
)

func (f *Failover) askControl(ctx context.Context, node cluster.Node) controlAnswer {
	hello, err := f.nodes.HelloAt(ctx, node.Control)
	switch {
	case err == nil:
		return controlOf(node, hello)
	case errors.Is(err, control.ErrRefused):
		return controlRefused
	default:
		return controlSilent
	}
}

// probeMedia asks whether anything listens on the UDP media address. It uses a connected socket, because only such a
// socket is told of an ICMP refusal. A single byte is no valid media packet, so a live node ignores it.
func probeMedia(ctx context.Context, addr string) mediaAnswer {
	socket, err := (&net.Dialer{Timeout: resolveTimeout}).DialContext(ctx, "udp", addr)
	if err != nil {
		return mediaSilent
	}
	defer func() { _ = socket.Close() }()
	for i := range mediaProbes {
		if ctx.Err() != nil {
			return mediaSilent
		}
		// Either call may report the refusal of a datagram that was sent before.
		if _, err := socket.Write([]byte{0}); errors.Is(err, syscall.ECONNREFUSED) {
			return mediaRefused
		}
		if err := socket.SetReadDeadline(time.Now().Add(mediaProbeWait << i)); err != nil {
			return mediaSilent
		}
		if _, err := socket.Read(make([]byte, 1)); errors.Is(err, syscall.ECONNREFUSED) {
			return mediaRefused
		}
	}
	return mediaSilent
}
