package balancer

import (
	"net"
	"net/netip"

	"github.com/holdfast-rtc/holdfast/internal/connlimit"
)

// places bounds connections. Those of one address cannot take all: idle ones stay for as long as their client likes.
type places struct {
	all  chan struct{}
	each *connlimit.KeyedCounter
}

func newPlaces(most int) *places {
	return &places{all: make(chan struct{}, most), each: connlimit.NewKeyedCounter(ofOneAddress(most))}
}

func ofOneAddress(most int) int { return max(most/4, 1) }

// take is false if there is none. leave gives it back.
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
