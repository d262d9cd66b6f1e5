package replica

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
)

func joined(p *control.Peer) *control.RosterChange {
	return &control.RosterChange{Change: &control.RosterChange_Joined{Joined: p}}
}

func updated(p *control.Peer) *control.RosterChange {
	return &control.RosterChange{Change: &control.RosterChange_Updated{Updated: p}}
}

func left(id string) *control.RosterChange {
	return &control.RosterChange{Change: &control.RosterChange_Left{Left: id}}
}

func encoded(t testing.TB, changes ...*control.RosterChange) []byte {
	t.Helper()
	text, err := control.EncodeRosterChanges(changes)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// plain is the same as Roster.Change, one change at a time.
func plain(peers []*control.Peer, changes ...*control.RosterChange) []*control.Peer {
	peers = slices.Clone(peers)
	for _, c := range changes {
		id, now := changed(c)
		at := slices.IndexFunc(peers, func(p *control.Peer) bool { return p.GetId() == id })
		switch {
		case now == nil:
			peers = slices.DeleteFunc(peers, func(p *control.Peer) bool { return p.GetId() == id })
		case at >= 0:
			peers[at] = now
		default:
			peers = append(peers, now)
		}
	}
	return peers
}

func TestARosterFollowsChanges(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		roster, want := Of(nil), []*control.Peer(nil)
		for range 30 {
			// The changes of one event are of different peers.
			var changes []*control.RosterChange
			for _, id := range random.Perm(8)[:random.IntN(5)] {
				p := &control.Peer{Id: fmt.Sprint("p", id), Name: fmt.Sprint(random.IntN(100)), VideoMuted: random.IntN(2) == 0, ScreenShared: random.IntN(2) == 0}
				changes = append(changes, []*control.RosterChange{joined(p), updated(p), left(p.GetId())}[random.IntN(3)])
			}
			roster, want = roster.Change(changes...), plain(want, changes...)
			if !slices.Equal(roster.Peers(), want) {
				t.Fatalf("seed %d: the roster is %v, want %v", seed, roster.Peers(), want)
			}
			cameras := 0
			for _, p := range want {
				cameras += ones(!p.GetVideoMuted(), p.GetScreenShared())
			}
			if got, microphones := roster.On(); got != cameras || microphones != len(want) {
				t.Fatalf("seed %d: %d cameras and %d microphones are on, want %d and %d", seed, got, microphones, cameras, len(want))
			}
			if len(want) > 0 && roster.Digest() != control.RosterDigest(want) || len(want) == 0 && roster.Digest() != 0 {
				t.Fatalf("seed %d: digest %d", seed, roster.Digest())
			}
		}
	}
}

func TestSessionsOfARoomShareOneRoster(t *testing.T) {
	rosters := New()
	run := rosters.Run(7)
	if rosters.Run(7) != run || rosters.Run(8) == run {
		t.Fatal("a run is not itself")
	}
	ada, bob, eve := &control.Peer{Id: "ada"}, &control.Peer{Id: "bob"}, &control.Peer{Id: "eve"}
	early := run.Begin(1, []*control.Peer{ada})
	// bob came while his own join waited to be told with eve's, so the event begins before his roster.
	late := run.Begin(2, []*control.Peer{ada, bob})
	event := encoded(t, joined(bob), joined(eve))
	one, err := run.Change(early, 3, event)
	if err != nil {
		t.Fatal(err)
	}
	two, err := run.Change(late, 3, event)
	if err != nil || one != two {
		t.Fatalf("two sessions made %p and %p, %v", one, two, err)
	}
	if peers := one.Roster.Peers(); len(peers) != 3 || peers[2].GetId() != "eve" || len(one.Changes) != 2 {
		t.Fatalf("the roster is %v after %v", one.Roster.Peers(), one.Changes)
	}
	if run.Begin(3, nil) != one.Roster {
		t.Error("a stream that begins at the number has a roster of its own")
	}
	encodings := 0
	for _, key := range []any{"a", "a", "b"} {
		one.Frames(key, func() [][]byte { encodings++; return [][]byte{[]byte(key.(string))} })
	}
	if encodings != 2 {
		t.Errorf("encoded %d times for two keys", encodings)
	}
	if unshared, err := (*Run)(nil).Change(early, 3, event); err != nil || unshared == one || len(unshared.Roster.Peers()) != 3 {
		t.Errorf("without a run: %v, %v", unshared, err)
	}
	if _, err := run.Change(early, 4, []byte{0xff}); err == nil {
		t.Error("no changes were read")
	}
}

func TestASlowSessionMakesItsOwnRosters(t *testing.T) {
	run := New().Run(7)
	first := run.Begin(1, nil)
	event := func(i uint64) []byte { return encoded(t, joined(&control.Peer{Id: fmt.Sprint(i)})) }
	fast := first
	for seq := uint64(2); seq < 3*kept; seq++ {
		told, err := run.Change(fast, seq, event(seq))
		if err != nil {
			t.Fatal(err)
		}
		fast = told.Roster
	}
	slow := first
	for seq := uint64(2); seq < 3*kept; seq++ {
		told, err := run.Change(slow, seq, event(seq))
		if err != nil {
			t.Fatal(err)
		}
		slow = told.Roster
	}
	if slow != fast {
		t.Error("a session that has caught up keeps a roster of its own")
	}
	if late := run.Begin(2, []*control.Peer{{Id: "2"}}); len(late.Peers()) != 1 {
		t.Errorf("a stream that began long ago has %v", late.Peers())
	}
}

func TestARunIsForgottenWithItsLastSession(t *testing.T) {
	rosters := New()
	known := func() int {
		rosters.mu.Lock()
		defer rosters.mu.Unlock()
		return len(rosters.runs)
	}
	func() {
		run := rosters.Run(7)
		runtime.GC()
		if known() != 1 {
			t.Fatal("a run that is held is forgotten")
		}
		runtime.KeepAlive(run)
	}()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	limit := time.After(time.Minute)
	for runtime.GC(); known() != 0; runtime.GC() {
		select {
		case <-look.C:
		case <-limit:
			t.Fatal("the run is never forgotten")
		}
	}
}

func FuzzChange(f *testing.F) {
	f.Add(encoded(f, joined(&control.Peer{Id: "bob"}), left("ada"), left("nobody")))
	f.Add(encoded(f, updated(&control.Peer{Id: "ada", ScreenShared: true}), &control.RosterChange{}, nil))
	f.Add([]byte{0xff})
	f.Fuzz(func(t *testing.T, text []byte) {
		run := New().Run(1)
		from := run.Begin(1, []*control.Peer{{Id: "ada"}})
		told, err := run.Change(from, 2, text)
		if err != nil {
			return
		}
		ids := map[string]bool{}
		for _, p := range told.Roster.Peers() {
			if ids[p.GetId()] {
				t.Fatalf("%q is in the roster twice", p.GetId())
			}
			ids[p.GetId()] = true
		}
	})
}
