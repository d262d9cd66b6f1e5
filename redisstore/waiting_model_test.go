package redisstore

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/holdfast-rtc/holdfast/people/waitlist"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
	"github.com/holdfast-rtc/holdfast/ring"
)

const club ring.RoomID = "club"

// waitingRig is a room's door in a store whose time a test lets pass: what is written grows older. Time that the test
// itself takes does not count.
type waitingRig struct {
	t      testing.TB
	raw    redis.UniversalClient
	store  *Store
	writer string
	passed *time.Time // the store's clock when time was last let pass
}

func newWaitingRig(t testing.TB, server storetest.Server) waitingRig {
	t.Helper()
	return waitingRig{t, server.Raw, open(t, server), storetest.At("a", 1000, 1).Encode(), new(time.Time)}
}

func (r waitingRig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r waitingRig) key(part string) string {
	return strings.Replace(keyspace(pin.DefaultCluster).door(club), doorSuffix, "}:"+part, 1)
}

// pass makes everything that is written so much older, less what the test took since the last call.
func (r waitingRig) pass(d time.Duration) {
	r.t.Helper()
	ctx := r.t.Context()
	now := r.now()
	if !r.passed.IsZero() {
		d -= now.Sub(*r.passed)
	}
	*r.passed = now
	older := -d.Milliseconds()
	change := r.raw.Pipeline()
	for _, part := range []string{"admitted", "waiting"} {
		for _, z := range r.raw.ZRangeWithScores(ctx, r.key(part), 0, -1).Val() {
			by := older
			if z.Score < 0 {
				by = -older
			}
			change.ZIncrBy(ctx, r.key(part), float64(by), fmt.Sprint(z.Member))
		}
	}
	for field, text := range r.raw.HGetAll(ctx, r.key("door")).Val() {
		if at, err := strconv.ParseInt(text, 10, 64); err == nil && slices.Contains([]string{"born", "from", "hold", "checked"}, field) {
			change.HSet(ctx, r.key("door"), field, at+older)
		}
	}
	if left := r.raw.PTTL(ctx, r.key("roster")).Val(); left > 0 {
		change.PExpire(ctx, r.key("roster"), max(left-d, 0))
	}
	_, err := change.Exec(ctx)
	r.must(err)
}

func (r waitingRig) now() time.Time {
	r.t.Helper()
	now, err := r.raw.Time(r.t.Context()).Result()
	r.must(err)
	return now
}

// show is the room's media node writing who is in it.
func (r waitingRig) show(peers map[string]string) {
	r.t.Helper()
	fields := map[string]any{"@pin": r.writer}
	for peer, who := range peers {
		fields[peer] = who + "\nmore"
	}
	pipe := r.raw.TxPipeline()
	pipe.Del(r.t.Context(), r.key("roster"))
	pipe.HSet(r.t.Context(), r.key("roster"), fields)
	pipe.ZRemRangeByScore(r.t.Context(), r.key("admitted"), "-inf", fmt.Sprint(r.now().UnixMilli()))
	_, err := pipe.Exec(r.t.Context())
	r.must(err)
}

func (r waitingRig) enter(e waitlist.Entry) waitlist.Answer {
	r.t.Helper()
	_, _, answer, err := r.store.Enter(r.t.Context(), club, storetest.At("a", 1000, 1), "", e)
	r.must(err)
	return answer
}

func (r waitingRig) checkIn(limit int, who ...string) waitlist.Checked {
	r.t.Helper()
	answers := r.store.CheckIn(r.t.Context(), []waitlist.Asked{{Room: club, Cap: limit, Who: who}})
	r.must(answers[0].Err)
	return answers[0]
}

func (r waitingRig) door(o waitlist.Order) waitlist.Door {
	r.t.Helper()
	door, err := r.store.Door(r.t.Context(), club, o)
	r.must(err)
	return door
}

// modelTick: no sum of ticks is near a limit of the scripts.
const modelTick = 2300 * time.Millisecond

// lineModel is what a fair line in one process does. Its people wait at three nodes.
type lineModel struct {
	waitingRig

	cap    int
	closed bool
	now    time.Duration
	peers  map[string]string        // of the room's media node
	held   map[string]time.Duration // reservations, until when
	line   []string                 // in order
	chosen int                      // so many of the line's first were let in by a moderator
	last   map[string]time.Duration // check-ins of the line
	turned map[string]time.Duration
	at     map[string]int   // the node at which somebody waits
	ticket map[string]int64 // what the nodes know
	rank   map[string]int64 // what the store knows
	newest int64
	run    time.Duration // the last script
	from   time.Duration
	born   time.Duration
	known  bool // there is a door
}

func (m *lineModel) inside() map[string]bool {
	set := map[string]bool{}
	for _, who := range m.peers {
		set[who] = true
	}
	for who := range m.held {
		set[who] = true
	}
	return set
}

func (m *lineModel) unlist(who string) {
	if i := slices.Index(m.line, who); i >= 0 {
		if i < m.chosen {
			m.chosen--
		}
		m.line = slices.Delete(m.line, i, i+1)
	}
	delete(m.last, who)
}

func (m *lineModel) free() bool { return m.now >= m.from && (m.cap < 0 || len(m.inside()) < m.cap) }

// begin is what every script begins with; in a store that forgot, an entry waits for those who were there before.
func (m *lineModel) begin() {
	for who, until := range m.held {
		if until <= m.now {
			delete(m.held, who)
		}
	}
	if !m.known {
		m.known, m.born = true, m.now
	}
	if late := m.now - m.run; late > 3*time.Second && (m.from <= m.run || late > 6*time.Second) && len(m.line) > 0 {
		m.from = m.now + 3*time.Second
	}
	m.run = m.now
}

func (m *lineModel) advance() {
	if m.now >= m.from {
		for who, at := range m.last {
			if m.now-at > 10*time.Second {
				m.unlist(who)
			}
		}
	}
	for m.free() && len(m.line) > 0 && (!m.closed || m.chosen > 0) {
		m.admit(m.line[0])
	}
}

func (m *lineModel) admit(who string) {
	m.unlist(who)
	if !m.inside()[who] {
		m.held[who] = m.now + 15*time.Second
	}
}

// enter does it in the model and in the store, and compares.
func (m *lineModel) enterBoth(who string, node int, wait bool) {
	fresh := !m.known
	m.begin()
	if m.from == 0 && (fresh && len(m.peers) > 0 || m.ticket[who] > 0 && m.now-m.born < 10*time.Second) {
		m.from = m.now + 3*time.Second
	}
	m.advance()
	want := waitlist.Refused
	switch {
	case m.inside()[who]:
		want = waitlist.Inside
		m.unlist(who)
		if _, held := m.held[who]; held {
			m.held[who] = m.now + 15*time.Second
		}
	case !m.closed && m.free() && len(m.line) == 0:
		want = waitlist.Admitted
		m.admit(who)
	case wait:
		want = waitlist.Waiting
		if !slices.Contains(m.line, who) {
			m.put(who)
		}
		delete(m.turned, who)
		m.last[who] = m.now
	}
	got := m.enter(waitlist.Entry{Identity: who, Cap: m.cap, Wait: wait, Ticket: m.ticket[who]})
	if got.Outcome != want || want == waitlist.Waiting && got.Place.Position != slices.Index(m.line, who)+1 {
		m.t.Fatalf("%s enters: %+v, want outcome %d of line %v with %v inside", who, got, want, m.line, m.inside())
	}
	delete(m.at, who)
	delete(m.ticket, who)
	if want == waitlist.Waiting {
		m.at[who], m.ticket[who], m.rank[who] = node, got.Ticket, got.Ticket
	}
}

// put: who comes back with a ticket is behind those with earlier ones.
func (m *lineModel) put(who string) {
	m.rank[who] = m.ticket[who]
	if m.rank[who] <= 0 {
		m.newest++
		m.rank[who] = time.Now().Add(time.Hour).UnixMicro() + m.newest // behind all
	}
	i := len(m.line)
	for i > m.chosen && m.rank[m.line[i-1]] > m.rank[who] {
		i--
	}
	m.line = slices.Insert(m.line, i, who)
}

func (m *lineModel) checkInBoth(node int) {
	var who []string
	for _, one := range modelPeople {
		if m.at[one] == node {
			who = append(who, one)
		}
	}
	if len(who) == 0 {
		return
	}
	m.begin()
	for _, one := range who {
		if slices.Contains(m.line, one) {
			m.last[one] = m.now
		}
	}
	m.advance()
	got := m.checkIn(m.cap, who...)
	for i, one := range who {
		want := slices.Index(m.line, one) + 1
		if at, turned := m.turned[one]; want == 0 && turned && m.now-at <= 10*time.Second {
			want = waitlist.TurnedAway
		}
		if m.inside()[one] {
			want = waitlist.LetIn
			m.unlist(one)
		}
		if got.Places[i] != want {
			m.t.Fatalf("%s at node %d hears %d, want %d of line %v with %v inside", one, node, got.Places[i], want, m.line, m.inside())
		}
		switch want {
		case waitlist.LetIn, waitlist.TurnedAway:
			delete(m.at, one)
			delete(m.ticket, one)
		}
	}
	for i, one := range who { // nodes enter those again whom the store does not know
		if got.Places[i] == waitlist.Gone {
			m.enterBoth(one, node, true)
		}
	}
}

func (m *lineModel) doorBoth(deed waitlist.Deed, who string) {
	m.begin()
	order := waitlist.Order{Deed: deed, Identity: who}
	listed := slices.Contains(m.line, who)
	switch deed { //nolint:exhaustive // the others change nothing here
	case waitlist.Admit:
		if listed {
			at := m.last[who]
			m.unlist(who)
			m.line = slices.Insert(m.line, m.chosen, who)
			m.last[who] = at
			m.chosen++
		}
	case waitlist.Turn:
		if listed {
			m.unlist(who)
			m.turned[who] = m.now
		}
	case waitlist.Quit:
		m.unlist(who)
		delete(m.at, who)
		delete(m.ticket, who)
	case waitlist.Release:
		delete(m.held, who)
	case waitlist.Change:
		m.closed = !m.closed
		order.Closed = &m.closed
	}
	m.advance()
	got := m.door(order)
	var line []string
	for _, w := range got.Line {
		line = append(line, w.Identity)
	}
	if !slices.Equal(line, m.line) || got.Inside != len(m.inside()) || got.Length != len(m.line) || got.Closed != m.closed {
		m.t.Fatalf("after %s of %s the door is %+v, want line %v and inside %v", deed, who, got, m.line, m.inside())
	}
	if deed != waitlist.Admit && deed != waitlist.Turn {
		listed = false
	}
	if got.Done != listed {
		m.t.Fatalf("%s of %s: done is %v, want %v", deed, who, got.Done, listed)
	}
}

var modelPeople = []string{"ann", "bob", "cy", "dee", "eve", "fay"}

func (m *lineModel) step(t *rapid.T) {
	m.pass(0)
	who, node := rapid.SampledFrom(modelPeople).Draw(t, "who"), rapid.IntRange(1, 3).Draw(t, "node")
	switch rapid.SampledFrom([]string{
		"enter", "enter", "enter", "ask", "check", "check", "check", "attach", "attach", "leave", "leave", "pass", "pass", "pass",
		"kill", "quit", "admit", "turn", "release", "close", "forget",
	}).Draw(t, "step") {
	case "enter": // also elsewhere, as who comes back does
		m.enterBoth(who, node, true)
	case "ask":
		if m.at[who] == 0 {
			m.enterBoth(who, node, false)
		}
	case "check":
		m.checkInBoth(node)
	case "attach": // those with a reservation, in two tabs
		if m.held[who] > m.now {
			m.peers[who+"-1"], m.peers[who+"-2"] = who, who
			m.show(m.peers)
		}
	case "leave":
		tab := who + rapid.SampledFrom([]string{"-1", "-2"}).Draw(t, "tab")
		delete(m.peers, tab)
		m.show(m.peers)
	case "pass":
		m.pass(modelTick)
		m.now += modelTick
		m.show(m.peers)
	case "kill":
		for one, at := range m.at {
			if at == node {
				delete(m.at, one)
				delete(m.ticket, one)
			}
		}
	case "quit":
		m.doorBoth(waitlist.Quit, who)
	case "admit":
		m.doorBoth(waitlist.Admit, who)
	case "turn":
		m.doorBoth(waitlist.Turn, who)
	case "release":
		if m.held[who] > m.now {
			m.doorBoth(waitlist.Release, who)
		}
	case "close":
		m.doorBoth(waitlist.Change, "")
	case "forget":
		m.forget()
	}
	if n := len(m.inside()); m.cap >= 0 && n > m.cap {
		t.Fatalf("%d people with a cap of %d", n, m.cap)
	}
}

// forget empties the store; the media node writes its roster again before anybody is let in.
func (m *lineModel) forget() {
	m.must(m.raw.FlushAll(m.t.Context()).Err())
	m.held, m.line, m.chosen, m.last, m.turned = map[string]time.Duration{}, nil, 0, map[string]time.Duration{}, map[string]time.Duration{}
	m.known, m.from, m.closed = false, 0, false
	m.show(m.peers)
}

func TestWaitingModel(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		r := newWaitingRig(t, server)
		rapid.Check(t, func(rt *rapid.T) {
			rig := r
			rig.t = tripped{t, rt}
			m := &lineModel{
				waitingRig: rig, cap: rapid.IntRange(0, 3).Draw(rt, "cap"), peers: map[string]string{}, at: map[string]int{}, ticket: map[string]int64{},
				rank: map[string]int64{},
			}
			m.forget()
			for range rapid.IntRange(1, 40).Draw(rt, "steps") {
				m.step(rt)
			}
		})
	})
}
