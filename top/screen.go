package top

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"

	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/internal/tty"
)

// screen draws pictures as rows of text. It has no state.
type screen struct {
	paint func(style tty.Style, text string) string
	// sorted is the column that the rooms are sorted by.
	sorted string
	// narrow leaves out what does not fit into 80 columns.
	narrow bool
}

const (
	barWidth   = 10
	sparkWidth = 18
)

// names is the width of a column of nodes.
func (s screen) names() int {
	if s.narrow {
		return 12
	}
	return 20
}

// last is the width of the column of the last 15 minutes, with the space before it.
func (s screen) last() int {
	if s.narrow {
		return 0
	}
	return sparkWidth + 2
}

// head is the whole cluster in two rows.
func (s screen) head(o Overview) []string {
	store := s.paint(tty.Red, "the store does not answer")
	if o.StoreMillis != nil {
		store = fmt.Sprintf("store %.1f ms", *o.StoreMillis)
	}
	return []string{
		s.paint(tty.Bold, "Holdfast") + fmt.Sprintf("  %s  as %s sees it, version %s", o.At.Local().Format("15:04:05"), visible(o.Node), visible(o.Version)),
		fmt.Sprintf("%s  %s  %s  %d waiting  %s%s  ", count(o.Rooms, "room", "rooms"), count(o.Peers, "person", "people"), count(o.Sockets, "socket", "sockets"), o.Waiting,
			rate(o.EgressBitsPerSecond), s.ofAll(o)) + store,
	}
}

func (s screen) ofAll(o Overview) string {
	share := percent(ratio(o.EgressBitsPerSecond, o.CeilingBitsPerSecond))
	if s.narrow {
		return " (" + share + ")"
	}
	return " of " + rate(o.CeilingBitsPerSecond) + " (" + share + ")"
}

// nodes are a heading, and a row for each node.
func (s screen) nodes(nodes []Node) []string {
	last := ""
	if !s.narrow {
		last = fmt.Sprintf("  %-*s", sparkWidth, "LAST 15 MINUTES")
	}
	rows := []string{s.paint(tty.Dim, fmt.Sprintf("%-*s  %-11s  %-*s%s  %5s  %6s  %7s", s.names(), "NODE", "STATE", barWidth+6, "LOAD", last, "ROOMS", "PEOPLE", "SOCKETS"))}
	for i := range nodes {
		rows = append(rows, s.node(&nodes[i]))
	}
	return rows
}

func (s screen) node(n *Node) string {
	word := n.Condition()
	style := tty.Green
	switch word {
	case "up":
	case "dead":
		style = tty.Red
	case "left":
		style = tty.Dim
	default:
		style = tty.Yellow
	}
	row := cell(n.Name, s.names()) + "  " + s.paint(style, cell(word, 11)) + "  "
	if n.Gone() {
		text := n.At.Local().Format("15:04:05")
		if n.Cause != "" {
			text += "  " + visible(n.Cause)
		}
		return row + s.paint(tty.Dim, text)
	}
	load, rooms, people, sockets := strings.Repeat(" ", barWidth+6+s.last()), "-", "-", "-"
	if n.Signaling() {
		sockets = fmt.Sprint(n.Sockets)
	} else {
		rooms, people = fmt.Sprint(n.Rooms), fmt.Sprint(n.Peers)
		load = s.paint(heat(n.load()), bar(n.load())) + fmt.Sprintf(" %5s", percent(n.load()))
		if !s.narrow {
			load += "  " + s.paint(tty.Dim, spark(n.Loads))
		}
	}
	return row + load + fmt.Sprintf("  %5s  %6s  %7s", rooms, people, sockets)
}

func heat(load float64) tty.Style {
	switch {
	case load >= 0.9:
		return tty.Red
	case load >= 0.7:
		return tty.Yellow
	default:
		return tty.Green
	}
}

// bar is a share as blocks of an eighth of a column.
func bar(share float64) string {
	eighths := int(math.Round(min(max(share, 0), 1) * barWidth * 8))
	full := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		full += string([]rune(" ▏▎▍▌▋▊▉")[rest])
	}
	return full + strings.Repeat("·", barWidth-len([]rune(full)))
}

// spark draws loads in percent; each column is the highest of its part of the time.
func spark(loads []int16) string {
	var b strings.Builder
	for column := range sparkWidth {
		highest := int16(-1)
		for _, load := range loads[column*len(loads)/sparkWidth : (column+1)*len(loads)/sparkWidth] {
			highest = max(highest, load)
		}
		if highest < 0 {
			b.WriteRune(' ')
			continue
		}
		b.WriteRune([]rune("▁▂▃▄▅▆▇█")[min(highest, 99)*8/100])
	}
	return b.String()
}

// rooms are a heading, and a row for each room. The ceilings are the nodes'.
func (s screen) rooms(r Rooms, nodes []Node) []string {
	ceilings := map[string]uint64{}
	for _, n := range nodes {
		ceilings[n.Name] = n.CeilingBitsPerSecond
	}
	mark := func(column, title string) string {
		if column == s.sorted {
			return title + "*"
		}
		return title
	}
	width := 32
	if s.narrow {
		width = 22
	}
	rows := []string{s.paint(tty.Dim, fmt.Sprintf("%-*s  %-*s  %8s  %13s  %6s  %9s", width, mark("room", "ROOM"), s.names(), mark("node", "NODE"),
		mark("people", "PEOPLE"), mark("egress", "SENT"), "SHARE", mark("dropped", "DROPPED")))}
	for _, room := range r.Rooms {
		people := fmt.Sprint(room.People)
		if room.Connected < room.People {
			people = fmt.Sprintf("%d of %d", room.Connected, room.People)
		}
		rows = append(rows, fmt.Sprintf("%s  %s  %8s  %13s  %6s  %9d", cell(room.Room, width), cell(room.on(), s.names()), people,
			rate(room.EgressBitsPerSecond), percent(ratio(room.EgressBitsPerSecond, ceilings[room.Node])), room.PacketsDropped))
	}
	if len(r.Unreachable) > 0 {
		rows = append(rows, s.paint(tty.Yellow, "No answer from "+visible(strings.Join(r.Unreachable, ", "))+"."))
	}
	switch {
	case r.Missing:
		rows = append(rows, s.paint(tty.Yellow, "The list of rooms did not come."))
	case len(r.Rooms) == 0 && len(r.Unreachable) == 0:
		rows = append(rows, "No room is open.")
	}
	return rows
}

func (s screen) happened(lines []events.Line) []string {
	var rows []string
	for _, line := range lines {
		text := line.Show(s.paint)
		if s.narrow {
			text = line.Brief(s.paint)
		}
		rows = append(rows, s.paint(tty.Dim, stamp(line.At))+"  "+text)
	}
	return rows
}

// cell is a text that somebody else chose, in a column.
func cell(text string, width int) string {
	runes := []rune(visible(text))
	if len(runes) > width {
		runes = append(runes[:width-1], '…')
	}
	return string(runes) + strings.Repeat(" ", width-len(runes))
}

func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

func rate(bits uint64) string {
	if bits >= 1e9 {
		return fmt.Sprintf("%.1f Gbit/s", float64(bits)/1e9)
	}
	return fmt.Sprintf("%.1f Mbit/s", float64(bits)/1e6)
}

func count(n uint64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// ratio is negative if there is no ceiling.
func ratio(of, ceiling uint64) float64 {
	if ceiling == 0 {
		return -1
	}
	return float64(of) / float64(ceiling)
}

func percent(share float64) string {
	switch {
	case share < 0:
		return "-"
	case share < 0.1:
		return fmt.Sprintf("%.1f %%", 100*share)
	default:
		return fmt.Sprintf("%.0f %%", 100*share)
	}
}

// summary is the cluster in one row, for plain output.
func summary(p Picture) string {
	up, media := 0, 0
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.Role != "signaling" && n.State != "left" {
			if media++; n.Condition() == "up" {
				up++
			}
		}
	}
	o := p.Overview
	nodes := count(uint64(media), "media node", "media nodes") //nolint:gosec // a length
	return fmt.Sprintf("%d of %s up, %s, %s, %s (%s)", up, nodes, count(o.Rooms, "room", "rooms"), count(o.Peers, "person", "people"),
		rate(o.EgressBitsPerSecond), percent(ratio(o.EgressBitsPerSecond, o.CeilingBitsPerSecond)))
}

// stamp is the time of a picture.
func stamp(at time.Time) string { return at.Local().Format("15:04:05") }
