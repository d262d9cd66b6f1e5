package chaos

import "time"

// pauses keeps each flow's longest pause, to the precision of the looks.
type pauses struct {
	began time.Time
	most  map[Flow]time.Duration
}

func newPauses() *pauses { return &pauses{began: time.Now(), most: make(map[Flow]time.Duration)} }

func (p *pauses) see(flows []flow, now time.Time) {
	for _, f := range flows {
		last := f.last
		for _, at := range []time.Time{p.began, f.shown} { // what was not shown did not pause
			if last.Before(at) {
				last = at
			}
		}
		p.most[f.Flow] = max(p.most[f.Flow], now.Sub(last))
	}
}

func (p *pauses) longest() []Pause {
	all := make([]Pause, 0, len(p.most))
	for f, most := range p.most {
		all = append(all, Pause{Flow: f, Longest: most})
	}
	return all
}
