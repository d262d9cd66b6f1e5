package chaos

import (
	"cmp"
	"slices"

	"github.com/holdfast-rtc/holdfast/lab/measure"
)

// SizeGaps are the moves of rooms of one size, in trials in which no larger room moved.
type SizeGaps struct {
	People    int                  `json:"people"` // in the room
	Trials    int                  `json:"trials"`
	RehomedMs measure.Distribution `json:"rehomedMs"` // of each client: from the fault until the room's new pin stands
	FirstMs   measure.Distribution `json:"firstMs"`   // of each client's first stream
	LastMs    measure.Distribution `json:"lastMs"`    // of each client's last stream
	// The ratios are of p50 to the smallest size.
	RehomedRatio float64 `json:"rehomedRatio"`
	FirstRatio   float64 `json:"firstRatio"`
	LastRatio    float64 `json:"lastRatio"`
}

// sizes compares rooms of several sizes; nil if there is only one.
func (r *Report) sizes() []SizeGaps {
	type samples struct {
		trials               int
		rehomed, first, last measure.Sample
	}
	bySize := make(map[int]*samples)
	for _, t := range r.Trials {
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
			bySize[size] = &samples{}
		}
		s := bySize[size]
		s.trials++
		for _, room := range rooms {
			for _, c := range room {
				if len(room) == size && len(c.GapsMs) > 0 {
					s.rehomed.Add(duration(c.Phases["detect"] + c.Phases["claim"]))
					s.first.Add(duration(slices.Min(c.GapsMs)))
					s.last.Add(duration(slices.Max(c.GapsMs)))
				}
			}
		}
	}
	if len(bySize) < 2 {
		return nil
	}
	var all []SizeGaps
	for people, s := range bySize {
		all = append(all, SizeGaps{
			People: people, Trials: s.trials,
			RehomedMs: s.rehomed.Distribution(), FirstMs: s.first.Distribution(), LastMs: s.last.Distribution(),
		})
	}
	slices.SortFunc(all, func(a, b SizeGaps) int { return cmp.Compare(a.People, b.People) })
	for i := range all {
		all[i].RehomedRatio = ratio(all[i].RehomedMs, all[0].RehomedMs)
		all[i].FirstRatio, all[i].LastRatio = ratio(all[i].FirstMs, all[0].FirstMs), ratio(all[i].LastMs, all[0].LastMs)
	}
	return all
}

func ratio(of, to measure.Distribution) float64 {
	if to.P50 <= 0 {
		return 0
	}
	return measure.Round1(10*of.P50/to.P50) / 10 // two digits
}

func (r *Report) writeSizes(row func(format string, values ...any)) {
	if len(r.Sizes) == 0 {
		return
	}
	row("\nrooms by size, p50 and max in ms after the fault (times the smallest's p50)\ttrials\tre-homed\tfirst stream\tlast stream")
	for _, s := range r.Sizes {
		row("%d people\t%d\t%.0f, %.0f (%.2f)\t%.0f, %.0f (%.2f)\t%.0f, %.0f (%.2f)", s.People, s.Trials, s.RehomedMs.P50, s.RehomedMs.Max, s.RehomedRatio,
			s.FirstMs.P50, s.FirstMs.Max, s.FirstRatio, s.LastMs.P50, s.LastMs.Max, s.LastRatio)
	}
}
