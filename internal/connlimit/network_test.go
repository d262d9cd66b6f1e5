package connlimit

import (
	"encoding/binary"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// However many addresses are forged, a victim gets its share and no more.
func TestANetworkHasItsShareWhateverIsForged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewNetworkLimiter(10, 20)
		victim := &net.UDPAddr{IP: net.IPv4(192, 0, 2, 1)}
		allowed := 0
		for i := range 20_000 {
			var forged [4]byte
			binary.BigEndian.PutUint32(forged[:], 0x0a000000+uint32(i))
			l.Allow(&net.UDPAddr{IP: forged[:]})
			victim.Port = i % 65536
			if l.Allow(victim) {
				allowed++
			}
		}
		if allowed > 20 {
			t.Errorf("%d were allowed at once, want 20 at most", allowed)
		}
		<-time.After(time.Second)
		allowed = 0
		for range 100 {
			if l.Allow(victim) {
				allowed++
			}
		}
		if allowed != 10 {
			t.Errorf("%d were allowed a second later, want 10", allowed)
		}
	})
}
