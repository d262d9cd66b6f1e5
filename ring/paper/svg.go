package paper

import (
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/holdfast-rtc/holdfast/ring"
)

// The picture's measures.
const (
	pictureWidth = 1000.0
	centerX      = 262.0
	centerY      = 356.0
	ringRadius   = 196.0 // middle of the stroke
	ringStroke   = 34.0
	movedRadius  = 222.0 // of what moved
	tableX       = 540.0
	tableTop     = 150.0 // highest begin of the table
	rowHeight    = 34.0
	barX         = 640.0
	barWidth     = 186.0
	maxRows      = 13
	maxDots      = 1500
	// minArc is a third of a pixel.
	minArc = 0.0003 // of the circle
)

// WriteSVG writes a self-contained picture in the reader's light or dark colours: the ring, a table with bars and,
// with growth, what moved.
func (r Report) WriteSVG(w io.Writer) error {
	p := &picture{report: r, shown: r.Before, ring: r.before, color: map[ring.NodeID]string{}}
	if r.Growth != nil {
		p.shown, p.ring = r.Growth.After, r.after
	}
	for i, share := range p.shown.Shares {
		p.color[share.Node] = colorOf(i)
	}
	rows := p.rows()
	panel := float64(len(rows))*rowHeight + footerHeight(r.Growth != nil)
	p.tableY = max(tableTop, centerY-panel/2+10)
	height := max(640, p.tableY+panel+40)
	fmt.Fprintf(&p.out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" role="img" aria-label="%s">`+"\n",
		pictureWidth, height, pictureWidth, height, html.EscapeString(p.title()))
	p.out.WriteString(style)
	fmt.Fprintf(&p.out, `<rect class="paper" width="%g" height="%g" rx="14"/>`+"\n", pictureWidth, height)
	p.heading()
	p.circle()
	p.dots()
	p.moved()
	p.hub()
	p.table(rows)
	p.footer(p.tableY + float64(len(rows))*rowHeight + 46)
	p.out.WriteString("</svg>\n")
	_, err := io.WriteString(w, p.out.String())
	return err
}

const style = `<style>
text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; font-variant-numeric: tabular-nums; fill: #1c2530; }
.paper { fill: #ffffff; } .muted { fill: #66717f; } .track { fill: #eef1f5; } .groove { stroke: #eef1f5; fill: none; }
.rule { stroke: #d9dfe6; } .mean { stroke: #66717f; stroke-dasharray: 3 3; } .before { stroke: #1c2530; stroke-width: 2; }
.h1 { font-size: 25px; font-weight: 650; letter-spacing: -0.3px; } .h2 { font-size: 15px; } .cap { font-size: 12px; letter-spacing: 0.2px; }
.cell { font-size: 14.5px; } .big { font-size: 40px; font-weight: 650; letter-spacing: -1px; } .num { text-anchor: end; } .mid { text-anchor: middle; }
@media (prefers-color-scheme: dark) {
text { fill: #e6eaef; } .paper { fill: #14181e; } .muted { fill: #97a2b0; } .track { fill: #232a33; } .groove { stroke: #232a33; }
.rule { stroke: #2f3844; } .mean { stroke: #97a2b0; } .before { stroke: #e6eaef; }
}
</style>
`

type picture struct {
	out    strings.Builder
	report Report
	shown  Distribution // after growth
	ring   *ring.Ring
	tableY float64
	color  map[ring.NodeID]string
}

// colorOf: eight colours that differ on white and black, then hues a golden angle apart.
func colorOf(i int) string {
	first := []string{"#3f86d0", "#ef8a3c", "#2ba58c", "#c55a9f", "#d9a928", "#6f9f3f", "#8472d6", "#d65464"}
	if i < len(first) {
		return first[i]
	}
	return fmt.Sprintf("hsl(%d %d%% %d%%)", int(math.Mod(float64(i)*137.508, 360)), 45+10*(i%3), 48+7*(i%2))
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return thousands(n) + " " + noun + "s"
}

func thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func (p *picture) title() string {
	title := fmt.Sprintf("%s on %s", count(p.report.Rooms, "room"), count(p.report.Nodes, "node"))
	if g := p.report.Growth; g != nil {
		title += fmt.Sprintf(", then %d more", len(g.Added))
	}
	return title
}

func (p *picture) heading() {
	fmt.Fprintf(&p.out, `<text class="h1" x="48" y="66">%s</text>`+"\n", html.EscapeString(p.title()))
	fmt.Fprintf(&p.out, `<text class="h2 muted" x="48" y="94">consistent-hash ring, %d points a node</text>`+"\n", p.report.VirtualNodes)
}

// circle draws one arc for each run of points of a node. It begins at the point before.
func (p *picture) circle() {
	fmt.Fprintf(&p.out, `<circle class="groove" cx="%g" cy="%g" r="%g" stroke-width="%g"/>`+"\n", centerX, centerY, ringRadius, ringStroke)
	var (
		from    float64
		owner   ring.NodeID
		first   = true
		last    float64
		firstID ring.NodeID
	)
	for hash, node := range p.ring.Points() {
		at := turn(hash)
		if first {
			owner, firstID, first = node, node, false
		}
		// Thin arcs join the one before: 1000 nodes have 160,000.
		if node != owner && last-from >= minArc {
			p.arc(ringRadius, ringStroke, from, last, p.color[owner])
			from, owner = last, node
		} else if node != owner && last-from < minArc {
			owner = node
		}
		last = at
	}
	p.arc(ringRadius, ringStroke, from, last, p.color[owner])
	p.arc(ringRadius, ringStroke, last, 1, p.color[firstID]) // Past the last point.
}

func turn(hash uint32) float64 { return float64(hash) / (1 << 32) }

// arc strokes shares of the circle, clockwise from the top.
func (p *picture) arc(radius, width, from, to float64, color string) {
	if to <= from {
		return
	}
	if to-from > 0.9999 {
		fmt.Fprintf(&p.out, `<circle cx="%g" cy="%g" r="%g" stroke="%s" stroke-width="%g" fill="none"/>`+"\n", centerX, centerY, radius, color, width)
		return
	}
	large := 0
	if to-from > 0.5 {
		large = 1
	}
	x1, y1 := spot(radius, from-0.0002) // No seams.
	x2, y2 := spot(radius, to)
	fmt.Fprintf(&p.out, `<path d="M%.2f %.2fA%g %g 0 %d 1 %.2f %.2f" stroke="%s" stroke-width="%g" fill="none"/>`+"\n",
		x1, y1, radius, radius, large, x2, y2, color, width)
}

func spot(radius, share float64) (x, y float64) {
	sin, cos := math.Sincos(2 * math.Pi * share)
	return centerX + radius*sin, centerY - radius*cos
}

// dots draws the rooms at their places.
func (p *picture) dots() {
	step := max(1, (len(p.report.rooms)+maxDots-1)/maxDots)
	for i := 0; i < len(p.report.rooms); i += step {
		room := p.report.rooms[i]
		owner, _ := p.ring.Owner(room)
		depth := math.Mod(float64(i/step)*0.618034, 1)
		x, y := spot(ringRadius-ringStroke/2-12-52*depth, turn(ring.Position(room)))
		was, _ := p.report.before.Owner(room)
		faint := ""
		if p.report.Growth != nil && was == owner {
			faint = ` opacity="0.35"` // What moved stands in front.
		}
		fmt.Fprintf(&p.out, `<circle cx="%.1f" cy="%.1f" r="2.2" fill="%s"%s/>`+"\n", x, y, p.color[owner], faint)
	}
}

// moved draws what changed owner.
func (p *picture) moved() {
	if p.report.Growth == nil {
		return
	}
	fmt.Fprintf(&p.out, `<circle class="groove" cx="%g" cy="%g" r="%g" stroke-width="7"/>`+"\n", centerX, centerY, movedRadius)
	var last float64
	for hash, node := range p.ring.Points() {
		at := turn(hash)
		if slices.Contains(p.report.Growth.Added, node) && at-last >= minArc {
			p.arc(movedRadius, 7, last, at, p.color[node])
		}
		last = at
	}
}

// hub writes the main figure.
func (p *picture) hub() {
	figure, caption := fmt.Sprintf("%.2f", p.shown.MaxOverMean), "busiest node / mean"
	if g := p.report.Growth; g != nil {
		figure, caption = fmt.Sprintf("%.1f %%", 100*g.RemapShare), "of the rooms moved"
	}
	fmt.Fprintf(&p.out, `<text class="big mid" x="%g" y="%g">%s</text>`+"\n", centerX, centerY+8, figure)
	fmt.Fprintf(&p.out, `<text class="cap muted mid" x="%g" y="%g">%s</text>`+"\n", centerX, centerY+32, caption)
}
