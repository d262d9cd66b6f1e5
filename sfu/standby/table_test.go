package standby

import (
	"log/slog"
	"net"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/sfu/egress"
	"github.com/holdfast-rtc/holdfast/sfu/transport"
)

// silent is a socket on which nothing comes.
type silent struct{}

func (silent) Readers() int { return 1 }
func (silent) Receive(int, func([]byte, egress.Address), func(egress.Address)) error {
	return net.ErrClosed
}
func (silent) Write(b []byte, _ egress.Address) (int, error) { return len(b), nil }
func (silent) Close() error                                  { return nil }

func newTable() *Table {
	log := slog.New(slog.DiscardHandler)
	return NewTable(transport.New(silent{}, panics.New(), log), log)
}

// counted is a connection with one stream, whose bound is kept as transport.Conn keeps it.
type counted struct {
	keys     []byte
	sent     uint64
	limit    uint64
	alive    bool
	stopped  bool
	unbound  int
	reversed bool
	prepared bool
	// unreached counts the calls of Unreached.
	unreached int
	// appointed counts the nodes after the first.
	appointed int
}

const jump = 100

func newCounted() *counted {
	keys, _ := transport.NewKeys()
	return &counted{keys: keys.Bytes(), alive: true}
}

func (c *counted) Standby() *control.StandbyConnection {
	return &control.StandbyConnection{Ufrag: "ufrag", Password: "password", ClientUfrag: "theirs", ClientPassword: "theirs", Keys: c.keys, Reversed: c.reversed}
}

func (c *counted) Numbers() *control.StandbyNumbers {
	return &control.StandbyNumbers{Sealed: map[uint32]uint64{1: c.sent}}
}
func (c *counted) Alive() bool { return c.alive && !c.stopped }
func (c *counted) Bound(n *control.StandbyNumbers, acknowledged bool) {
	if acknowledged || c.limit == 0 {
		c.limit = max(c.limit, n.GetSealed()[1]+jump)
	}
}
func (c *counted) Unbound() { c.limit = 0; c.unbound++ }
func (c *counted) Reverse() { c.reversed = true }

func (c *counted) Another() { c.appointed++ }

func (c *counted) Unreached() { c.unreached++ }

func (c *counted) Prepared(can bool) { c.prepared = can }
func (c *counted) HandOver() *control.StandbyNumbers {
	c.stopped = true
	return c.Numbers()
}

func newLink(c Connection) *link {
	o := NewOwner(OwnerConfig{Boot: "boot", Control: "owner:1", Log: slog.New(slog.DiscardHandler)})
	o.Add("standby:1", "room", "peer", c)
	return o.links["standby:1"]
}

// TestAConnectionIsTold: with its keys at once, its numbers after a while; it is bound before and after the acknowledgement,
// and reversed once somebody stands by.
func TestAConnectionIsTold(t *testing.T) {
	c, table, now := newCounted(), newTable(), time.Now()
	l := newLink(c)
	first := l.report(now)
	if len(first.GetConnections()) != 1 || c.limit != jump {
		t.Fatalf("%d connections are told with limit %d, want 1 with %d", len(first.GetConnections()), c.limit, jump)
	}
	if again := l.report(now); again != nil {
		t.Errorf("nothing has changed, and %v is told", again.GetSeq())
	}
	receipt, added := table.take(first, nil, now)
	l.acknowledged(receipt)
	if len(added) != 1 || table.Len() != 1 || !c.reversed {
		t.Fatalf("%d added, %d held, reversed: %v", len(added), table.Len(), c.reversed)
	}
	c.sent = 50
	second := l.report(now.Add(2 * numbersEvery)) // the role has changed, too
	if c.limit != jump {
		t.Errorf("the limit is %d before the acknowledgement, want %d", c.limit, jump)
	}
	receipt, _ = table.take(second, nil, now)
	l.acknowledged(receipt)
	if c.limit != jump+50 {
		t.Errorf("the limit is %d after the acknowledgement, want %d", c.limit, jump+50)
	}
	c.alive = false
	table.take(l.report(now), nil, now)
	if table.Len() != 0 || len(l.list()) != 0 {
		t.Error("a connection that has ended is held")
	}
}

// TestAnUnreachedStandbyIsNamedAnew: the owner asks a client for an offer that does not reach its standby, once a minute.
func TestAnUnreachedStandbyIsNamedAnew(t *testing.T) {
	c, table, now := newCounted(), newTable(), time.Now()
	l := newLink(c)
	for _, step := range []struct {
		after time.Duration
		asked int
	}{{0, 0}, {unreachedAfter - time.Second, 0}, {unreachedAfter + time.Second, 1}, {unreachedEvery, 1}, {unreachedEvery + unreachedAfter + 2*time.Second, 2}} {
		receipt, _ := table.take(l.report(now.Add(step.after)), nil, now)
		l.acknowledged(receipt)
		if c.unreached != step.asked {
			t.Errorf("after %s it was asked %d times, want %d", step.after, c.unreached, step.asked)
		}
	}
}

// TestAClaimedConnectionStops: nothing of it is acknowledged any more, and its owner is told.
func TestAClaimedConnectionStops(t *testing.T) {
	c, table, now := newCounted(), newTable(), time.Now()
	l := newLink(c)
	receipt, _ := table.take(l.report(now), nil, now)
	l.acknowledged(receipt)
	if h := table.Claim("room", "peer"); h != nil {
		t.Fatal("a client that has not checked this node is claimed")
	}
	// It was dropped instead, and the owner may go on without a bound.
	c.sent = 10
	receipt, _ = table.take(l.report(now.Add(2*numbersEvery)), nil, now)
	l.acknowledged(receipt)
	if table.Len() != 1 {
		t.Fatal("the owner tells of a change, so the connection is held again")
	}
	n := name{"boot", 1}
	table.drop(n)
	table.claimed[n] = true
	receipt, _ = table.take(l.report(now.Add(4*numbersEvery)), nil, now)
	if l.acknowledged(receipt); !c.stopped || len(l.list()) != 0 {
		t.Error("the owner of a claimed connection goes on")
	}
}

// TestARefusedConnectionIsUnbound, but not before the refusal of all that was told of it.
func TestARefusedConnectionIsUnbound(t *testing.T) {
	c, now := newCounted(), time.Now()
	l := newLink(c)
	first := l.report(now)
	c.reversed = true
	l.report(now)
	l.acknowledged(&control.StandbyReceipt{Seq: first.GetSeq(), Refused: []uint64{1}})
	if c.unbound != 0 {
		t.Error("the second report may still arrive, and the connection is unbound")
	}
	l.acknowledged(&control.StandbyReceipt{Seq: first.GetSeq() + 1, Refused: []uint64{1}})
	if c.unbound != 1 || c.limit != 0 {
		t.Error("a refused connection is still bound")
	}
	// The other node may still have the connection from before, so it is asked again, under a bound, but not for ever.
	if again := l.report(now); again != nil {
		t.Errorf("it is told again at once: %d", again.GetSeq())
	}
	for range mostRefusals {
		now = now.Add(2 * refusedFor)
		again := l.report(now)
		if len(again.GetConnections()) != 1 || c.limit != jump {
			t.Fatalf("later %d connections are told, with limit %d", len(again.GetConnections()), c.limit)
		}
		l.entry(1).again = time.Time{}
		l.acknowledged(&control.StandbyReceipt{Seq: again.GetSeq(), Refused: []uint64{1}})
	}
	if len(l.list()) != 0 || c.limit != 0 {
		t.Error("a connection that is always refused is kept")
	}
}

// FuzzReport: no report breaks the table, and what it holds can be found and dropped again.
// TestAnotherNodeIsAppointed once the process of the last one has ended, if there is another one.
func TestAnotherNodeIsAppointed(t *testing.T) {
	c, now := newCounted(), time.Now()
	l, choice := newLink(c), ""
	o := l.owner
	o.cfg.Choose = func(string) string { return choice }
	for _, choice = range []string{"", "standby:1"} {
		if o.reappoint(l); o.retire(l) || len(l.list()) != 1 || c.appointed != 0 {
			t.Fatalf("%q is appointed in place of standby:1", choice)
		}
	}
	choice = "standby:2"
	o.reappoint(l)
	next := o.links[choice]
	if next == nil || len(next.list()) != 1 || c.appointed != 1 || !o.retire(l) || o.links["standby:1"] != nil {
		t.Fatalf("the links are %v, and the connection was appointed %d times", o.links, c.appointed)
	}
	if told := next.report(now); len(told.GetConnections()) != 1 || c.limit != jump {
		t.Errorf("%d connections are told to the next node, with limit %d", len(told.GetConnections()), c.limit)
	}
}

func FuzzReport(f *testing.F) {
	c := newCounted()
	l := newLink(c)
	for _, report := range []*control.StandbyReport{l.report(time.Now()), {Numbers: []*control.StandbyNumbers{{Id: 1}}, Ended: []uint64{1}}} {
		b, err := proto.Marshal(report)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var report control.StandbyReport
		if proto.Unmarshal(b, &report) != nil {
			t.Skip()
		}
		table, gone := newTable(), make(chan struct{})
		_, added := table.take(&report, gone, time.Now())
		table.take(&report, gone, time.Now())
		for _, c := range report.GetConnections() {
			table.Claim(c.GetRoom(), c.GetPeer())
		}
		table.forget(added, gone)
		if table.Len() > 0 || len(table.byPlace) > 0 {
			t.Errorf("%d connections are held without an owner", table.Len())
		}
	})
}
