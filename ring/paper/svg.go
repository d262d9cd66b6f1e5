package paper

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
)

//go:embed picture.svg
var pictureText string

// These are the measures that the code needs. The template picture.svg has the others.
const (
	firstRow  = 210
	rowHeight = 34
	barX      = 130.0
	barWidth  = 320.0
	// If there are more nodes than this, only the busiest and the least busy ones are drawn.
	maxRows = 13
)

// row is one node, or the gap between the busiest and the least busy.
type row struct {
	Y       int
	Name    string
	Rooms   string
	Percent string
	New     bool
	// Before is 0 for a node that had no rooms before.
	Width, Before float64
	// Between is the number of nodes for which the gap stands.
	Between int
}

// WriteSVG writes a self-contained picture in the reader's light or dark colors: a bar for each node, and, with growth, a
// tick for what it held before.
func (r Report) WriteSVG(w io.Writer) error {
	picture, err := template.New("picture").Parse(pictureText)
	if err != nil {
		return fmt.Errorf("parse the picture: %w", err)
	}
	shown, added := r.Before, 0
	figure, caption, ideal, moved := fmt.Sprintf("%.2f", r.Before.MaxOverMean), "busiest node / mean", "", ""
	title := fmt.Sprintf("%s on %s", count(r.Rooms, "room"), count(r.Nodes, "node"))
	if g := r.Growth; g != nil {
		shown, added = g.After, len(g.Added)
		figure, caption, ideal = percent(g.RemapShare), "of the rooms moved", percent(g.ExpectedShare)
		moved = thousands(g.Remapped) + " of " + thousands(r.Rooms)
		title += fmt.Sprintf(", then %d more", added)
	}
	most := 1
	for _, s := range slices.Concat(shown.Shares, r.Before.Shares) {
		most = max(most, s.Rooms)
	}
	// The busiest node of both rings has the full width, so that the bars can be compared.
	scale := func(rooms float64) float64 { return math.Round(10*barWidth*rooms/float64(most)) / 10 }
	var rows []row
	for _, s := range busiestAndLeast(shown.Shares) {
		one := row{Y: firstRow + rowHeight*len(rows), Name: shorten(string(s.Node)), Rooms: thousands(s.Rooms), Percent: percent(s.Share), Width: scale(float64(s.Rooms))}
		if s.Node == "" {
			one.Between = len(shown.Shares) - maxRows + 1
		}
		if at := slices.IndexFunc(r.Before.Shares, func(b Share) bool { return b.Node == s.Node }); at < 0 {
			one.New = true
		} else if added > 0 {
			one.Before = barX + scale(float64(r.Before.Shares[at].Rooms))
		}
		rows = append(rows, one)
	}
	end := firstRow + rowHeight*len(rows)
	return picture.Execute(w, map[string]any{
		"Report": r, "Shown": shown, "Title": title, "Figure": figure, "Caption": caption, "Ideal": ideal, "Moved": moved, "Rows": rows,
		"Spread": percent(shown.Spread), "Mean": barX + scale(float64(r.Rooms)/float64(len(shown.Shares))), "End": end, "Height": end + 110,
	})
}

// busiestAndLeast leaves out the middle of many nodes. A zero Share stands for those left out.
func busiestAndLeast(shares []Share) []Share {
	if len(shares) <= maxRows {
		return shares
	}
	sorted := slices.Clone(shares)
	slices.SortStableFunc(sorted, func(a, b Share) int { return b.Rooms - a.Rooms })
	half := maxRows / 2
	return slices.Concat(sorted[:half], []Share{{}}, sorted[len(sorted)-half:])
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

func percent(share float64) string {
	if share < 0.01 {
		return fmt.Sprintf("%.2f %%", 100*share)
	}
	return fmt.Sprintf("%.1f %%", 100*share)
}

func shorten(name string) string {
	if runes := []rune(name); len(runes) > 10 {
		// The end of the name is kept, because node names differ at the end.
		return string(runes[:3]) + "…" + string(runes[len(runes)-6:])
	}
	return name
}
