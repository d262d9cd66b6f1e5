package reception

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"time"
)

// link is a publisher that answers NACKs by RTX, and the path between it and a generator of NACKs. Its time is virtual.
type link struct {
	roundTrip time.Duration
	loss      float64 // of each packet, both ways
	burst     float64 // mean length of a run of lost originals; 0: each by itself
	reordered float64 // share of packets that are late by up to lateness
	lateness  time.Duration
	seed      uint64
}

// generator is what is measured.
type generator interface {
	received(sequence uint16, now time.Time)
	repaired(sequence uint16, now time.Time)
	nacks(now time.Time) []uint16 // that leave now
	next() time.Time              // when nacks has more; zero: with the next packet
	until(now time.Time)          // time goes on
}

// outcome counts packets.
type outcome struct {
	sent, lost, asked, resent, recovered int
	waits                                []time.Duration // from the time at which it would have come
}

func (o outcome) resentPerLost() float64  { return float64(o.resent) / float64(max(o.lost, 1)) }
func (o outcome) askedPerLost() float64   { return float64(o.asked) / float64(max(o.lost, 1)) }
func (o outcome) recoveredShare() float64 { return float64(o.recovered) / float64(max(o.lost, 1)) }
func (o outcome) wait(quantile float64) time.Duration {
	if len(o.waits) == 0 {
		return 0
	}
	slices.Sort(o.waits)
	return o.waits[int(quantile*float64(len(o.waits)-1))]
}

type event struct {
	at time.Duration
	do func(now time.Time)
}

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at < e[j].at }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// run sends 30 frames a second of 16 packets, half a millisecond apart, for some seconds.
func (l link) run(g generator, begin time.Time, seconds int) outcome {
	const framePackets, gap = 16, 500 * time.Microsecond
	var (
		random = rand.New(rand.NewPCG(l.seed, 1))
		queue  events
		result outcome
		missed = map[uint16]time.Duration{} // lost originals by the time at which they would have come
		bad    bool
	)
	after := func(at time.Duration, do func(time.Time)) { heap.Push(&queue, event{at, do}) }
	delay := func() time.Duration {
		d := l.roundTrip / 2
		if random.Float64() < l.reordered {
			d += time.Duration(random.Float64() * float64(l.lateness))
		}
		return d
	}
	lostNow := func() bool {
		if l.burst == 0 {
			return random.Float64() < l.loss
		}
		if bad {
			bad = random.Float64() >= 1/l.burst
		} else {
			bad = random.Float64() < l.loss/(1-l.loss)/l.burst
		}
		return bad
	}
	answer := func(sequence uint16, at time.Duration) {
		result.resent++
		if random.Float64() < l.loss {
			return
		}
		at += delay()
		after(at, func(now time.Time) {
			if due, ok := missed[sequence]; ok {
				delete(missed, sequence)
				result.recovered++
				result.waits = append(result.waits, at-due)
			}
			g.repaired(sequence, now)
		})
	}
	for n := range seconds * 30 * framePackets {
		sequence := uint16(60_000 + n)
		at := time.Duration(n/framePackets)*time.Second/30 + time.Duration(n%framePackets)*gap
		arrival := at + delay()
		result.sent++
		if lostNow() {
			result.lost++
			missed[sequence] = arrival
			continue
		}
		after(arrival, func(now time.Time) { g.received(sequence, now) })
	}
	for queue.Len() > 0 {
		if next := g.next(); !next.IsZero() && next.Sub(begin) < queue[0].at {
			after(next.Sub(begin), func(time.Time) {})
		}
		e := heap.Pop(&queue).(event)
		now := begin.Add(e.at)
		g.until(now)
		e.do(now)
		asked := g.nacks(now)
		result.asked += len(asked)
		if len(asked) > 0 && random.Float64() >= l.loss {
			after(e.at+l.roundTrip/2, func(now time.Time) {
				for _, sequence := range asked {
					answer(sequence, now.Sub(begin))
				}
			})
		}
	}
	return result
}
