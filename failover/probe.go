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
	// Each waits twice as long, 126 ms in all. The first may find a killed process's sockets.
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

// Only a connected socket learns of a refusal. Single bytes are no media.
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
		// A call reports an earlier datagram's refusal.
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
