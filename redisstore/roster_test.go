package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-rtc/holdfast/people/roster"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
	"github.com/holdfast-rtc/holdfast/ring"
)

const rosterRoom ring.RoomID = "a {room}"

// rosterRig writes rosters of one room.
type rosterRig struct {
	t testing.TB
	*Store

	raw redis.UniversalClient
}

func newRosterRig(t testing.TB, server storetest.Server) rosterRig {
	t.Helper()
	if !strings.Contains(server.URL, "timeout") {
		server = patient(server)
	}
	return rosterRig{t, open(t, server), server.Raw}
}

func (r rosterRig) claim(p pin.Pin) {
	r.t.Helper()
	if won, _, err := r.Claim(r.t.Context(), rosterRoom, p, ""); won != p || err != nil {
		r.t.Fatalf("Claim = %v, %v", won, err)
	}
}

func (r rosterRig) swapTo(old, next pin.Pin) {
	r.t.Helper()
	if now, _, err := r.Swap(r.t.Context(), rosterRoom, old, next, ""); now != next || err != nil {
		r.t.Fatalf("Swap = %v, %v", now, err)
	}
}

// write is of the room under p: "+id" puts a peer, "-id" drops one. The identity is the id's first letter.
func (r rosterRig) write(want roster.Outcome, p pin.Pin, seq, after uint64, signs ...string) {
	r.t.Helper()
	r.change(want, roster.Change{Room: rosterRoom, Pin: p, Seq: seq, After: after}, signs...)
}

// settle is of the whole roster, at the end of the grace time.
func (r rosterRig) settle(p pin.Pin, seq uint64, signs ...string) {
	r.t.Helper()
	r.change(roster.Written, roster.Change{Room: rosterRoom, Pin: p, Seq: seq, Settled: true}, signs...)
}

func (r rosterRig) change(want roster.Outcome, c roster.Change, signs ...string) {
	r.t.Helper()
	for _, sign := range signs {
		who := roster.Peer{ID: sign[1:], Identity: sign[1:2], Name: strings.ToUpper(sign[1:2]), Hidden: sign[1] == 'h', Since: time.Now().Add(-time.Minute)}
		if sign[0] == '+' {
			c.Put = append(c.Put, who)
		} else {
			c.Drop = append(c.Drop, roster.Leave{Peer: who, LastSeen: time.Now().Add(-time.Second)})
		}
	}
	got, err := r.WriteRosters(r.t.Context(), []roster.Change{c})
	if err != nil || got[0] != want {
		r.t.Fatalf("change %d after %d of %v: %v, %v, want %v", c.Seq, c.After, signs, got, err, want)
	}
}

func (r rosterRig) ask() roster.Room {
	r.t.Helper()
	found, err := r.Roster(r.t.Context(), rosterRoom)
	if err != nil {
		r.t.Fatal(err)
	}
	return found
}

// shows compares what is asked for with "a1 b1 | c", where those after the bar have left; "?" begins one that is not current.
func (r rosterRig) shows(want string) shown {
	r.t.Helper()
	found := r.ask()
	if got := rosterText(found); got != want {
		r.t.Fatalf("the roster is %q, want %q", got, want)
	}
	return shown{found}
}

type shown struct{ roster.Room }

// since is zero for a peer who is not there.
func (s shown) since(id string) time.Time {
	for _, p := range s.Peers {
		if p.ID == id {
			return p.Since
		}
	}
	return time.Time{}
}

func rosterText(found roster.Room) string {
	var here, left []string
	for _, p := range found.Peers {
		here = append(here, p.ID)
	}
	for _, l := range found.Left {
		left = append(left, l.Peer.Identity)
	}
	slices.Sort(here)
	slices.Sort(left)
	text := strings.Join(here, " ")
	if !found.Current {
		text = "?" + text
	}
	if len(left) > 0 {
		text += " | " + strings.Join(left, " ")
	}
	return text
}

func onRosterStores(t *testing.T, test func(r rosterRig)) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) { test(newRosterRig(t, server)) })
	t.Run("cluster", func(t *testing.T) { test(newRosterRig(t, storetest.StartCluster(t).Server)) })
}

func TestRosterFollowsItsOwner(t *testing.T) {
	onRosterStores(t, func(r rosterRig) {
		a, b := storetest.At("a", 1000, 1), storetest.At("b", 1001, 2)
		r.shows("")
		r.write(roster.Fenced, a, 1, 0, "+x1")
		r.claim(a)
		r.shows("?") // the owner has yet to write
		r.write(roster.Gap, a, 1, 7, "+x1")
		r.write(roster.Written, a, 1, 0, "+a1", "+b1", "+h1")
		since := r.shows("a1 b1 h1").since("a1")
		if age := time.Since(since); age < 50*time.Second || age > 2*time.Minute {
			r.t.Errorf("a peer is there for %v, want a minute", age)
		}
		r.write(roster.Written, a, 2, 1, "+a2", "-b1", "-h1")
		r.write(roster.Written, a, 2, 1, "+a2", "-b1", "-h1") // its answer was lost
		r.write(roster.Gap, a, 4, 3, "+c1")
		if people := roster.People(r.shows("a1 a2 | b").Peers); len(people) != 1 || len(people[0].Peers) != 2 {
			r.t.Errorf("found %+v, want one person with two clients", people)
		}
		// What a thawed server executes late.
		r.write(roster.Written, a, 1, 0, "+x1")
		r.shows("a1 a2 | b")

		r.swapTo(a, b)
		r.shows("?a1 a2 | b")
		r.write(roster.Fenced, a, 5, 2, "-a1")
		r.write(roster.Fenced, a, 6, 0)
		r.write(roster.Gap, b, 1, 2, "+c1")
		if left := r.raw.TTL(r.t.Context(), r.keys.roster(rosterRoom)).Val(); left > orphanTTL || left < orphanTTL/2 {
			r.t.Errorf("a roster whose owner is gone lives for %v, want %v", left, orphanTTL)
		}
		r.write(roster.Written, b, 1, 0, "+a1", "+c1")
		if again := r.shows("?a1 a2 c1 | b").since("a1"); !again.Equal(since) {
			r.t.Errorf("a1 came at %v, want %v still", again, since)
		}
		r.write(roster.Written, b, 2, 1, "-a1", "-c1", "-a2")
		r.shows(" | a b c")
		if left := r.raw.TTL(r.t.Context(), r.keys.roster(rosterRoom)).Val(); left < pinTTL-time.Minute {
			r.t.Errorf("a roster lives for %v, want as long as its pin", left)
		}
	})
}

// Whoever is missing after a node's death has left.
func TestRosterOfTheNextOwnerTellsWhoIsMissing(t *testing.T) {
	onRosterStores(t, func(r rosterRig) {
		a, b := storetest.At("a", 1000, 1), storetest.At("b", 1001, 2)
		r.claim(a)
		r.write(roster.Written, a, 1, 0, "+a1", "+b1", "+c1", "+c2", "+h1")
		r.swapTo(a, b)
		r.write(roster.Written, b, 1, 0, "+a1", "+c2")
		r.shows("?a1 b1 c1 c2 h1")
		r.write(roster.Written, b, 2, 1, "+c1")
		r.write(roster.Written, b, 3, 0, "+a1", "+c1", "+c2")
		r.shows("?a1 b1 c1 c2 h1") // of a write that failed before
		r.settle(b, 4, "+a1", "+c1", "+c2")
		r.shows("a1 c1 c2 | b")
		if removed, err := r.Remove(r.t.Context(), rosterRoom, b); !removed || err != nil {
			r.t.Fatalf("Remove = %v, %v", removed, err)
		}
		if n := r.raw.Exists(r.t.Context(), r.keys.roster(rosterRoom)).Val(); n != 0 {
			r.t.Error("a roster outlives the removal of its pin")
		}
	})
}

func TestLeaversAreBounded(t *testing.T) {
	onRosterStores(t, func(r rosterRig) {
		a := storetest.At("a", 1000, 1)
		r.claim(a)
		c := roster.Change{Room: rosterRoom, Pin: a, Seq: 1}
		for i := range 2 * roster.MaxLeft {
			at := time.Now().Add(-time.Duration(i) * time.Minute)
			c.Drop = append(c.Drop, roster.Leave{Peer: roster.Peer{ID: fmt.Sprint(i), Identity: fmt.Sprint(i)}, LastSeen: at})
		}
		if _, err := r.WriteRosters(r.t.Context(), []roster.Change{c}); err != nil {
			r.t.Fatal(err)
		}
		left := r.ask().Left
		if len(left) != roster.MaxLeft || left[0].Peer.Identity != "0" || time.Since(left[len(left)-1].LastSeen) > roster.LeftFor {
			r.t.Errorf("%d have left, want the last %d of an hour: %v", len(left), roster.MaxLeft, left)
		}
	})
}

// The waiting list keeps a place for whom it admitted until the roster shows them.
func TestRosterSettlesAdmissions(t *testing.T) {
	onRosterStores(t, func(r rosterRig) {
		a, ctx := storetest.At("a", 1000, 1), r.t.Context()
		key := r.keys.rosterKeys(rosterRoom)[3]
		r.claim(a)
		for _, who := range []string{"a", "b", "c"} {
			r.raw.ZAdd(ctx, key, redis.Z{Score: 1, Member: who})
		}
		r.write(roster.Written, a, 1, 0, "+a1", "-b1")
		if left := r.raw.ZRange(ctx, key, 0, -1).Val(); len(left) != 2 || left[0] != "b" {
			r.t.Errorf("reserved for %v, want for b and c", left)
		}
	})
}

func TestDamagedRosterHeals(t *testing.T) {
	onRosterStores(t, func(r rosterRig) {
		a, ctx, keys := storetest.At("a", 1000, 1), r.t.Context(), r.keys.rosterKeys(rosterRoom)
		r.claim(a)
		r.write(roster.Written, a, 1, 0, "+a1", "-b1")
		r.raw.HSet(ctx, keys[1], "a2", "garbage")
		r.shows("?a1 | b")
		r.write(roster.Written, a, 2, 0, "+a1")
		r.shows("a1 | b")
		for _, key := range keys[1:3] {
			r.raw.Del(ctx, key)
			r.raw.Set(ctx, key, "no hash", 0)
		}
		r.shows("?")
		r.write(roster.Gap, a, 3, 2, "+b1")
		r.write(roster.Written, a, 3, 0, "+a1", "-c1")
		r.shows("a1 | c")
		r.raw.Set(ctx, keys[0], "garbage", 0)
		r.shows("?a1 | c")
		r.write(roster.Fenced, a, 4, 3, "-a1")
	})
}

func TestRosterOfAnAwayStoreIsUnknown(t *testing.T) {
	server := storetest.StartAlone(t)
	r := newRosterRig(t, server.Server)
	r.claim(storetest.At("a", 1000, 1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if found, err := r.Roster(ctx, rosterRoom); !errors.Is(err, context.Canceled) {
		t.Errorf("Roster = %+v, %v, want an error", found, err)
	}
	outcomes, err := r.WriteRosters(ctx, []roster.Change{{Room: rosterRoom, Pin: storetest.At("a", 1000, 1), Seq: 1}})
	if err == nil || outcomes[0] != roster.Failed {
		t.Errorf("WriteRosters = %v, %v, want that it failed", outcomes, err)
	}
	if trips := r.RoundTrips(); r.ask().Pin.IsZero() || r.RoundTrips() != trips+1 {
		t.Errorf("a question took %d round trips, want one", r.RoundTrips()-trips)
	}
}

func FuzzRosterPeer(f *testing.F) {
	for _, text := range []string{"ann\n1700000000000 Ann", "\nann\n1 \n", "", "a\nx b", "a\n-1 b", "\n\n1 b", "a\n9223372036854775807 b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := readPeer("id", text)
		if err != nil {
			return
		}
		again := fmt.Sprintf("%s\n%d %s", p.Identity, p.Since.UnixMilli(), p.Name)
		if p.Hidden {
			again = "\n" + again
		}
		if q, err := readPeer("id", again); err != nil || q != p {
			t.Errorf("%q is read as %+v, and again as %+v, %v", text, p, q, err)
		}
	})
}
