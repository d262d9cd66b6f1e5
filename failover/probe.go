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

// mediaProbes is how many single bytes are sent to a media port, each waiting twice as long for
// its refusal as the one before: 2, 4, ... 64 ms, 126 ms together. The first often comes while the
// kernel is still closing the sockets of a killed process; the later ones make up for a loss.
const (
	mediaProbes    = 6
	mediaProbeWait = 2 * time.Millisecond
	// resolveTimeout bounds the look-up of an address that is a name.
	resolveTimeout = time.Second
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
	socket, err := (&net.Dialer{Timeout: resolveTimeout}).DialContext(ctx, "udp", addr)
	if err != nil {
		return MediaSilent // No route, or a name that does not resolve: no evidence.
	}
	defer func() { _ = socket.Close() }() // Nothing was written that could be lost.
	for i := range mediaProbes {
		if ctx.Err() != nil {
			return MediaSilent
		}
		// The refusal of one datagram is reported by the next call on the socket, whichever it is.
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
