package redisstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/people/roster"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
)

// rosterModel is one room whose media nodes die, freeze and come late, and whose store is away and forgets.
type rosterModel struct {
	rosterRig

	pin    pin.Pin         // that stands, or will when the owner has written it again
	here   map[string]bool // peers, by the owner
	waits  map[string]bool // peers of former owners who may come yet
	grace  bool            // is over: nobody may
	left   map[string]bool // identities that the store must remember, unless they are back
	clean  bool            // all is written
	writer *roster.Writer
	book   *roster.Book
	frozen []*roster.Writer // of former owners
	away   bool             // the store answers nobody, and gets what was asked
	late   []roster.Change  // that the store may execute yet
}

// WriteRosters is of roster.Store.
func (m *rosterModel) WriteRosters(ctx context.Context, changes []roster.Change) ([]roster.Outcome, error) {
	if m.away {
		m.late = append(m.late, changes...)
		return make([]roster.Outcome, len(changes)), errors.New("the store is away")
	}
	return m.Store.WriteRosters(ctx, changes)
}

func (m *rosterModel) must(err error) {
	if err != nil {
		m.t.Fatal(err)
	}
}

// open is a room on another node, or another boot of the same, which expects those who are here.
func (m *rosterModel) open() {
	m.writer = roster.NewWriter(panics.New(), slog.New(slog.DiscardHandler))
	m.writer.Store = m
	m.book = m.writer.Open(rosterRoom, m.pin)
	for id := range m.here {
		m.book.Put(peerNamed(id))
	}
	m.clean, m.grace = false, false
}

func peerNamed(id string) roster.Peer {
	return roster.Peer{ID: id, Identity: id[:1], Name: strings.ToUpper(id[:1]), Hidden: id[0] == 'h'}
}

func (m *rosterModel) leave(id string) {
	delete(m.here, id)
	if id[0] != 'h' {
		m.left[id[:1]] = true
	}
	m.clean = false
}

// move has the pin name another node. Some people do not come along.
func (m *rosterModel) move(t *rapid.T, frozen bool) {
	if frozen {
		m.frozen = append(m.frozen, m.writer)
	}
	next := storetest.At(fmt.Sprint("n", m.pin.Fence.Epoch), m.pin.Fence.Epoch+1, rapid.Uint64Range(1, 9).Draw(t, "nonce"))
	now, _, err := m.Swap(m.t.Context(), rosterRoom, m.pin, next, "")
	m.must(err)
	if now.IsZero() {
		_, _, err = m.Claim(m.t.Context(), rosterRoom, next, "")
		m.must(err)
	}
	known := m.ask()
	m.pin = next
	for _, id := range slices.Sorted(maps.Keys(m.here)) {
		if !rapid.Bool().Draw(t, "stays") {
			m.leave(id)
		}
	}
	m.waits = map[string]bool{}
	for _, p := range known.Peers {
		m.waits[p.ID] = !m.here[p.ID]
	}
	// Nobody knows any more of whom the store was not told.
	maps.DeleteFunc(m.left, func(identity string, _ bool) bool {
		return !slices.ContainsFunc(known.Peers, func(p roster.Peer) bool { return p.Identity == identity }) &&
			!slices.ContainsFunc(known.Left, func(l roster.Leave) bool { return l.Peer.Identity == identity })
	})
	m.open()
}

func (m *rosterModel) step(t *rapid.T) {
	ctx := m.t.Context()
	id := rapid.SampledFrom([]string{"a1", "a2", "a3", "b1", "b2", "c1", "h1"}).Draw(t, "peer")
	switch rapid.SampledFrom([]string{
		"join", "join", "join", "leave", "leave", "write", "write", "write", "away", "kill", "freeze", "thaw", "thaw", "reclaim", "forget", "prolong", "grace",
	}).Draw(t, "step") {
	case "join":
		m.book.Put(peerNamed(id))
		m.clean = m.clean && m.here[id]
		m.here[id] = true
		delete(m.waits, id)
	case "leave":
		if m.here[id] {
			m.book.Drop(id, time.Now())
			m.leave(id)
		}
	case "write":
		m.write()
	case "grace":
		m.book.Settle()
		m.grace, m.clean = true, false
	case "away":
		m.away = true
		if m.writer.Flush(ctx) == nil && !m.clean {
			t.Fatal("a store that is away took a change")
		}
		m.away = false
	case "kill":
		m.move(t, false)
	case "freeze":
		m.move(t, true)
	case "thaw":
		for _, old := range m.frozen {
			m.must(old.Flush(ctx))
		}
		for _, c := range rapid.Permutation(m.late).Draw(t, "late") {
			_, err := m.Store.WriteRosters(ctx, []roster.Change{c})
			m.must(err)
		}
	case "reclaim": // a higher pin of the same boot
		next := m.pin
		next.Fence.Epoch++
		now, _, err := m.Swap(ctx, rosterRoom, m.pin, next, "")
		m.must(err)
		if now == next {
			m.pin, m.clean = next, false
			m.book.Repin(next)
		}
	case "forget":
		m.must(m.raw.FlushAll(ctx).Err())
		clear(m.left)
		clear(m.waits)
		if rapid.Bool().Draw(t, "too early") {
			m.must(m.writer.Rewrite(ctx)) // fenced: there is no pin
		}
		_, err := m.Refresh(ctx, []pin.Holding{{Room: rosterRoom, Pin: m.pin}}, always)
		m.must(err)
		m.must(m.writer.Rewrite(ctx))
		m.clean = true
	case "prolong":
		m.writer.Renew(rosterRoom)
	}
	m.judge()
}

func (m *rosterModel) write() {
	m.must(m.writer.Flush(m.t.Context()))
	m.clean = true
	if m.grace {
		clear(m.waits)
	}
}

// judge wants the store to have what the owner has, once all is written.
func (m *rosterModel) judge() {
	if !m.clean {
		return
	}
	found := m.ask()
	var here []string
	for _, p := range found.Peers {
		if peer := peerNamed(p.ID); p.Identity != peer.Identity || p.Name != peer.Name || p.Hidden != peer.Hidden || time.Since(p.Since) > time.Hour {
			m.t.Fatalf("the store has %+v", p)
		}
		here = append(here, p.ID)
	}
	slices.Sort(here)
	want := slices.Collect(maps.Keys(m.here))
	for id, waits := range m.waits {
		if waits {
			want = append(want, id)
		}
	}
	slices.Sort(want)
	if found.Current != (len(want) == len(m.here)) || found.Pin != m.pin || !slices.Equal(here, want) {
		m.t.Fatalf("the store has %v under %v, current: %v; the owner has %v under %v", here, found.Pin, found.Current, want, m.pin)
	}
	for id := range m.here {
		if slices.ContainsFunc(found.Left, func(l roster.Leave) bool { return l.Peer.Identity == id[:1] }) {
			m.t.Fatalf("%s has left: %v, and is here: %v", id, found.Left, here)
		}
		delete(m.left, id[:1])
	}
	for identity := range m.left {
		if !slices.ContainsFunc(found.Peers, func(p roster.Peer) bool { return p.Identity == identity }) && !slices.ContainsFunc(found.Left, func(l roster.Leave) bool { return l.Peer.Identity == identity }) {
			m.t.Fatalf("%s has left, and the store has %v", identity, found.Left)
		}
	}
}

func TestRosterModel(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		r := newRosterRig(t, server)
		rapid.Check(t, func(rt *rapid.T) {
			m := &rosterModel{
				rosterRig: rosterRig{tripped{t, rt}, r.Store, r.raw}, pin: storetest.At("n", 1000, 1), here: map[string]bool{}, left: map[string]bool{},
			}
			m.must(r.raw.FlushAll(t.Context()).Err())
			m.claim(m.pin)
			m.open()
			for range rapid.IntRange(1, 30).Draw(rt, "steps") {
				m.step(rt)
			}
			m.write()
			m.judge()
		})
	})
}
