package redisstore

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-rtc/holdfast/people/presence"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
)

// presenceModel is a cluster of three signaling nodes with a few users. Nodes, sweepers and a reader of the log die and are
// late at random, calls are repeated, and the store forgets.
type presenceModel struct {
	presenceRig

	now        time.Duration
	conns      map[presence.Lease]int           // to the node that has the socket
	stale      map[presence.Lease]int           // to one that has not heard of the resume elsewhere, nor of the leave there
	ended      map[presence.Lease]bool          // by a leave
	tabs       map[string]int                   // how often each has left: the next connection has another name
	heartbeats map[presence.Lease]time.Duration // the last one
	online     map[string]bool                  // by the log
	view       map[string]bool                  // of the reader, by what it was told
	cursor     [presence.Shards]presence.Cursor
}

const modelNodes = 3

var modelUsers = []string{"ann", "bob", "cy"}

func (m *presenceModel) on(node int) (leases []presence.Lease) {
	for _, sockets := range []map[presence.Lease]int{m.conns, m.stale} {
		for l, at := range sockets {
			if at == node {
				leases = append(leases, l)
			}
		}
	}
	return leases
}

func (m *presenceModel) add(t *rapid.T, leases ...presence.Lease) {
	for range rapid.IntRange(1, 2).Draw(t, "calls") {
		m.must(m.Add(m.t.Context(), leases))
	}
	for _, l := range leases {
		m.beatAt(l)
	}
}

// connect is a join, or a resume of which the old node hears or not.
func (m *presenceModel) connect(t *rapid.T, l presence.Lease, node int) {
	if at, resumes := m.conns[l]; resumes && rapid.Bool().Draw(t, "unheard") {
		m.stale[l] = at
	}
	if m.conns[l] = node; m.stale[l] == node {
		delete(m.stale, l)
	}
	m.add(t, l)
}

// anybody has a socket, if somebody has.
func (m *presenceModel) anybody(t *rapid.T, otherwise presence.Lease) presence.Lease {
	all := slices.SortedFunc(maps.Keys(m.conns), func(a, b presence.Lease) int { return strings.Compare(a.Conn, b.Conn) })
	if len(all) == 0 {
		return otherwise
	}
	return rapid.SampledFrom(all).Draw(t, "who")
}

func (m *presenceModel) beatAt(l presence.Lease) {
	if !m.ended[l] {
		m.heartbeats[l] = m.now
	}
}

func (m *presenceModel) heartbeat(t *rapid.T, node int) {
	leases := m.on(node)
	missing, err := m.Renew(m.t.Context(), leases)
	m.must(err)
	for _, l := range leases {
		m.beatAt(l)
	}
	m.add(t, missing...)
}

// sweep is of some shards: the sweeper is killed after them.
func (m *presenceModel) sweepPart(t *rapid.T) {
	var parts []*part[struct{}]
	for _, user := range modelUsers {
		if rapid.Bool().Draw(t, "reached") {
			parts = append(parts, &part[struct{}]{keys: m.keys[presence.ShardOf(user)]})
		}
	}
	m.must(m.sweep(m.t.Context(), parts))
}

// judge reads what was logged: joins and leaves of a user take turns, and nobody leaves who has a lease.
func (m *presenceModel) judge() {
	m.t.Helper()
	for _, user := range modelUsers {
		signs := m.said(user)
		if strings.Contains(signs, "++") || strings.Contains(signs, "--") || strings.HasPrefix(signs, "-") {
			m.t.Fatalf("the log of %s is %s", user, signs)
		}
		leaves := m.online[user] && (signs == "" || strings.HasSuffix(signs, "-"))
		m.online[user] = strings.HasSuffix(signs, "+")
		for l, at := range m.heartbeats {
			if leaves && l.User == user && m.now-at < slowly().TTL {
				m.t.Fatalf("%s left %v after a heartbeat of %v", user, m.now-at, l)
			}
		}
		if online := m.ask(user).State == presence.Online; online != m.online[user] {
			m.t.Fatalf("%s is online: %v, and by the log %v", user, online, m.online[user])
		}
	}
}

// follow is the reader's turn.
func (m *presenceModel) follow() {
	diffs, err := m.Follow(m.t.Context(), m.cursor)
	m.must(err)
	for shard, diff := range diffs {
		m.cursor[shard] = diff.Next
		for _, change := range diff.Changes {
			if m.view[change.User] == change.Online {
				m.t.Fatalf("the reader is told twice that %s is online: %v", change.User, change.Online)
			}
			m.view[change.User] = change.Online
		}
		for _, user := range modelUsers {
			if diff.Gap && presence.ShardOf(user) == shard {
				m.view[user] = m.ask(user).State == presence.Online
			}
		}
	}
}

// forget empties the store.
func (m *presenceModel) forget() {
	m.must(m.raw.FlushAll(m.t.Context()).Err())
	m.online, m.heartbeats = map[string]bool{}, map[presence.Lease]time.Duration{}
	clear(m.stale) // It has forgotten who left, too.
}

func (m *presenceModel) step(t *rapid.T) {
	user, node := rapid.SampledFrom(modelUsers).Draw(t, "user"), rapid.IntRange(1, modelNodes).Draw(t, "node")
	tab := fmt.Sprint(user, rapid.IntRange(1, 3).Draw(t, "tab"))
	l := lease(user, fmt.Sprint(tab, "-", m.tabs[tab]), "r")
	switch rapid.SampledFrom([]string{
		"connect", "connect", "connect", "resume", "resume", "leave", "leave", "lose", "kill", "heartbeat", "heartbeat", "pass", "pass", "sweep", "sweep", "follow", "forget",
	}).Draw(t, "step") {
	case "connect":
		m.connect(t, l, node)
	case "resume":
		m.connect(t, m.anybody(t, l), node)
	case "leave":
		l = m.anybody(t, l)
		tab, _, _ = strings.Cut(l.Conn, "-")
		delete(m.conns, l)
		delete(m.heartbeats, l)
		m.ended[l] = true
		m.tabs[tab]++
		for range rapid.IntRange(1, 2).Draw(t, "calls") {
			m.must(m.Remove(m.t.Context(), []presence.Lease{l}))
		}
	case "lose":
		delete(m.conns, l)
	case "kill":
		for _, sockets := range []map[presence.Lease]int{m.conns, m.stale} {
			maps.DeleteFunc(sockets, func(_ presence.Lease, at int) bool { return at == node })
		}
	case "heartbeat":
		m.heartbeat(t, node)
	case "pass":
		d := rapid.SampledFrom([]time.Duration{15, 25, 45, 65}).Draw(t, "minutes") * time.Minute
		m.pass(d)
		m.now += d
	case "sweep":
		m.sweepPart(t)
	case "follow":
		m.follow()
	case "forget":
		if rapid.IntRange(1, 4).Draw(t, "really") == 1 {
			m.forget()
		}
	}
	m.judge()
}

// settle has the living nodes send heartbeats and sweep for two TTLs. Then exactly those with sockets are online, or whose old
// socket still stands and who did not leave.
func (m *presenceModel) settle(t *rapid.T) {
	for range 8 {
		for node := range modelNodes {
			m.heartbeat(t, node+1)
		}
		m.pass(15 * time.Minute)
		m.now += 15 * time.Minute
		m.must(m.Sweep(m.t.Context()))
		m.judge()
	}
	m.follow()
	for _, user := range modelUsers {
		here := false
		for _, node := range []int{1, 2, 3} {
			here = here || slices.ContainsFunc(m.on(node), func(l presence.Lease) bool { return l.User == user && !m.ended[l] })
		}
		if m.online[user] != here || m.view[user] != here || (m.ask(user).State == presence.Online) != here {
			t.Fatalf("%s has a socket: %v, is online by the log: %v, by the reader: %v", user, here, m.online[user], m.view[user])
		}
	}
}

func TestPresenceModel(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		r := newPresenceRig(t, server)
		rapid.Check(t, func(rt *rapid.T) {
			r.must(r.raw.FlushAll(t.Context()).Err())
			m := &presenceModel{
				presenceRig: presenceRig{tripped{t, rt}, r.raw, r.Presence}, conns: map[presence.Lease]int{}, view: map[string]bool{},
				stale: map[presence.Lease]int{}, ended: map[presence.Lease]bool{}, tabs: map[string]int{},
				online: map[string]bool{}, heartbeats: map[presence.Lease]time.Duration{},
			}
			for range rapid.IntRange(1, 20).Draw(rt, "steps") {
				m.step(rt)
			}
			m.settle(rt)
		})
	})
}

// tripped has rapid shrink what fails.
type tripped struct {
	testing.TB

	to *rapid.T
}

func (t tripped) Fatal(args ...any) { t.to.Fatal(args...) }

func (t tripped) Fatalf(format string, args ...any) { t.to.Fatalf(format, args...) }
