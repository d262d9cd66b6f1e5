package standby

import (
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/transport"
)

const (
	// keptAfter is how long the connections of a node are kept once its stream has ended: until its death is proven and its
	// rooms have moved.
	keptAfter = time.Minute
	// mostHeld bounds what this node stands by for.
	mostHeld = 20_000
	// mostClaimed is how many of the connections that went on here are remembered, so that an owner that wakes hours later is told, and not asked
	// to go on. The fence of its rooms stops the owners of older ones.
	mostClaimed = 100_000
)

// Holding is a connection of another node that this node can go on with.
type Holding struct {
	// Connection has keys. Numbers are those that were true At.
	Connection *control.StandbyConnection
	Numbers    *control.StandbyNumbers
	At         time.Time
	// Boot and Control are the owner's.
	Boot, Control string
	Held          *transport.Held

	// gone is closed when the owner's stream has ended.
	gone <-chan struct{}
	// ready says that the client follows the owner's nominations.
	ready bool
}

// Gone reports whether the owner's stream has ended.
func (h *Holding) Gone() bool {
	select {
	case <-h.gone:
		return true
	default:
		return false
	}
}

type place struct{ room, peer string }

type name struct {
	boot string
	id   uint64
}

// Table is what this node stands by for. It is safe for concurrent use.
type Table struct {
	transport *transport.Transport
	log       *slog.Logger

	mu      sync.Mutex // guards the fields below
	held    map[name]*Holding
	byPlace map[place]name
	// claimed are those that went on here; order has the oldest first.
	claimed map[name]bool
	order   []name
}

// NewTable returns an empty one.
func NewTable(t *transport.Transport, log *slog.Logger) *Table {
	return &Table{transport: t, log: log, held: map[name]*Holding{}, byPlace: map[place]name{}, claimed: map[name]bool{}}
}

// Serve takes the reports of one owner until its stream ends.
func (t *Table) Serve(stream control.Standby_HoldServer) error {
	gone := make(chan struct{})
	var mine []name
	defer func() {
		close(gone)
		time.AfterFunc(keptAfter, func() { t.forget(mine, gone) })
	}()
	for {
		report, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		receipt, added := t.take(report, gone, time.Now())
		mine = append(mine, added...)
		if err := stream.Send(receipt); err != nil {
			return err
		}
	}
}

// take takes one report of a stream that ends when gone is closed. It returns the names of the new connections.
func (t *Table) take(report *control.StandbyReport, gone <-chan struct{}, now time.Time) (*control.StandbyReceipt, []name) {
	t.mu.Lock()
	defer t.mu.Unlock()
	receipt := &control.StandbyReceipt{Seq: report.GetSeq()}
	var added []name
	for _, c := range report.GetConnections() {
		n := name{report.GetBoot(), c.GetId()}
		switch {
		case t.claimed[n]:
			receipt.Taken = append(receipt.Taken, c.GetId())
			continue
		case !t.hold(n, c, report, gone, now):
			t.drop(n)
			receipt.Refused = append(receipt.Refused, c.GetId())
			continue
		}
		added = append(added, n)
		receipt.Ready = t.ready(receipt.GetReady(), n)
	}
	for _, numbers := range report.GetNumbers() {
		n := name{report.GetBoot(), numbers.GetId()}
		switch h := t.held[n]; {
		case t.claimed[n]:
			receipt.Taken = append(receipt.Taken, numbers.GetId())
		case h == nil:
			receipt.Refused = append(receipt.Refused, numbers.GetId())
		default:
			h.Numbers, h.At = numbers, now
			receipt.Ready = t.ready(receipt.GetReady(), n)
		}
	}
	for _, id := range report.GetEnded() {
		t.drop(name{report.GetBoot(), id})
	}
	return receipt, added
}

// ready adds the id of a connection that Claim would give away. It needs mu.
func (t *Table) ready(ids []uint64, n name) []uint64 {
	if h := t.held[n]; len(h.Connection.GetKeys()) > 0 && h.Numbers != nil && h.Held.Seen() {
		return append(ids, n.id)
	}
	return ids
}

// hold needs mu.
func (t *Table) hold(n name, c *control.StandbyConnection, report *control.StandbyReport, gone <-chan struct{}, now time.Time) bool {
	if c.GetUfrag() == "" || c.GetPassword() == "" || c.GetRoom() == "" || c.GetPeer() == "" {
		return false
	}
	if len(c.GetKeys()) > 0 {
		if _, err := transport.ParseKeys(c.GetKeys()); err != nil || c.GetNumbers() == nil {
			return false
		}
	}
	h := t.held[n]
	if h == nil || h.Connection.GetUfrag() != c.GetUfrag() {
		if h == nil && len(t.held) >= mostHeld {
			return false
		}
		t.drop(n)
		held, ok := t.transport.Hold(
			transport.Credentials{Ufrag: c.GetUfrag(), Password: c.GetPassword()}, transport.Credentials{Ufrag: c.GetClientUfrag(), Password: c.GetClientPassword()})
		if !ok {
			return false
		}
		h = &Holding{Held: held}
	}
	at := place{c.GetRoom(), c.GetPeer()}
	if old, ok := t.byPlace[at]; ok && old != n {
		// A newer connection of the same client.
		t.drop(old)
	}
	h.Connection, h.Boot, h.Control, h.gone = c, report.GetBoot(), report.GetControl(), gone
	if c.GetNumbers() != nil {
		h.Numbers, h.At = c.GetNumbers(), now
	}
	if c.GetReversed() && !h.ready {
		h.ready = true
		t.log.Debug("stands by for a client", "room", c.GetRoom(), "peer", c.GetPeer(), "owner", report.GetControl())
	}
	if client, err := netip.ParseAddrPort(c.GetClient()); err == nil {
		h.Held.Find(client, c.GetPriority())
	}
	h.Held.Answer(c.GetReversed())
	t.held[n], t.byPlace[at] = h, n
	return true
}

// drop needs mu.
func (t *Table) drop(n name) {
	h := t.held[n]
	if h == nil {
		return
	}
	h.Held.Release()
	t.remove(n, h)
}

// remove needs mu.
func (t *Table) remove(n name, h *Holding) {
	delete(t.held, n)
	if at := (place{h.Connection.GetRoom(), h.Connection.GetPeer()}); t.byPlace[at] == n {
		delete(t.byPlace, at)
	}
}

func (t *Table) forget(names []name, gone <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range names {
		// The owner may have come back with another stream.
		if h := t.held[n]; h != nil && h.gone == gone {
			t.drop(n)
		}
	}
}

// Claim gives the connection of a client away, if its client can be ordered here. From then on this node acknowledges
// nothing more of it, so that the owner cannot use the numbers that follow. A connection that cannot go on is dropped.
func (t *Table) Claim(room, peer string) *Holding {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, ok := t.byPlace[place{room, peer}]
	if !ok {
		return nil
	}
	h := t.held[n]
	if len(h.Connection.GetKeys()) == 0 || h.Numbers == nil || !h.Held.Seen() {
		t.drop(n)
		return nil
	}
	t.claim(n, h)
	return h
}

// claim needs mu.
func (t *Table) claim(n name, h *Holding) {
	t.remove(n, h)
	t.claimed[n], t.order = true, append(t.order, n)
	if len(t.order) > mostClaimed {
		delete(t.claimed, t.order[0])
		t.order = t.order[1:]
	}
}

// Len returns how many connections this node stands by for.
func (t *Table) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.held)
}
