package messaging

import (
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
)

// outbox has the messages that came from clients of this node, until they are answered.
type outbox struct {
	node   *Node
	queues map[address]*queue
	// inFlight has the queues by the number of their batch.
	inFlight map[uint64]*queue
	asked    map[UserID][]*queue
	// senders counts each user's waiting messages.
	senders map[UserID]int
	// away has the nodes that have left the view lately and may come back.
	away    map[Peer]time.Time
	number  uint64
	waiting int
	bytes   int
	// kept is the size of the delivered batches that a client may lack.
	kept int
}

type queuedMessage struct {
	Message

	sender *Client
	since  time.Time
}

// address names a queue. Messages for one room of a user have a queue of their own, so that a user who is not in that
// room delays no other messages.
type address struct {
	user UserID
	room string
}

// queue has the messages for one address. The first inFlight messages are the batch under way.
type queue struct {
	to       address
	list     []*queuedMessage
	inFlight int
	number   uint64
	tries    int
	// due is when the batch is sent again, or when the wait for the user's other clients ends.
	due time.Time

	holders []pin.BootID
	// view is the mark of the view under which the directory chose the holders.
	view uint64
	// answered has the holders that have nothing more to say about the batch.
	answered map[pin.BootID]struct{}
	// some is set when one client has the batch.
	some bool
	// uncertain is set if the directory may not know all holders.
	uncertain bool

	// kept has the batches, in order, that are delivered but perhaps not to every client.
	kept []*keptBatch
	// repeating is set while the last kept batch is the one under way.
	repeating bool
	// repeats counts the repetitions since the view changed or a batch was kept.
	repeats int

	// missing is since when no client of the user is known. It is zero while one is.
	missing time.Time
	pause   time.Duration
	// unknown is since when the directory does not know the user's holders. It is zero while it does.
	unknown time.Time
	asked   bool
	// online is set if presence says that the user is online. Unless it is set, Config.Patience is the limit.
	online bool
}

func newOutbox(n *Node) *outbox {
	return &outbox{node: n, queues: make(map[address]*queue), inFlight: make(map[uint64]*queue), asked: make(map[UserID][]*queue), senders: make(map[UserID]int), away: make(map[Peer]time.Time)}
}

// Submit takes a message to one user. Without an error, the sender will be told a final state. A client that comes
// from another node must first repeat its unanswered messages in order.
func (n *Node) Submit(sender *Client, to UserID, m Message) error {
	n.mu.Lock()
	defer n.unlock()
	err := n.outbox.take(&queuedMessage{Message: m, sender: sender, since: n.config.Now()}, address{to, m.Room})
	if err != nil {
		n.counters.Refused++
	}
	return err
}

// take puts a message into its queue, or answers a repetition. An error says which bound it would exceed.
func (o *outbox) take(l *queuedMessage, to address) error {
	q := o.queues[to]
	if q != nil && o.known(q, l) {
		return nil
	}
	limits := &o.node.config
	switch {
	case !l.sender.Trusted && o.senders[l.From] >= limits.MaxPerSender:
		return ErrSenderFull
	case q != nil && len(q.list) >= limits.MaxPerReceiver:
		return ErrReceiverFull
	case o.bytes+l.size() > limits.MaxBytes:
		return ErrNodeFull
	}
	if q == nil {
		q = &queue{to: to}
		o.queues[to] = q
	}
	q.list = append(q.list, l)
	o.senders[l.From]++
	o.waiting++
	o.bytes += l.size()
	o.node.counters.Accepted++
	o.tell(l, to.user, StateAccepted)
	if q.inFlight == 0 {
		o.send(q, l.since)
	}
	return nil
}

func (l *queuedMessage) sameStream(other *queuedMessage) bool {
	return l.From == other.From && l.Stream == other.Stream
}

// known reports whether the message repeats one that is here already. The state of that one is told on the new
// connection.
func (o *outbox) known(q *queue, l *queuedMessage) bool {
	if q.keeps(l) {
		o.tell(l, q.to.user, StateDelivered)
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
		o.tell(l, q.to.user, state)
		return true
	}
	return false
}

func (o *outbox) tell(l *queuedMessage, to UserID, state State) {
	if l.sender.closed {
		return
	}
	l.sender.Tell(Status{To: to, Stream: l.Stream, Seq: l.Seq, State: state})
}

// send sends the next batch, or the batch under way once more.
func (o *outbox) send(q *queue, now time.Time) {
	if q.inFlight == 0 {
		size := 0
		for q.inFlight < len(q.list) && q.inFlight < batchMessages && (q.inFlight == 0 || size+q.list[q.inFlight].size() <= batchBytes) {
			size += q.list[q.inFlight].size()
			q.inFlight++
		}
		o.number++
		o.begin(q, o.number)
	}
	if q.tries++; q.tries > 1 {
		o.node.counters.Retries++
	}
	q.due = now.Add(o.node.config.RetryAfter)
	if !q.missing.IsZero() || !q.unknown.IsZero() {
		// A lost frame must not use up the whole time of a user who is between two nodes.
		q.due = now.Add(2 * backoffMax)
	}
	overdue := !q.unknown.IsZero() && now.Sub(q.unknown) >= o.node.config.SettleFor
	q.uncertain = q.uncertain || overdue
	o.route(o.batch(q), overdue)
}

// begin makes the batch of this number the one under way.
func (o *outbox) begin(q *queue, number uint64) {
	o.inFlight[number] = q
	q.number, q.tries, q.some, q.uncertain, q.repeating = number, 0, false, false, false
	q.holders, q.view, q.answered = nil, 0, make(map[pin.BootID]struct{})
}

// batch returns the batch under way.
func (o *outbox) batch(q *queue) Batch {
	b := Batch{Number: q.number, Origin: o.node.self, To: q.to.user, Messages: make([]Message, q.inFlight)}
	for i := range b.Messages {
		b.Messages[i] = q.list[i].Message
	}
	if n := len(q.kept); n > 0 {
		b.Previous = q.kept[n-1].number
	}
	return b
}

func (o *outbox) route(b Batch, overdue bool) {
	if directory, ok := o.node.view.directory(b.To); ok {
		o.node.send(directory, Route{Batch: b, View: o.node.view.mark, Overdue: overdue})
	}
}

// receipt takes a holder's answer to a batch. The first client that has the batch makes it delivered.
func (o *outbox) receipt(from Peer, a Receipt, now time.Time) {
	q := o.inFlight[a.Number]
	if q == nil || q.to.user != a.To {
		return
	}
	done := a.Outcome == OutcomeAll || a.Outcome == OutcomeNone
	if a.Number != q.number {
		o.caughtUp(q, from, a, now)
		return
	}
	if len(a.Holders) > 0 {
		q.holders, q.view = a.Holders, a.View
	}
	q.uncertain = q.uncertain || a.View != 0 && a.View != o.node.view.mark
	if done {
		q.answered[from.Boot] = struct{}{}
	}
	switch {
	case a.Outcome == OutcomeBehind:
		o.catchUp(q, from, a.Level, now)
		return
	case q.repeating:
		if o.complete(q) && o.certain(q, now) {
			o.release(q, len(q.kept))
		}
		return
	case q.some:
	case a.Outcome == OutcomeSome, a.Outcome == OutcomeAll:
		q.some = true
		o.answer(q, q.inFlight, StateDelivered)
		q.due = now.Add(o.node.config.OthersFor)
	case a.Outcome == OutcomeBusy:
		o.backOff(q, now)
	}
	switch {
	// A kept batch is already waiting for the client that is behind, so this batch does not wait, too.
	case q.some && (o.complete(q) || len(q.kept) > 0):
		o.finish(q, now)
	case !q.some && o.complete(q):
		clear(q.answered)
		o.absent(q, now)
	}
}

// complete reports whether every known holder has nothing more to say about the batch.
func (o *outbox) complete(q *queue) bool {
	return len(q.holders) > 0 && !slices.ContainsFunc(q.holders, func(boot pin.BootID) bool {
		_, done := q.answered[boot]
		return !done
	})
}

func (o *outbox) answer(q *queue, n int, state State) {
	for _, l := range q.list[:n] {
		o.tell(l, q.to.user, state)
	}
	switch state {
	case StateDelivered:
		o.node.counters.Delivered += n
	case StateOffline:
		o.node.counters.Offline += n
	default:
		o.node.counters.GaveUp += n
	}
}

// finish ends the delivered batch under way, and keeps it if a client may lack it.
func (o *outbox) finish(q *queue, now time.Time) {
	if o.complete(q) && o.certain(q, now) {
		o.release(q, len(q.kept))
	} else {
		o.keep(q, now)
	}
	o.remove(q, func(i int, _ *queuedMessage) bool { return i < q.inFlight })
	o.end(q)
	if len(q.list) > 0 {
		o.send(q, now)
	}
}

func (o *outbox) remove(q *queue, which func(i int, l *queuedMessage) bool) {
	kept := q.list[:0]
	for i, l := range q.list {
		if !which(i, l) {
			kept = append(kept, l)
			continue
		}
		o.waiting--
		o.bytes -= l.size()
		if o.senders[l.From]--; o.senders[l.From] == 0 {
			delete(o.senders, l.From)
		}
	}
	clear(q.list[len(kept):])
	q.list = kept
	o.forget(q)
}

func (o *outbox) forget(q *queue) {
	if len(q.list) == 0 && len(q.kept) == 0 {
		delete(o.queues, q.to)
	}
}

func (o *outbox) miss(m Miss, now time.Time) {
	q := o.inFlight[m.Number]
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
		o.backOff(q, now)
		return
	}
	o.absent(q, now)
}

// fail ends the first n messages of a queue with the state. If the sender is gone, it repeats its messages at another
// node. Then the later messages of that stream end, too: delivered first, they would hide the repeated ones.
func (o *outbox) fail(q *queue, n int, state State) {
	if q.some {
		return
	}
	o.answer(q, n, state)
	failed := slices.Clone(q.list[:n])
	o.remove(q, func(i int, l *queuedMessage) bool {
		return i < n || l.sender.closed && slices.ContainsFunc(failed, l.sameStream)
	})
	o.end(q)
}

func (o *outbox) end(q *queue) {
	if !q.keepsBatch(q.number) {
		delete(o.inFlight, q.number)
	}
	q.number, q.inFlight, q.some, q.missing, q.unknown, q.pause, q.online = 0, 0, false, time.Time{}, time.Time{}, 0, false
	if q.asked {
		q.asked = false
		o.unask(q)
	}
}

// tick gives up what is too old, sends again what is due, and repeats kept batches.
func (o *outbox) tick(now time.Time) {
	for _, q := range o.queues {
		o.expire(q, now)
		if len(q.list) == 0 {
			if len(q.kept) > 0 && !now.Before(q.due) {
				o.repeat(q, now)
			}
			continue
		}
		old := 0
		for old < len(q.list) && now.Sub(q.list[old].since) >= o.node.config.Patience {
			old++
		}
		if old > 0 && !q.some {
			o.fail(q, old, StateGaveUp)
			if len(q.list) > 0 {
				o.send(q, now)
			}
			continue
		}
		switch {
		case now.Before(q.due):
		case q.some:
			o.finish(q, now)
		default:
			o.send(q, now)
		}
	}
}

// change sends the batches again that a node which left the view may have lost.
func (o *outbox) change(before *view, now time.Time) {
	lost := false
	for _, peer := range before.peers {
		if !o.node.view.has(peer) {
			lost = true
			o.away[peer] = now
		}
	}
	for _, peer := range o.node.view.peers {
		delete(o.away, peer)
	}
	for _, q := range o.queues {
		if lost && !q.some && q.inFlight > 0 {
			q.pause = 0
			o.backOff(q, now)
		}
		if len(q.list) == 0 {
			q.repeats, q.due = 0, now
		}
	}
}
