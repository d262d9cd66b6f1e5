package chaos

import (
	"fmt"
	"math"
	"slices"

	"github.com/holdfast-rtc/holdfast/lab/measure"
)

// columnsMax bounds the clients that are drawn side by side; of more, every so many-th is.
const columnsMax = 125

// columns draws the phases of each client upright, from the fastest to the slowest: what the
// slow ones waited for is what the mean does not show.
type columns struct {
	Bars  []bar
	Ticks []tick
	Drawn int
	All   int
}

func (r *Report) columns(browser bool) columns {
	var clients []ClientGap
	for _, t := range r.Trials {
		for _, c := range t.Clients {
			if c.Browser == browser && len(c.GapsMs) > 0 {
				clients = append(clients, c)
			}
		}
	}
	slices.SortStableFunc(clients, func(a, b ClientGap) int { return int(math.Copysign(1, a.total()-b.total())) })
	all := len(clients)
	for n := min(all, columnsMax); len(clients) > n; {
		thinned := make([]ClientGap, 0, n)
		for i := range n {
			thinned = append(thinned, clients[i*(all-1)/(n-1)]) // the fastest and the slowest are kept
		}
		clients = thinned
	}
	drawn := columns{Drawn: len(clients), All: all}
	if all == 0 {
		return drawn
	}
	step := niceStep(clients[len(clients)-1].total() / 4)
	most := math.Ceil(clients[len(clients)-1].total()/step) * step
	width := plotWidth / float64(len(clients))
	for i, c := range clients {
		y := plotHeight
		for _, name := range phaseNames() {
			height := c.Phases[name] / most * plotHeight
			if height < 0.3 {
				continue
			}
			y -= height
			drawn.Bars = append(drawn.Bars, bar{
				X: measure.Round1(float64(i) * width), Y: measure.Round1(y), W: measure.Round1(max(width-1, width*0.8)), H: measure.Round1(height), Class: name,
				Title: fmt.Sprintf("%s in %s: %s %.0f of %.0f ms", c.Client, c.Room, name, c.Phases[name], c.total()),
			})
		}
	}
	for ms := step; ms <= most; ms += step {
		drawn.Ticks = append(drawn.Ticks, tick{measure.Round1(plotHeight - ms/most*plotHeight), fmt.Sprintf("%.0f ms", ms)})
	}
	return drawn
}

// total is the gap of the client's first stream.
func (g ClientGap) total() float64 {
	sum := 0.0
	for _, ms := range g.Phases {
		sum += ms
	}
	return sum
}
