package paper

import (
	"fmt"
	"html"
	"slices"

	"github.com/holdfast-rtc/holdfast/ring"
)

// rows lists the busiest and least busy of many nodes; a zero Share is the gap.
func (p *picture) rows() []Share {
	if len(p.shown.Shares) <= maxRows {
		return p.shown.Shares
	}
	sorted := slices.Clone(p.shown.Shares)
	slices.SortStableFunc(sorted, func(a, b Share) int { return b.Rooms - a.Rooms })
	half := maxRows / 2
	rows := append(slices.Clone(sorted[:half]), Share{})
	return append(rows, sorted[len(sorted)-half:]...)
}

// table draws a row for each node. A tick marks the share before growth.
func (p *picture) table(rows []Share) {
	most := 0
	before := map[ring.NodeID]int{}
	for _, s := range p.report.Before.Shares {
		if p.report.Growth != nil {
			before[s.Node] = s.Rooms
		}
		most = max(most, before[s.Node])
	}
	for _, s := range p.shown.Shares {
		most = max(most, s.Rooms)
	}
	scale := barWidth / float64(max(most, 1))
	fmt.Fprintf(&p.out, `<text class="cap muted" x="%g" y="%g">node</text><text class="cap muted num" x="892" y="%g">rooms</text><text class="cap muted num" x="960" y="%g">share</text>`+"\n",
		tableX, p.tableY-16, p.tableY-16, p.tableY-16)
	for i, s := range rows {
		y := p.tableY + float64(i)*rowHeight
		if s.Node == "" {
			fmt.Fprintf(&p.out, `<text class="cap muted" x="%g" y="%g">%d nodes between</text>`+"\n", tableX+20, y+19, len(p.shown.Shares)-len(rows)+1)
			continue
		}
		fmt.Fprintf(&p.out, `<rect x="%g" y="%g" width="11" height="11" rx="3" fill="%s"/>`, tableX, y+9, p.color[s.Node])
		fmt.Fprintf(&p.out, `<text class="cell" x="%g" y="%g">%s</text>`, tableX+20, y+20, html.EscapeString(shorten(string(s.Node))))
		fmt.Fprintf(&p.out, `<rect class="track" x="%g" y="%g" width="%g" height="14" rx="4"/>`, barX, y+7.5, barWidth)
		fmt.Fprintf(&p.out, `<rect x="%g" y="%g" width="%.1f" height="14" rx="4" fill="%s"/>`, barX, y+7.5, float64(s.Rooms)*scale, p.color[s.Node])
		if n := before[s.Node]; n > 0 {
			x := barX + float64(n)*scale
			fmt.Fprintf(&p.out, `<line class="before" x1="%.1f" y1="%g" x2="%.1f" y2="%g"/>`, x, y+4.5, x, y+24.5)
		}
		fmt.Fprintf(&p.out, `<text class="cell num" x="892" y="%g">%s</text><text class="cell muted num" x="960" y="%g">%s</text>`+"\n", y+20, thousands(s.Rooms), y+20, percent(s.Share))
	}
	mean := barX + float64(p.report.Rooms)/float64(len(p.shown.Shares))*scale
	fmt.Fprintf(&p.out, `<line class="mean" x1="%.1f" y1="%g" x2="%.1f" y2="%g"/>`, mean, p.tableY-6, mean, p.tableY+float64(len(rows))*rowHeight+2)
	fmt.Fprintf(&p.out, `<text class="cap muted mid" x="%.1f" y="%g">mean</text>`+"\n", mean, p.tableY-16)
}

func percent(share float64) string {
	if share < 0.01 {
		return fmt.Sprintf("%.2f %%", 100*share)
	}
	return fmt.Sprintf("%.1f %%", 100*share)
}

func shorten(name string) string {
	if runes := []rune(name); len(runes) > 8 {
		return string(runes[:2]) + "…" + string(runes[len(runes)-5:]) // Names differ at the end.
	}
	return name
}

func footerHeight(growth bool) float64 {
	if growth {
		return 170
	}
	return 50
}

// footer draws the evenness, and what moved against what had to.
func (p *picture) footer(y float64) {
	fmt.Fprintf(&p.out, `<line class="rule" x1="%g" y1="%g" x2="960" y2="%g"/>`+"\n", tableX, y-26, y-26)
	fmt.Fprintf(&p.out, `<text class="cell" x="%g" y="%g">max/mean %.2f</text><text class="cell muted num" x="960" y="%g">(max − min)/mean %.1f %%</text>`+"\n",
		tableX, y, p.shown.MaxOverMean, y, 100*p.shown.Spread)
	g := p.report.Growth
	if g == nil {
		return
	}
	y += 42
	total := 960 - tableX
	fmt.Fprintf(&p.out, `<text class="cell" x="%g" y="%g">%s of %s rooms moved</text><text class="cell muted num" x="960" y="%g">ideal %.1f %%</text>`+"\n",
		tableX, y, thousands(g.Remapped), thousands(p.report.Rooms), y, 100*g.ExpectedShare)
	fmt.Fprintf(&p.out, `<rect class="track" x="%g" y="%g" width="%g" height="14" rx="4"/>`, tableX, y+12, total)
	fmt.Fprintf(&p.out, `<rect x="%g" y="%g" width="%.1f" height="14" rx="4" fill="%s"/>`, tableX, y+12, total*g.RemapShare, p.color[g.Added[0]])
	x := tableX + total*g.ExpectedShare
	fmt.Fprintf(&p.out, `<line class="mean" x1="%.1f" y1="%g" x2="%.1f" y2="%g"/>`+"\n", x, y+7, x, y+31)
	for i, line := range []string{
		"Ticks mark what a node held before, dashes the ideal.",
		"The outer ring and the bright dots are what moved.",
	} {
		fmt.Fprintf(&p.out, `<text class="cap muted" x="%g" y="%g">%s</text>`+"\n", tableX, y+56+float64(i)*18, line)
	}
}
