package traces

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	// More deaths at one time are not traced here.
	maxDeaths = 64
	// What one signaling node tells of a death. The rest is counted in the attributes of its failover span.
	maxRooms    = 128
	maxClients  = 512
	maxEvidence = 8
	// A client may need several attempts of four seconds, so the failover is over when nothing came for this long.
	quietAfter = 15 * time.Second
)

// deaths are the deaths whose failover is under way. A death has one root span, "node died", which only one signaling
// node sends. Below it each signaling node has a span "failover", and below that the evidence, the rooms and the
// clients.
type deaths struct {
	mu     sync.Mutex
	byBoot map[pin.BootID]*death // guarded by mu
}

type death struct {
	mu sync.Mutex
	// The fields below are guarded by mu. root is zero, unless this process sends it.
	root, span Span
	last       time.Time
	rooms      map[ring.RoomID]Span
	// The counts also have what was not traced.
	evidence, roomCount, clientCount, back int
	worstGap                               time.Duration
}

// death returns the failover of a boot, and begins it if since is not zero. It returns nil if there is none.
func (t *Tracer) death(node ring.NodeID, boot pin.BootID, since time.Time) *death {
	t.deaths.mu.Lock()
	defer t.deaths.mu.Unlock()
	d := t.deaths.byBoot[boot]
	if d != nil || since.IsZero() || len(t.deaths.byBoot) >= maxDeaths {
		return d
	}
	if t.deaths.byBoot == nil {
		t.deaths.byBoot = map[pin.BootID]*death{}
	}
	under := trace.ContextWithRemoteSpanContext(context.Background(), deathIDs(node, boot).context())
	_, span := t.tracer.Start(under, "failover", trace.WithTimestamp(since))
	d = &death{span: Span{t, span}, last: time.Now(), rooms: map[ring.RoomID]Span{}}
	d.span.Set("node", string(node)).Set("boot", string(boot))
	t.deaths.byBoot[boot] = d
	return d
}

// Evidence tells of what made this process declare a media node dead: kind is "proof" or "silence". The failover
// begins with it, at the time since.
func (t *Tracer) Evidence(node ring.NodeID, boot pin.BootID, kind, what string, since time.Time) {
	if t == nil {
		return
	}
	d := t.death(node, boot, since)
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.evidence++; d.evidence > maxEvidence {
		return
	}
	d.last = time.Now()
	d.span.Since("evidence", since).Set("kind", kind).Set("evidence", what).End(nil)
}

// Died tells that the cluster takes a media node for dead. first says that this process sends the root of the trace:
// exactly one signaling node should.
func (t *Tracer) Died(node ring.NodeID, boot pin.BootID, why string, first bool) {
	if t == nil {
		return
	}
	d := t.death(node, boot, time.Now())
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = time.Now()
	d.span.Event("node down")
	d.span.Set("why", why)
	if first && d.root.span == nil {
		began := d.last
		if span, ok := d.span.span.(interface{ StartTime() time.Time }); ok {
			began = span.StartTime()
		}
		wanted := context.WithValue(context.Background(), wantedKey{}, deathIDs(node, boot))
		_, root := t.tracer.Start(wanted, "node died", trace.WithNewRoot(), trace.WithTimestamp(began))
		d.root = Span{t, root}
		d.root.Set("node", string(node)).Set("boot", string(boot)).Set("why", why)
	}
}

// Rehoming begins the span of a room that moves off a dead boot. It is zero for a death that is not known, and beyond
// 128 rooms.
func (t *Tracer) Rehoming(room ring.RoomID, from pin.BootID) Span {
	if t == nil {
		return Span{}
	}
	d := t.death("", from, time.Time{})
	if d == nil {
		return Span{}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = time.Now()
	if d.roomCount++; d.roomCount > maxRooms {
		return Span{}
	}
	span := d.span.Since("re-home room", d.last).Set("room", string(room))
	d.rooms[room] = span
	return span
}

// Client is a client's way back after the death of its room's node. The zero Client records nothing.
type Client struct {
	Span

	death *death
}

// Client begins the span of a client whose room has moved off a dead boot, when the client's signaling node follows the
// room. It is zero for a death that is not known, for a room that is not traced, and beyond 512 clients.
func (t *Tracer) Client(room ring.RoomID, from pin.BootID) Client {
	if t == nil {
		return Client{}
	}
	d := t.death("", from, time.Time{})
	if d == nil {
		return Client{}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = time.Now()
	under, traced := d.rooms[room]
	if !traced && d.roomCount <= maxRooms {
		// Another signaling node moved the room before this one began to.
		under, traced = d.span, true
	}
	if d.clientCount++; !traced || d.clientCount > maxClients {
		return Client{death: d}
	}
	return Client{under.Since("client", d.last).Set("room", string(room)), d}
}

// Back ends the span of a client that has media again: how it came back, at which attempt, and how long it had none.
func (c Client) Back(how string, attempt int, gap time.Duration) {
	if c.death == nil {
		return
	}
	c.death.mu.Lock()
	c.death.back++
	c.death.worstGap = max(c.death.worstGap, gap)
	c.death.last = time.Now()
	c.death.mu.Unlock()
	c.Set("how", how).Count("attempt", attempt).Count("gap_ms", int(gap.Milliseconds())).End(nil)
}

// end ends the failovers in which nothing happened for a while, or all if this is the last call.
func (ds *deaths) end(now time.Time, last bool) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	for boot, d := range ds.byBoot {
		if d.finish(now, last) {
			delete(ds.byBoot, boot)
		}
	}
}

func (d *death) finish(now time.Time, last bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !last && now.Sub(d.last) < quietAfter {
		return false
	}
	d.span.Count("rooms", d.roomCount).Count("rooms_untraced", max(d.roomCount-maxRooms, 0))
	d.span.Count("clients", d.clientCount).Count("clients_untraced", max(d.clientCount-maxClients, 0))
	d.span.Count("clients_back", d.back).Count("worst_gap_ms", int(d.worstGap.Milliseconds()))
	d.span.EndAt(d.last)
	d.root.EndAt(d.last)
	return true
}
