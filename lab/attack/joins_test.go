package attack

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// TestSixtyJoinsASecondOfOneIdentity: somebody with a token for every room comes 60 times a second for 6 s, half of the
// times into the call's room and half into new ones, and drops each socket without a word. What he leaves behind is bounded
// by the quotas and not by his haste.
func TestSixtyJoinsASecondOfOneIdentity(t *testing.T) {
	s := newStage(t)
	token := s.token("", "eve")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var joins sync.WaitGroup
	var in, refused atomic.Int64
	began := time.Now()
	tick := time.NewTicker(time.Second / 60)
	defer tick.Stop()
	for i := range 360 {
		<-tick.C
		room := bystanderRoom
		if i%2 == 0 {
			room = fmt.Sprint("eves-", i)
		}
		joins.Go(func() {
			conn, answer, err := s.join(ctx, token, room)
			if err != nil {
				t.Errorf("join %d: %v", i, err)
				return
			}
			defer func() { _ = conn.CloseNow() }()
			switch answer := answer.(type) {
			case *wire.Joined:
				in.Add(1)
			case *wire.Error:
				refused.Add(1)
				if answer.Code != wire.CodeTooManySockets {
					t.Errorf("join %d is refused with %+v", i, answer)
				}
			default:
				t.Errorf("join %d is told %+v", i, answer)
			}
		})
		if i%90 == 0 {
			s.newcomer(fmt.Sprint("newcomer-", i))
		}
	}
	joins.Wait()
	seconds := int(time.Since(began)/time.Second) + 1
	rooms, places := 0, 0
	for _, room := range s.rooms() {
		if room.Room != bystanderRoom {
			rooms++
		}
		for _, p := range room.Peers {
			if p.Identity == "eve" {
				places++
			}
		}
	}
	t.Logf("in %d s %d joins got in and %d were refused; %d rooms and %d places are left", seconds, in.Load(), refused.Load(), rooms, places)
	if most := 20 + seconds; rooms > most {
		t.Errorf("%d new rooms, want %d at most", rooms, most)
	}
	if most := 100 + 10*seconds; int(in.Load()) > most {
		t.Errorf("%d joins got in, want %d at most", in.Load(), most)
	}
	s.unharmed()
}
