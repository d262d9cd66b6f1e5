package chaos

import (
	"cmp"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/measure"
	"github.com/holdfast-rtc/holdfast/lab/peer"
)

// Gaps are the times from a fault to media on the new node.
type Gaps struct {
	Streams measure.Distribution `json:"streamsMs"`
	Clients measure.Distribution `json:"clientsMs"` // of each client's last stream
	Missing int                  `json:"missing"`   // streams that never came back
	Moves   int                  `json:"moves"`     // of clients
	Silent  int                  `json:"silent"`    // of them by a standby, without an offer
	Phases  []Phase              `json:"phases"`
}

// Phase is a part of the first stream's gap.
type Phase struct {
	Name   peer.Step            `json:"name"`
	MeanMs float64              `json:"meanMs"`
	Ms     measure.Distribution `json:"ms"`
}

// Tally sums up the trials of one scenario of a soak.
type Tally struct {
	Scenario  Name                 `json:"scenario"`
	Trials    int                  `json:"trials"`
	Kept      int                  `json:"kept"`      // with every verdict kept
	StreamsMs measure.Distribution `json:"streamsMs"` // from the fault to each stream's return
}

// SizeGaps are the moves of rooms of one size, in trials that moved no larger room.
type SizeGaps struct {
	People    int                  `json:"people"` // in the room
	Trials    int                  `json:"trials"`
	RehomedMs measure.Distribution `json:"rehomedMs"` // of each client: from the fault to the room's new pin
	FirstMs   measure.Distribution `json:"firstMs"`   // of each client's first stream
	LastMs    measure.Distribution `json:"lastMs"`    // of each client's last stream
}

func distribution(clients []ClientGap, of func(ClientGap) []float64) measure.Distribution {
	var s measure.Sample
	for _, c := range clients {
		for _, ms := range of(c) {
			s.Add(time.Duration(ms * float64(time.Millisecond)))
		}
	}
	return s.Distribution()
}

// nil without clients.
func gapsOf(clients []ClientGap) *Gaps {
	if len(clients) == 0 {
		return nil
	}
	g := &Gaps{Moves: len(clients), Streams: distribution(clients, func(c ClientGap) []float64 { return c.GapsMs })}
	g.Clients = distribution(clients, func(c ClientGap) []float64 {
		if c.Missing > 0 {
			return nil
		}
		return []float64{c.last()}
	})
	back := slices.DeleteFunc(slices.Clone(clients), func(c ClientGap) bool { return len(c.GapsMs) == 0 })
	for _, c := range clients {
		g.Missing += c.Missing
		if c.Silent {
			g.Silent++
		}
	}
	for _, name := range phases() {
		sum := 0.0
		for _, c := range back {
			sum += c.Phases[name]
		}
		if len(back) > 0 {
			ms := distribution(back, func(c ClientGap) []float64 { return []float64{c.Phases[name]} })
			g.Phases = append(g.Phases, Phase{Name: name, MeanMs: measure.Round1(sum / float64(len(back))), Ms: ms})
		}
	}
	return g
}

func (c ClientGap) last() float64 { return slices.Max(append(c.GapsMs, 0)) }

func tallies(trials []*Trial) []Tally {
	var all []Tally
	for _, name := range Names() {
		t := Tally{Scenario: Name(name)}
		var clients []ClientGap
		for _, trial := range trials {
			if trial.Scenario != t.Scenario {
				continue
			}
			t.Trials++
			if trial.kept() {
				t.Kept++
			}
			clients = append(clients, trial.Clients...)
		}
		if t.Trials > 0 {
			t.StreamsMs = distribution(clients, func(c ClientGap) []float64 { return c.GapsMs })
			all = append(all, t)
		}
	}
	return all
}

// sizes compares rooms of several sizes; nil if there is only one.
func sizes(trials []*Trial) []SizeGaps {
	bySize, clients := make(map[int]*SizeGaps), make(map[int][]ClientGap)
	for _, t := range trials {
		rooms := make(map[string][]ClientGap)
		size := 0
		for _, c := range t.Clients {
			rooms[c.Room] = append(rooms[c.Room], c)
			size = max(size, len(rooms[c.Room]))
		}
		if size == 0 {
			continue
		}
		if bySize[size] == nil {
			bySize[size] = &SizeGaps{People: size}
		}
		bySize[size].Trials++
		for _, room := range rooms {
			if len(room) == size {
				clients[size] = append(clients[size], slices.DeleteFunc(room, func(c ClientGap) bool { return len(c.GapsMs) == 0 })...)
			}
		}
	}
	if len(bySize) < 2 {
		return nil
	}
	var all []SizeGaps
	for size, s := range bySize {
		s.RehomedMs = distribution(clients[size], func(c ClientGap) []float64 { return []float64{c.Phases[stepDetect] + c.Phases[stepClaim]} })
		s.FirstMs = distribution(clients[size], func(c ClientGap) []float64 { return []float64{slices.Min(c.GapsMs)} })
		s.LastMs = distribution(clients[size], func(c ClientGap) []float64 { return []float64{c.last()} })
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b SizeGaps) int { return cmp.Compare(a.People, b.People) })
	return all
}
