package failover

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
)

const (
	// A dead port answers a datagram at once on the same host and within a round
	// trip elsewhere; three datagrams make up for one that is lost, and for the limit that
	// kernels put on ICMP (one per millisecond to one destination).
	mediaProbes    = 3
	mediaProbeWait = 33 * time.Millisecond
)

// gather makes both observations of a node at once, so that they speak of one moment.
func (f *Failover) gather(ctx context.Context, node cluster.Node, stream Stream) Evidence {
	e := Evidence{Stream: stream}
	var both sync.WaitGroup
	both.Go(func() { e.Media = f.askMedia(ctx, node.Media) })
	both.Go(func() { e.Control = f.askControl(ctx, node) })
	both.Wait()
	return e
}

// askControl dials the control address of node anew and asks who lives there.
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

// probeMedia sends single bytes, which no media node takes for media, from a
// connected socket: only a connected one is told of the ICMP refusal.
func probeMedia(ctx context.Context, addr string) Media {
	socket, err := (&net.Dialer{Timeout: mediaProbes * mediaProbeWait}).DialContext(ctx, "udp", addr)
	if err != nil {
		return MediaSilent // No route, or a name that does not resolve: no evidence.
	}
	defer func() { _ = socket.Close() }() // Nothing was written that could be lost.
	for range mediaProbes {
		if ctx.Err() != nil {
			return MediaSilent
		}
		// The refusal of one datagram is reported by the next call on the socket, whichever it is.
		if _, err := socket.Write([]byte{0}); errors.Is(err, syscall.ECONNREFUSED) {
			return MediaRefused
		}
		if err := socket.SetReadDeadline(time.Now().Add(mediaProbeWait)); err != nil {
			return MediaSilent
		}
		if _, err := socket.Read(make([]byte, 1)); errors.Is(err, syscall.ECONNREFUSED) {
			return MediaRefused
		}
	}
	return MediaSilent
}
