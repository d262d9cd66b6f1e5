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
	// mediaProbes datagrams are sent; each waits twice as long for its refusal as the one before,
	// 126 ms in total. The first may find sockets of a killed process still open.
	mediaProbes    = 6
	mediaProbeWait = 2 * time.Millisecond
	resolveTimeout = time.Second // of an address that is a name
)

// askControl asks over a new connection who is at the control address of node.
func (f *Failover) askControl(ctx context.Context, node cluster.Node) Control {
	hello, err := f.nodes.HelloAt(ctx, node.Control)
	switch {
	case err == nil:
		return controlOf(node, hello)
	case errors.Is(err, control.ErrRefused):
		return ControlRefused
	default:
		return ControlSilent
	}
}

// probeMedia sends single bytes, which no node takes for media. Only a connected socket is told of an
// ICMP refusal.
func probeMedia(ctx context.Context, addr string) Media {
	socket, err := (&net.Dialer{Timeout: resolveTimeout}).DialContext(ctx, "udp", addr)
	if err != nil {
		return MediaSilent // No route or no such name: no evidence.
	}
	defer func() { _ = socket.Close() }() // Nothing was written that could be lost.
	for i := range mediaProbes {
		if ctx.Err() != nil {
			return MediaSilent
		}
		// The next call on the socket reports the refusal of an earlier datagram.
		if _, err := socket.Write([]byte{0}); errors.Is(err, syscall.ECONNREFUSED) {
			return MediaRefused
		}
		if err := socket.SetReadDeadline(time.Now().Add(mediaProbeWait << i)); err != nil {
			return MediaSilent
		}
		if _, err := socket.Read(make([]byte, 1)); errors.Is(err, syscall.ECONNREFUSED) {
			return MediaRefused
		}
	}
	return MediaSilent
}
