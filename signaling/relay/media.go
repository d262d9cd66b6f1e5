package relay

import (
	"net/netip"
	"sync/atomic"

	"github.com/holdfast-rtc/holdfast/cluster"
)

// Views gives the current view.
type Views interface {
	View() *cluster.View
}

// Gossiped are the media sockets of live media nodes.
type Gossiped struct {
	views Views
	known atomic.Pointer[sockets]
}

type sockets struct {
	view      *cluster.View
	ports     map[netip.AddrPort]bool
	addresses map[netip.Addr]bool
}

// NewGossiped starts nothing.
func NewGossiped(views Views) *Gossiped { return &Gossiped{views: views} }

// HasSocket means that a media node told this socket.
func (g *Gossiped) HasSocket(at netip.AddrPort) bool { return g.now().ports[at] }

// HasAddress means that a media node has a socket there.
func (g *Gossiped) HasAddress(at netip.Addr) bool { return g.now().addresses[at] }

func (g *Gossiped) now() *sockets {
	view := g.views.View()
	if known := g.known.Load(); known != nil && known.view == view {
		return known
	}
	found := &sockets{view: view, ports: map[netip.AddrPort]bool{}, addresses: map[netip.Addr]bool{}}
	if view != nil {
		for _, node := range view.Nodes {
			for _, at := range node.MediaSockets() {
				found.ports[plain(at)], found.addresses[plain(at).Addr()] = true, true
			}
		}
	}
	g.known.Store(found)
	return found
}
