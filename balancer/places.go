package balancer

import (
	"net"
	"net/netip"

	"github.com/holdfast-rtc/holdfast/internal/connlimit"
)

// places bounds the connections. One address cannot take all places, because an idle connection stays for as long as
// its client likes.
type places struct {
	all  chan struct{}
	each *connlimit.KeyedCounter
}

func newPlaces(most int) *places {
	return &places{all: make(chan struct{}, most), each: connlimit.NewKeyedCounter(ofOneAddress(most))}
}

func ofOneAddress(most int) int { return max(most/4, 1) }

// take takes a place, and leave gives it back. ok is false if there is none.
func (p *places) take(from net.Addr) (leave func(), ok bool) {
	at, _ := netip.ParseAddrPort(from.String())
	address := connlimit.Network(at.Addr()).String()
	if !p.each.Take(address) {
		return nil, false
	}
	select {
	case p.all <- struct{}{}:
		return func() { <-p.all; p.each.Give(address) }, true
	default:
		p.each.Give(address)
		return nil, false
	}
}
