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
	senders  map[UserID]int // waiting messages
	late     map[lateness]struct{}
	number   uint64
	waiting  int
	bytes    int
}

// The next batch does not wait for this silent holder.
type lateness struct {
	user   UserID
	holder pin.BootID
}

const maxLate = 4096

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
	due      time.Time // or end of waiting for stragglers

	holders  []pin.BootID
	answered map[pin.BootID]struct{} // nothing more to say
	some     bool                    // a client has it
	extra    int                     // tries for other clients

	missing time.Time // since there is no client, or zero
	pause   time.Duration
	unknown time.Time // since the directory does not know, or zero
	asked   bool
	online  bool // as presence says; unless it does, Config.Patience is the limit
}

func newRelay(n *Node) *relay {
	return &relay{node: n, queues: make(map[address]*queue), inFlight: make(map[uint64]*queue), asked: make(map[UserID][]*queue), senders: make(map[UserID]int), late: make(map[lateness]struct{})}
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
	if q != nil && r.repeats(q, l) {
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
func (r *relay) repeats(q *queue, l *queuedMessage) bool {
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
		r.inFlight[r.number] = q
		q.number, q.tries, q.some, q.answered = r.number, 0, false, make(map[pin.BootID]struct{})
		q.extra, q.holders = 0, nil
	}
	if q.tries++; q.tries > 1 {
		r.node.counters.Retries++
	}
	q.due = now.Add(r.node.config.RetryAfter)
	if !q.missing.IsZero() || !q.unknown.IsZero() {
		q.due = now.Add(2 * backoffMax) // a lost frame would take it all
	}
	batch := Batch{Number: q.number, Origin: r.node.self, To: q.to.user, Messages: make([]Message, q.inFlight)}
	for i := range batch.Messages {
		batch.Messages[i] = q.list[i].Message
	}
	if directory, ok := r.node.view.directory(q.to.user); ok {
		overdue := !q.unknown.IsZero() && now.Sub(q.unknown) >= r.node.config.SettleFor
		r.node.send(directory, Route{Batch: batch, View: r.node.view.mark, Overdue: overdue})
	}
}

func (r *relay) receipt(from Peer, a Receipt, now time.Time) {
	q := r.inFlight[a.Number]
	if q == nil || q.to.user != a.To {
		return
	}
	delete(r.late, lateness{a.To, from.Boot})
	q.holders = a.Holders
	switch a.Outcome {
	case OutcomeSome, OutcomeAll:
		if !q.some {
			q.some = true
			r.answer(q, q.inFlight, StateDelivered)
			q.due = now.Add(r.node.config.StragglersFor)
		}
	case OutcomeBusy:
		if !q.some {
			r.hold(q, now)
		}
	case OutcomeNone:
	}
	if a.Outcome == OutcomeAll || a.Outcome == OutcomeNone {
		q.answered[from.Boot] = struct{}{}
	}
	switch {
	case !r.complete(q):
	case q.some:
		r.finish(q, now)
	default:
		clear(q.answered)
		r.absent(q, now)
	}
}

func (r *relay) complete(q *queue) bool {
	return !slices.ContainsFunc(q.holders, func(boot pin.BootID) bool {
		_, done := q.answered[boot]
		_, late := r.late[lateness{q.to.user, boot}]
		return !done && (!late || !q.some)
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

func (r *relay) finish(q *queue, now time.Time) {
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
	if len(q.list) == 0 {
		delete(r.queues, q.to)
	}
}

func (r *relay) miss(m Miss, now time.Time) {
	q := r.inFlight[m.Number]
	if q == nil || q.to.user != m.To || q.some {
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
	delete(r.inFlight, q.number)
	q.inFlight, q.missing, q.unknown, q.pause, q.online = 0, time.Time{}, time.Time{}, 0, false
	if q.asked {
		q.asked = false
		r.unask(q)
	}
}

func (r *relay) tick(now time.Time) {
	for _, q := range r.queues {
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
		if now.Before(q.due) {
			continue
		}
		if !q.some {
			r.send(q, now)
			continue
		}
		r.straggle(q, now)
	}
}

// straggle tries the user's other clients before the next batch.
func (r *relay) straggle(q *queue, now time.Time) {
	if q.extra++; q.extra < straggles {
		r.send(q, now)
		q.due = now.Add(r.node.config.StragglersFor)
		return
	}
	if len(r.late)+len(q.holders) > maxLate {
		clear(r.late)
	}
	for _, boot := range q.holders {
		if _, done := q.answered[boot]; !done {
			r.late[lateness{q.to.user, boot}] = struct{}{}
		}
	}
	r.finish(q, now)
}

// change retries what a node may have lost.
func (r *relay) change(before *view, now time.Time) {
	clear(r.late)
	lost := false
	for _, peer := range before.peers {
		lost = lost || !r.node.view.has(peer)
	}
	for _, q := range r.queues {
		if lost && !q.some && q.inFlight > 0 {
			q.pause = 0
			r.hold(q, now)
		}
	}
}
