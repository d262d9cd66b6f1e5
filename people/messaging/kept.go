package messaging

import (
	"maps"
	"slices"
	"time"
)

// keptBatch was delivered to at least one client of its user. It is kept while another client may lack it: a holder
// did not answer, a node left the view a moment ago, or the directory may not know a holder.
type keptBatch struct {
	number   uint64
	messages []*queuedMessage
	size     int
	since    time.Time
}

// keep keeps the batch under way, and forgets the oldest kept ones beyond the bounds.
func (o *outbox) keep(q *queue, now time.Time) {
	k := &keptBatch{number: q.number, messages: slices.Clone(q.list[:q.inFlight]), since: now}
	for _, l := range k.messages {
		k.size += l.size()
	}
	q.kept = append(q.kept, k)
	o.kept += k.size
	q.repeats, q.due = 0, now.Add(o.node.config.RepeatAfter)
	limits := &o.node.config
	for len(q.kept) > 0 && (o.kept > limits.MaxKeptBytes || q.keptMessages() > limits.MaxPerReceiver) {
		o.node.counters.Forgotten += len(q.kept[0].messages)
		o.release(q, 1)
	}
}

// release forgets the first n kept batches.
func (o *outbox) release(q *queue, n int) {
	for _, k := range q.kept[:n] {
		o.kept -= k.size
		delete(o.inFlight, k.number)
	}
	q.kept = slices.Delete(q.kept, 0, n)
	o.forget(q)
}

func (o *outbox) expire(q *queue, now time.Time) {
	old := 0
	for old < len(q.kept) && now.Sub(q.kept[old].since) >= o.node.config.KeepFor {
		old++
	}
	if old > 0 {
		o.release(q, old)
	}
}

// certain reports whether the answered batch reached every client of its user that there may be.
func (o *outbox) certain(q *queue, now time.Time) bool {
	maps.DeleteFunc(o.away, func(_ Peer, since time.Time) bool { return now.Sub(since) >= o.node.config.KeepFor })
	return !q.uncertain && len(o.away) == 0
}

// repeat asks all holders, by way of the directory, whether they have the last kept batch.
func (o *outbox) repeat(q *queue, now time.Time) {
	last := len(q.kept) - 1
	o.begin(q, q.kept[last].number)
	q.repeating = true
	q.due = now.Add(min(o.node.config.RepeatAfter<<q.repeats, repeatMax))
	q.repeats = min(q.repeats+1, maxRepeats)
	o.node.counters.Retries++
	o.route(o.again(q, last, now), false)
}

// again makes one batch of the kept batches from number i on, as many as a frame carries.
func (o *outbox) again(q *queue, i int, now time.Time) Batch {
	b := Batch{Origin: o.node.self, To: q.to.user}
	if i > 0 {
		b.Previous = q.kept[i-1].number
	}
	size := 0
	for _, k := range q.kept[i:] {
		size += k.size
		if len(b.Messages) > 0 && (size > batchBytes || len(b.Messages)+len(k.messages) > againMessages) {
			break
		}
		b.Number = k.number
		for _, l := range k.messages {
			b.Messages = append(b.Messages, l.Message)
			b.Ages = append(b.Ages, max(now.Sub(k.since), time.Millisecond))
		}
	}
	return b
}

// catchUp sends a holder the first batch that its clients lack. Its answer brings the next one.
func (o *outbox) catchUp(q *queue, to Peer, level uint64, now time.Time) {
	next := slices.IndexFunc(q.kept, func(k *keptBatch) bool { return k.number > level })
	d := Deliver{Holders: q.holders, View: q.view}
	switch {
	case next >= 0:
		d.Batch = o.again(q, next, now)
	case q.inFlight > 0:
		d.Batch = o.batch(q)
	default:
		return
	}
	o.node.send(to, d)
}

// caughtUp takes a holder's answer to a kept batch that is not the one under way.
func (o *outbox) caughtUp(q *queue, from Peer, a Receipt, now time.Time) {
	switch a.Outcome {
	case OutcomeBehind:
		o.catchUp(q, from, a.Level, now)
	case OutcomeAll, OutcomeNone:
		o.catchUp(q, from, a.Number, now)
	// The next repetition asks this holder again.
	case OutcomeSome, OutcomeBusy:
	}
}

func (q *queue) keptMessages() int {
	total := 0
	for _, k := range q.kept {
		total += len(k.messages)
	}
	return total
}

// keeps reports whether a message repeats a kept one.
func (q *queue) keeps(l *queuedMessage) bool {
	return slices.ContainsFunc(q.kept, func(k *keptBatch) bool {
		return slices.ContainsFunc(k.messages, func(other *queuedMessage) bool { return l.sameStream(other) && l.Seq == other.Seq })
	})
}

func (q *queue) keepsBatch(number uint64) bool {
	return slices.ContainsFunc(q.kept, func(k *keptBatch) bool { return k.number == number })
}
