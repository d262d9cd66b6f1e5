package standby

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/backoff"
)

const (
	// lookEvery is how soon a change of a connection is told at the latest.
	lookEvery = 200 * time.Millisecond
	// numbersEvery is how often numbers are told: a thousandth of the time in which a stream uses up its bound, or less.
	numbersEvery = time.Second
	dialTimeout  = time.Second
	// appointEvery is how often a node is looked for where none can stand by.
	appointEvery = 5 * time.Second
	// A connection that was refused mostRefusals times, so long apart, has no standby. A former owner keeps its part of a room for 15 s.
	refusedFor   = 5 * time.Second
	mostRefusals = 6
	// A client that has not reached a standby for so long needs another answer, for which it is asked that often: the answer names the standby, which
	// browsers then check themselves, on new ports and also at an address that they have given up.
	unreachedAfter = 8 * time.Second
	unreachedEvery = time.Minute
)

var errNobody = errors.New("no node can stand by")

// Connection is one that another node stands by for. Its methods may be called at any time, and wait for nothing but the
// room's media.
type Connection interface {
	// Standby returns all but the numbers. It is nil for a connection that is not to be told, for good if Alive is false.
	Standby() *control.StandbyConnection
	Numbers() *control.StandbyNumbers
	Alive() bool
	// Bound is called with numbers before they are told, and again when they are acknowledged.
	Bound(numbers *control.StandbyNumbers, acknowledged bool)
	Unbound()
	// Reverse is called once the other node stands by.
	Reverse()
	// Prepared says whether the other node can go on with the connection by now.
	Prepared(can bool)
	// Unreached is called when the client has not reached the other node for a while.
	Unreached()
	// Another is called before another node than the last one is told of the connection. No node has its keys then.
	Another()
	HandOver() *control.StandbyNumbers
}

// OwnerConfig is for one media node.
type OwnerConfig struct {
	Boot string
	// Control is where other media nodes reach this one.
	Control string
	// Client returns the service at a control address.
	Client func(control string) (control.StandbyClient, error)
	// Choose returns the control address of the node that is to stand by for a room now, and nothing if there is none.
	Choose func(room string) string
	Log    *slog.Logger
}

// Owner tells other nodes of this node's connections. It is safe for concurrent use.
type Owner struct {
	cfg OwnerConfig
	// wake holds one signal at most: there are links to start.
	wake chan struct{}

	mu       sync.Mutex // guards the fields below
	last     uint64
	entries  map[uint64]*entry
	links    map[string]*link
	starting []*link
}

// entry is one connection. Its link owns what is not constant.
type entry struct {
	id         uint64
	room, peer string
	connection Connection

	// told is what was last told, nil before. keyed says that the keys were told.
	told  *control.StandbyConnection
	keyed bool
	// pending are the numbers that are told and not yet acknowledged, of the report pendingSeq.
	pending    *control.StandbyNumbers
	pendingSeq uint64
	// toldSeq is the last report about the connection.
	toldSeq   uint64
	reversing bool
	// reached is when the other node last said that the client reaches it, or began to stand by. asked is when the client was last asked for an offer.
	reached, asked time.Time
	// refusals were answered so far. Nothing is told before the time again.
	refusals int
	again    time.Time
}

// NewOwner needs Run.
func NewOwner(cfg OwnerConfig) *Owner {
	return &Owner{cfg: cfg, wake: make(chan struct{}, 1), entries: map[uint64]*entry{}, links: map[string]*link{}}
}

// Run returns nil when ctx has ended.
func (o *Owner) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	for {
		select {
		case <-o.wake:
			o.mu.Lock()
			starting := o.starting
			o.starting = nil
			o.mu.Unlock()
			for _, l := range starting {
				running.Go(func() { l.run(ctx) })
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// Add has the node at a control address stand by for a connection, or without an address the next one that can. It does not wait, so the client's first checks may come
// before the other node has been told: clients repeat them.
func (o *Owner) Add(at, room, peer string, c Connection) {
	o.mu.Lock()
	o.last++
	e := &entry{id: o.last, room: room, peer: peer, connection: c}
	o.entries[e.id] = e
	l := o.put(at, e)
	o.mu.Unlock()
	ring(o.wake)
	ring(l.wake)
}

// put has a link tell of a connection. It needs mu.
func (o *Owner) put(at string, e *entry) *link {
	l, runs := o.links[at]
	if !runs {
		l = &link{owner: o, at: at, wake: make(chan struct{}, 1), entries: map[uint64]*entry{}}
		o.links[at], o.starting = l, append(o.starting, l)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries[e.id] = e
	return l
}

// reappoint has other nodes stand by for the connections of a link whose other process has ended, as far as there are others.
func (o *Owner) reappoint(l *link) {
	chosen := map[string]string{}
	for _, e := range l.list() {
		at, asked := chosen[e.room]
		if !asked {
			at = o.cfg.Choose(e.room)
			chosen[e.room] = at
		}
		if at == "" || at == l.at || !e.connection.Alive() {
			continue
		}
		e.refusals, e.again, e.reversing = 0, time.Time{}, false
		e.connection.Another()
		o.mu.Lock()
		l.mu.Lock()
		delete(l.entries, e.id)
		l.mu.Unlock()
		next := o.put(at, e)
		o.mu.Unlock()
		ring(o.wake)
		ring(next.wake)
	}
}

// retire ends a link that has no connections.
func (o *Owner) retire(l *link) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.entries) > 0 {
		return false
	}
	delete(o.links, l.at)
	return true
}

// HandOver stops a connection of a room and returns its final numbers; nil if the connection is not here any more.
func (o *Owner) HandOver(id uint64, room string) *control.StandbyNumbers {
	o.mu.Lock()
	e := o.entries[id]
	o.mu.Unlock()
	if e == nil || e.room != room {
		return nil
	}
	return e.connection.HandOver()
}

func (o *Owner) drop(l *link, id uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.entries, id)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.entries, id)
}

// link tells one other node of the connections for which it stands by. Without an address it has those for which no node does.
type link struct {
	owner *Owner
	at    string
	wake  chan struct{}

	mu      sync.Mutex // guards entries
	entries map[uint64]*entry

	// run owns the fields below.
	seq     uint64
	numbers time.Time
}

func ring(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
		// The loop has been woken already.
	}
}

func (l *link) entry(id uint64) *entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries[id]
}

func (l *link) list() []*entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]*entry, 0, len(l.entries))
	for _, e := range l.entries {
		list = append(list, e)
	}
	return list
}

func (l *link) run(ctx context.Context) {
	log := l.owner.cfg.Log.With("standby", l.at)
	pause := backoff.Backoff{First: lookEvery, Most: 2 * time.Second}
	if l.at == "" {
		pause.Most = appointEvery
	}
	for ctx.Err() == nil {
		err := l.serve(ctx, pause.Reset)
		if ctx.Err() != nil {
			return
		}
		log.Debug("standby lost", "error", err)
		ended := l.processEnded(ctx)
		for _, e := range l.list() {
			// Another process, or the same one after a pause, needs all.
			e.told, e.pending = nil, nil
			e.connection.Prepared(false)
			if ended {
				e.keyed = false
				e.connection.Unbound()
			}
			if !e.connection.Alive() {
				l.owner.drop(l, e.id)
			}
		}
		if ended {
			l.owner.reappoint(l)
		}
		if l.owner.retire(l) {
			return
		}
		if !backoff.Sleep(ctx, pause.Next()) {
			return
		}
	}
}

// processEnded reports whether the other node's host says that nobody has the control port any more: the keys are gone
// with that process. Silence proves nothing.
func (l *link) processEnded(ctx context.Context) bool {
	if l.at == "" {
		return true
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", l.at)
	if err == nil {
		conn.Close()
		return false
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// serve tells of the connections until the stream breaks.
func (l *link) serve(ctx context.Context, works func()) error {
	if l.at == "" {
		return errNobody
	}
	client, err := l.owner.cfg.Client(l.at)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := client.Hold(ctx)
	if err != nil {
		return err
	}
	receipts, broken := make(chan *control.StandbyReceipt), make(chan error, 1)
	var reading sync.WaitGroup
	defer reading.Wait()
	defer cancel()
	reading.Go(func() {
		for {
			receipt, err := stream.Recv()
			if err != nil {
				broken <- err
				return
			}
			select {
			case receipts <- receipt:
			case <-ctx.Done():
				return
			}
		}
	})
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if report := l.report(time.Now()); report != nil {
			if err := stream.Send(report); err != nil {
				return err
			}
		}
		select {
		case receipt := <-receipts:
			works()
			l.acknowledged(receipt)
		case <-l.wake:
		case <-tick.C:
		case err := <-broken:
			return err
		}
	}
}

// report returns what has changed, nil for nothing. Keys and numbers are told only after the connection is bound by them.
func (l *link) report(now time.Time) *control.StandbyReport {
	report := &control.StandbyReport{Boot: l.owner.cfg.Boot, Control: l.owner.cfg.Control, Seq: l.seq + 1}
	due := now.Sub(l.numbers) >= numbersEvery
	for _, e := range l.list() {
		told := e.connection.Standby()
		switch {
		case !e.connection.Alive():
			report.Ended = append(report.Ended, e.id)
			l.owner.drop(l, e.id)
		case told == nil || now.Before(e.again):
		case e.told == nil || changed(e.told, told):
			l.tell(e, told, report)
		case due && e.keyed && e.pending == nil:
			e.askIfUnreached(now)
			e.toldSeq = report.GetSeq()
			e.count(report.GetSeq())
			report.Numbers = append(report.Numbers, e.pending)
		}
	}
	if due {
		l.numbers = now
	}
	if len(report.GetConnections())+len(report.GetNumbers())+len(report.GetEnded()) == 0 {
		return nil
	}
	l.seq++
	return report
}

// changed compares what is told at once. The rest goes along.
func changed(old, now *control.StandbyConnection) bool {
	return old.GetUfrag() != now.GetUfrag() || old.GetReversed() != now.GetReversed() || len(old.GetKeys()) != len(now.GetKeys()) ||
		old.GetVersion() != now.GetVersion() || old.GetClient() != now.GetClient() || len(old.GetOffer().GetSenders()) != len(now.GetOffer().GetSenders())
}

func (l *link) tell(e *entry, told *control.StandbyConnection, report *control.StandbyReport) {
	told.Id, told.Room, told.Peer = e.id, e.room, e.peer
	if len(told.GetKeys()) > 0 {
		e.count(report.GetSeq())
		e.keyed, told.Numbers = true, e.pending
	}
	e.told, e.toldSeq = told, report.GetSeq()
	report.Connections = append(report.Connections, told)
}

func (e *entry) count(seq uint64) {
	e.pending, e.pendingSeq = e.connection.Numbers(), seq
	e.pending.Id = e.id
	e.connection.Bound(e.pending, false)
}

func (e *entry) askIfUnreached(now time.Time) {
	if e.reversing && now.Sub(e.reached) >= unreachedAfter && now.Sub(e.asked) >= unreachedEvery {
		e.asked = now
		e.connection.Unreached()
	}
}

// refuse has a connection told again later: the other node may still have it from before it moved here.
func (l *link) refuse(e *entry, now time.Time) {
	if e.refusals++; e.refusals > mostRefusals {
		l.owner.drop(l, e.id)
		return
	}
	e.told, e.pending, e.keyed = nil, nil, false
	e.connection.Prepared(false)
	e.again = now.Add(refusedFor)
}

// acknowledged takes a receipt. A connection that the other node refused, and has not been told since, is nobody else's.
func (l *link) acknowledged(receipt *control.StandbyReceipt) {
	for _, id := range receipt.GetRefused() {
		if e := l.entry(id); e != nil && receipt.GetSeq() >= e.toldSeq {
			e.connection.Unbound()
			l.refuse(e, time.Now())
		}
	}
	for _, e := range l.list() {
		if e.pending != nil && e.pendingSeq <= receipt.GetSeq() {
			e.connection.Bound(e.pending, true)
			e.pending = nil
			if !e.reversing {
				e.reversing, e.reached = true, time.Now()
				e.connection.Reverse()
			}
		}
	}
	for _, id := range receipt.GetReady() {
		if e := l.entry(id); e != nil {
			e.reached = time.Now()
			e.connection.Prepared(true)
		}
	}
	for _, id := range receipt.GetTaken() {
		if e := l.entry(id); e != nil {
			e.connection.HandOver()
			l.owner.drop(l, id)
		}
	}
}
