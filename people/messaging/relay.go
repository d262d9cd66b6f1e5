package messaging

import (
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
)

// relay keeps messages until they are answered.
type relay struct {
	node     *Node
	queues   map[address]*queue
	inFlight map[uint64]*queue // by batch number
	asked    map[UserID][]*queue
	senders  map[UserID]int     // waiting messages
	away     map[Peer]time.Time // left the view, and may come back
	number   uint64
	waiting  int
	bytes    int
	kept     int // bytes of delivered batches that somebody may lack
}

type queuedMessage struct {
	Message

	sender *Client
	since  time.Time
}

// Who is not in the room delays nothing else.
type address struct {
	user UserID
	room string
}

// The first inFlight messages of a queue are the batch under way.
type queue struct {
	to       address
	list     []*queuedMessage
	inFlight int
	number   uint64
	tries    int
	due      time.Time // or end of waiting for the user's other clients

	holders   []pin.BootID
	view      uint64                  // that the holders are of
	answered  map[pin.BootID]struct{} // nothing more to say
	some      bool                    // a client has it
	uncertain bool                    // a holder may be unknown to the directory

	kept      []*keptBatch // in order; delivered, but perhaps not to every client
	repeating bool         // the last of kept is under way
	repeats   int          // since the view changed or something was kept

	missing time.Time // since there is no client, or zero
	pause   time.Duration
	unknown time.Time // since the directory does not know, or zero
	asked   bool
	online  bool // as presence says; unless it does, Config.Patience is the limit
}

func newRelay(n *Node) *relay {
	return &relay{node: n, queues: make(map[address]*queue), inFlight: make(map[uint64]*queue), asked: make(map[UserID][]*queue), senders: make(map[UserID]int), away: make(map[Peer]time.Time)}
}

// Submit takes a message to one user; without an error, the sender is told the outcome. A client from another node first repeats
// unanswered messages in order.
func (n *Node) Submit(sender *Client, to UserID, m Message) error {
	n.mu.Lock()
	defer n.unlock()
	err := n.relay.take(&queuedMessage{Message: m, sender: sender, since: n.config.Now()}, address{to, m.Room})
	if err != nil {
		n.counters.Refused++
	}
	return err
}

func (r *relay) take(l *queuedMessage, to address) error {
	q := r.queues[to]
	if q != nil && r.known(q, l) {
		return nil
	}
	limits := &r.node.config
	switch {
	case !l.sender.Trusted && r.senders[l.From] >= limits.MaxPerSender:
		return ErrSenderFull
	case q != nil && len(q.list) >= limits.MaxPerReceiver:
		return ErrReceiverFull
	case r.bytes+l.size() > limits.MaxBytes:
		return ErrNodeFull
	}
	if q == nil {
		q = &queue{to: to}
		r.queues[to] = q
	}
	q.list = append(q.list, l)
	r.senders[l.From]++
	r.waiting++
	r.bytes += l.size()
	r.node.counters.Accepted++
	r.tell(l, to.user, StateAccepted)
	if q.inFlight == 0 {
		r.send(q, l.since)
	}
	return nil
}

func (l *queuedMessage) sameStream(other *queuedMessage) bool {
	return l.From == other.From && l.Stream == other.Stream
}

// A repetition's sender is told on the new connection.
func (r *relay) known(q *queue, l *queuedMessage) bool {
	if q.keeps(l) {
		r.tell(l, q.to.user, StateDelivered)
		return true
	}
	for i, other := range q.list {
		if !l.sameStream(other) || l.Seq != other.Seq {
			continue
		}
		other.sender = l.sender
		state := StateAccepted
		if q.some && i < q.inFlight {
			state = StateDelivered
		}
		r.tell(l, q.to.user, state)
		return true
	}
	return false
}

func (r *relay) tell(l *queuedMessage, to UserID, state State) {
	if l.sender.closed {
		return
	}
	l.sender.Tell(Status{To: to, Stream: l.Stream, Seq: l.Seq, State: state})
}

// send takes the next batch, or repeats the present one.
func (r *relay) send(q *queue, now time.Time) {
	if q.inFlight == 0 {
		size := 0
		for q.inFlight < len(q.list) && q.inFlight < batchMessages && (q.inFlight == 0 || size+q.list[q.inFlight].size() <= batchBytes) {
			size += q.list[q.inFlight].size()
			q.inFlight++
		}
		r.number++
		r.begin(q, r.number)
	}
	if q.tries++; q.tries > 1 {
		r.node.counters.Retries++
	}
	q.due = now.Add(r.node.config.RetryAfter)
	if !q.missing.IsZero() || !q.unknown.IsZero() {
		q.due = now.Add(2 * backoffMax) // a lost frame would take it all
	}
	overdue := !q.unknown.IsZero() && now.Sub(q.unknown) >= r.node.config.SettleFor
	q.uncertain = q.uncertain || overdue
	r.route(r.batch(q), overdue)
}

// begin makes a batch the one under way.
func (r *relay) begin(q *queue, number uint64) {
	r.inFlight[number] = q
	q.number, q.tries, q.some, q.uncertain, q.repeating = number, 0, false, false, false
	q.holders, q.view, q.answered = nil, 0, make(map[pin.BootID]struct{})
}

// batch is the one under way.
func (r *relay) batch(q *queue) Batch {
	b := Batch{Number: q.number, Origin: r.node.self, To: q.to.user, Messages: make([]Message, q.inFlight)}
	for i := range b.Messages {
		b.Messages[i] = q.list[i].Message
	}
	if n := len(q.kept); n > 0 {
		b.Previous = q.kept[n-1].number
	}
	return b
}

func (r *relay) route(b Batch, overdue bool) {
	if directory, ok := r.node.view.directory(b.To); ok {
		r.node.send(directory, Route{Batch: b, View: r.node.view.mark, Overdue: overdue})
	}
}

func (r *relay) receipt(from Peer, a Receipt, now time.Time) {
	q := r.inFlight[a.Number]
	if q == nil || q.to.user != a.To {
		return
	}
	done := a.Outcome == OutcomeAll || a.Outcome == OutcomeNone
	if a.Number != q.number {
		r.caughtUp(q, from, a, now)
		return
	}
	if len(a.Holders) > 0 {
		q.holders, q.view = a.Holders, a.View
	}
	q.uncertain = q.uncertain || a.View != 0 && a.View != r.node.view.mark
	if done {
		q.answered[from.Boot] = struct{}{}
	}
	switch {
	case a.Outcome == OutcomeBehind:
		r.catchUp(q, from, a.Level, now)
		return
	case q.repeating:
		if r.complete(q) && r.certain(q, now) {
			r.release(q, len(q.kept))
		}
		return
	case q.some:
	case a.Outcome == OutcomeSome, a.Outcome == OutcomeAll:
		q.some = true
		r.answer(q, q.inFlight, StateDelivered)
		q.due = now.Add(r.node.config.OthersFor)
	case a.Outcome == OutcomeBusy:
		r.hold(q, now)
	}
	switch {
	case q.some && (r.complete(q) || len(q.kept) > 0): // who is behind is not waited for again
		r.finish(q, now)
	case !q.some && r.complete(q):
		clear(q.answered)
		r.absent(q, now)
	}
}

// complete reports whether every known holder has nothing more to say.
func (r *relay) complete(q *queue) bool {
	return len(q.holders) > 0 && !slices.ContainsFunc(q.holders, func(boot pin.BootID) bool {
		_, done := q.answered[boot]
		return !done
	})
}

func (r *relay) answer(q *queue, n int, state State) {
	for _, l := range q.list[:n] {
		r.tell(l, q.to.user, state)
	}
	switch state {
	case StateDelivered:
		r.node.counters.Delivered += n
	case StateOffline:
		r.node.counters.Offline += n
	default:
		r.node.counters.GaveUp += n
	}
}

// finish ends the batch under way, which is delivered, and keeps it if a client may lack it.
func (r *relay) finish(q *queue, now time.Time) {
	if r.complete(q) && r.certain(q, now) {
		r.release(q, len(q.kept))
	} else {
		r.keep(q, now)
	}
	r.remove(q, func(i int, _ *queuedMessage) bool { return i < q.inFlight })
	r.end(q)
	if len(q.list) > 0 {
		r.send(q, now)
	}
}

func (r *relay) remove(q *queue, which func(i int, l *queuedMessage) bool) {
	kept := q.list[:0]
	for i, l := range q.list {
		if !which(i, l) {
			kept = append(kept, l)
			continue
		}
		r.waiting--
		r.bytes -= l.size()
		if r.senders[l.From]--; r.senders[l.From] == 0 {
			delete(r.senders, l.From)
		}
	}
	clear(q.list[len(kept):])
	q.list = kept
	r.forget(q)
}

func (r *relay) forget(q *queue) {
	if len(q.list) == 0 && len(q.kept) == 0 {
		delete(r.queues, q.to)
	}
}

func (r *relay) miss(m Miss, now time.Time) {
	q := r.inFlight[m.Number]
	if q == nil || q.to.user != m.To || q.number != m.Number || q.some {
		return
	}
	if q.repeating {
		if m.Unsettled {
			q.due = now.Add(backoffMax)
		}
		return
	}
	if m.Unsettled {
		if q.unknown.IsZero() {
			q.unknown = now
		}
		r.hold(q, now)
		return
	}
	r.absent(q, now)
}

// Senders who are gone repeat all elsewhere: fail also gives up their later messages, which would come too late.
func (r *relay) fail(q *queue, n int, state State) {
	if q.some {
		return
	}
	r.answer(q, n, state)
	failed := slices.Clone(q.list[:n])
	r.remove(q, func(i int, l *queuedMessage) bool {
		return i < n || l.sender.closed && slices.ContainsFunc(failed, l.sameStream)
	})
	r.end(q)
}

func (r *relay) end(q *queue) {
	if !q.keepsBatch(q.number) {
		delete(r.inFlight, q.number)
	}
	q.number, q.inFlight, q.some, q.missing, q.unknown, q.pause, q.online = 0, 0, false, time.Time{}, time.Time{}, 0, false
	if q.asked {
		q.asked = false
		r.unask(q)
	}
}

func (r *relay) tick(now time.Time) {
	for _, q := range r.queues {
		r.expire(q, now)
		if len(q.list) == 0 {
			if len(q.kept) > 0 && !now.Before(q.due) {
				r.repeat(q, now)
			}
			continue
		}
		old := 0
		for old < len(q.list) && now.Sub(q.list[old].since) >= r.node.config.Patience {
			old++
		}
		if old > 0 && !q.some {
			r.fail(q, old, StateGaveUp)
			if len(q.list) > 0 {
				r.send(q, now)
			}
			continue
		}
		switch {
		case now.Before(q.due):
		case q.some:
			r.finish(q, now)
		default:
			r.send(q, now)
		}
	}
}

// change retries what a node may have lost.
func (r *relay) change(before *view, now time.Time) {
	lost := false
	for _, peer := range before.peers {
		if !r.node.view.has(peer) {
			lost = true
			r.away[peer] = now
		}
	}
	for _, peer := range r.node.view.peers {
		delete(r.away, peer)
	}
	for _, q := range r.queues {
		if lost && !q.some && q.inFlight > 0 {
			q.pause = 0
			r.hold(q, now)
		}
		if len(q.list) == 0 {
			q.repeats, q.due = 0, now
		}
	}
}
