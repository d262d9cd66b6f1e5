package redisstore

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
	"github.com/holdfast-rtc/holdfast/ring"
)

// A store 150 ms away answers within the 300 ms of a placement: claims succeed, several at a time, as long as the connections were made before.
func TestDistantStoreTakesClaimsWithinTheBudget(t *testing.T) {
	t.Parallel() // most of it is waiting
	fleet := storetest.StartAlone(t)
	away := storetest.Away(t, fleet.Processes[0].Address)
	away.SetRoundTrip(150 * time.Millisecond)
	store := open(t, storetest.Server{URL: "redis://" + away.Address})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- store.Run(ctx) }()
	defer func() {
		cancel()
		<-ended
	}()
	tries := 0
	testkit.Eventually(t, "a burst of claims to succeed within 300 ms each", func() bool {
		tries++
		const burst = 8
		failed := make(chan error, burst)
		for i := range burst {
			go func() {
				limited, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				defer cancel()
				_, _, err := store.Claim(limited, ring.RoomID(fmt.Sprintf("r-%d-%d", tries, i)), storetest.At("a", 1000, uint64(i+1)), "")
				failed <- err
			}()
		}
		all := true
		for range burst {
			all = <-failed == nil && all
		}
		return all
	})
}
