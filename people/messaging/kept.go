package messaging

import (
	"maps"
	"slices"
	"time"
)

// keptBatch was delivered to one client of its user at least. It is kept while another one may lack it: its node did not answer, left
// the view a moment ago, or may be unknown to the directory.
type keptBatch struct {
	number   uint64
	messages []*queuedMessage
	size     int
	since    time.Time
}

// keep takes the batch under way.
func (r *relay) keep(q *queue, now time.Time) {
	k := &keptBatch{number: q.number, messages: slices.Clone(q.list[:q.inFlight]), since: now}
	for _, l := range k.messages {
		k.size += l.size()
	}
	q.kept = append(q.kept, k)
	r.kept += k.size
	q.repeats, q.due = 0, now.Add(r.node.config.RepeatAfter)
	limits := &r.node.config
	for len(q.kept) > 0 && (r.kept > limits.MaxKeptBytes || q.keptMessages() > limits.MaxPerReceiver) {
		r.node.counters.Forgotten += len(q.kept[0].messages)
		r.release(q, 1)
	}
}

// release forgets the first n kept batches.
func (r *relay) release(q *queue, n int) {
	for _, k := range q.kept[:n] {
		r.kept -= k.size
		delete(r.inFlight, k.number)
	}
	q.kept = slices.Delete(q.kept, 0, n)
	r.forget(q)
}

func (r *relay) expire(q *queue, now time.Time) {
	old := 0
	for old < len(q.kept) && now.Sub(q.kept[old].since) >= r.node.config.KeepFor {
		old++
	}
	if old > 0 {
		r.release(q, old)
	}
}

// certain reports whether the answered batch reached every client of its user that there may be.
func (r *relay) certain(q *queue, now time.Time) bool {
	maps.DeleteFunc(r.away, func(_ Peer, since time.Time) bool { return now.Sub(since) >= r.node.config.KeepFor })
	return !q.uncertain && len(r.away) == 0
}

// repeat asks all holders, by way of the directory, whether they have the last kept batch.
func (r *relay) repeat(q *queue, now time.Time) {
	last := len(q.kept) - 1
	r.begin(q, q.kept[last].number)
	q.repeating = true
	q.due = now.Add(min(r.node.config.RepeatAfter<<q.repeats, repeatMax))
	q.repeats = min(q.repeats+1, maxRepeats)
	r.node.counters.Retries++
	r.route(r.again(q, last, now), false)
}

// again is the kept batches from i on as one, as far as a frame carries them.
func (r *relay) again(q *queue, i int, now time.Time) Batch {
	b := Batch{Origin: r.node.self, To: q.to.user}
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
func (r *relay) catchUp(q *queue, to Peer, level uint64, now time.Time) {
	next := slices.IndexFunc(q.kept, func(k *keptBatch) bool { return k.number > level })
	d := Deliver{Holders: q.holders, View: q.view}
	switch {
	case next >= 0:
		d.Batch = r.again(q, next, now)
	case q.inFlight > 0:
		d.Batch = r.batch(q)
	default:
		return
	}
	r.node.send(to, d)
}

// caughtUp takes the answer to a kept batch that is not the one under way.
func (r *relay) caughtUp(q *queue, from Peer, a Receipt, now time.Time) {
	switch a.Outcome {
	case OutcomeBehind:
		r.catchUp(q, from, a.Level, now)
	case OutcomeAll, OutcomeNone:
		r.catchUp(q, from, a.Number, now)
	case OutcomeSome, OutcomeBusy: // asked again with the next repetition
	}
}

func (q *queue) keptMessages() int {
	total := 0
	for _, k := range q.kept {
		total += len(k.messages)
	}
	return total
}

// keeps reports whether a message is a repetition of a kept one.
func (q *queue) keeps(l *queuedMessage) bool {
	return slices.ContainsFunc(q.kept, func(k *keptBatch) bool {
		return slices.ContainsFunc(k.messages, func(other *queuedMessage) bool { return l.sameStream(other) && l.Seq == other.Seq })
	})
}

func (q *queue) keepsBatch(number uint64) bool {
	return slices.ContainsFunc(q.kept, func(k *keptBatch) bool { return k.number == number })
}
