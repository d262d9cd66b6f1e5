package chaos

import "time"

// pauses keeps the longest pause of every flow, to the precision of the looks.
type pauses struct {
	began time.Time
	most  map[flow]time.Duration // by flow without its last
}

func newPauses() *pauses { return &pauses{began: time.Now(), most: make(map[flow]time.Duration)} }

func (p *pauses) see(flows []flow, now time.Time) {
	for _, f := range flows {
		last := f.last
		for _, at := range []time.Time{p.began, f.shown} { // what was not shown did not pause
			if last.Before(at) {
				last = at
			}
		}
		f.last, f.shown = time.Time{}, time.Time{}
		p.most[f] = max(p.most[f], now.Sub(last))
	}
}

func (p *pauses) longest() []Pause {
	all := make([]Pause, 0, len(p.most))
	for f, most := range p.most {
		all = append(all, Pause{Room: f.room, Client: f.client, From: f.from, Source: f.source, Longest: most})
	}
	return all
}
