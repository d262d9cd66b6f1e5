package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/panics"
)

// A node that loses half of the others remembers their addresses until they are back or peakFor has passed.
func TestPartitionedRemembersItsPeers(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	peers := func(n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprintf("10.0.0.%d:7946", i+1))
		}
		return all
	}
	var p peakMembership
	if !p.partitioned(1) || p.partitioned(2) {
		t.Fatal("alone is partitioned, and two are not")
	}
	p = p.observe(5, peers(4), at)
	for now, want := range map[int]bool{5: false, 4: false, 3: false, 2: true, 1: true} {
		if p.partitioned(now) != want {
			t.Errorf("%d of 5 are partitioned: %t", now, !want)
		}
	}
	later := at.Add(peakFor - time.Second)
	if cut := p.observe(1, nil, later); cut.members != 5 || len(cut.lastPeers) != 4 {
		t.Errorf("cut off it remembers %+v", cut)
	}
	if cut := p.observe(2, peers(1), later); !slices.Equal(cut.lastPeers, p.lastPeers) || cut.members != 5 {
		t.Errorf("with one other it remembers %+v", cut)
	}
	if fewer := p.observe(4, peers(3), later).observe(3, peers(2), later).observe(2, peers(1), later); !fewer.partitioned(2) {
		t.Errorf("when they go one by one it remembers %+v", fewer)
	}
	if back := p.observe(5, peers(4), later); back.since != later {
		t.Errorf("all are back, and it remembers %+v", back)
	}
	if gone := p.observe(2, peers(1), at.Add(peakFor)); gone.members != 2 || gone.partitioned(2) || len(gone.lastPeers) != 1 {
		t.Errorf("those who do not come back are remembered for ever: %+v", gone)
	}
	if many := p.observe(100, peers(99), at); len(many.lastPeers) != maxLastPeers {
		t.Errorf("%d are remembered, want %d", len(many.lastPeers), maxLastPeers)
	}
}

func TestWhoReachesNobodyIsTold(t *testing.T) {
	var u unjoined
	at := time.Unix(1, 0)
	for _, look := range []struct {
		after   time.Duration
		present int
		due     bool
	}{{0, 1, false}, {9, 1, false}, {1, 1, true}, {60, 1, false}, {1, 2, false}, {9, 1, false}, {1, 1, true}} {
		at = at.Add(look.after * time.Second)
		if got := u.due(look.present, at); got != look.due {
			t.Errorf("at %v with %d: %t, want %t", at.Unix(), look.present, got, look.due)
		}
	}
}

// TestSeedsWithoutDNSAreAskedAtOnce: with a DNS server that never answers, four seeds take no longer than one, and the end of the
// node ends the look-ups.
func TestSeedsWithoutDNSAreAskedAtOnce(t *testing.T) {
	seeds := []string{"a.example.org:7946", "b.example.org:7946", "c.example.org:7946", "d.example.org:7946"}
	for name, row := range map[string]struct{ endsAfter, most time.Duration }{
		"given up":      {time.Hour, lookupTimeout},
		"the node ends": {time.Second, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &Cluster{config: Config{Panics: panics.New()}, log: slog.New(slog.DiscardHandler)}
				c.lookup = func(ctx context.Context, _, _ string) ([]netip.Addr, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				ctx, cancel := context.WithTimeout(t.Context(), row.endsAfter)
				defer cancel()
				begun := time.Now()
				if n := c.exchange(ctx, nil, seeds); n != 0 {
					t.Errorf("%d seeds without an address are joined", n)
				}
				if took := time.Since(begun); took > row.most {
					t.Errorf("it takes %v, want %v at most", took, row.most)
				}
			})
		})
	}
}

func TestSeedsWithAddressesAreNotLookedUp(t *testing.T) {
	for _, seed := range []string{"192.0.2.1:7946", "[2001:db8::1]:7946"} {
		if got, err := lookup(nil).resolve(t.Context(), seed); err != nil || len(got) != 1 || got[0] != seed {
			t.Errorf("%s is resolved to %v, %v", seed, got, err)
		}
	}
}
