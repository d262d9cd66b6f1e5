package top

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/internal/nodelist"
)

// Picture is the cluster at one moment, as one signaling node sees it.
type Picture struct {
	Overview Overview `json:"overview"`
	Nodes    []Node   `json:"nodes"`
	Rooms    Rooms    `json:"rooms"`
	// Happened are the last lines of what happened, the oldest first.
	Happened []events.Line `json:"-"`
}

// Overview is the answer of GET /overview.
type Overview struct {
	Node                 string    `json:"node"`
	Version              string    `json:"version"`
	At                   time.Time `json:"at"`
	Rooms                uint64    `json:"rooms"`
	Peers                uint64    `json:"peers"`
	Sockets              uint64    `json:"sockets"`
	Waiting              uint64    `json:"waiting"`
	EgressBitsPerSecond  uint64    `json:"egressBitsPerSecond"`
	CeilingBitsPerSecond uint64    `json:"ceilingBitsPerSecond"`
	Online               *int64    `json:"online,omitempty"`
	StoreMillis          *float64  `json:"storeMs,omitempty"`
}

// Node is a node of GET /nodes, with its loads of GET /loads.
type Node struct {
	nodelist.Node
	// Loads are percent of the tighter ceiling, the oldest first; -1: it was not there.
	Loads []int16 `json:"loads,omitempty"`
}

// load is the share of the tighter ceiling. It is negative if there is none.
func (n *Node) load() float64 {
	load := -1.0
	for _, pair := range [][2]uint64{{n.EgressBitsPerSecond, n.CeilingBitsPerSecond}, {n.EgressPacketsPerSecond, n.CeilingPacketsPerSecond}} {
		if pair[1] > 0 {
			load = max(load, float64(pair[0])/float64(pair[1]))
		}
	}
	return load
}

// Rooms is a page of GET /room-list.
type Rooms struct {
	Rooms []Room `json:"rooms"`
	Found int    `json:"found"`
	Total int    `json:"total"`
	// Missing says that the list did not come.
	Missing bool `json:"missing,omitempty"`
	// Unreachable nodes did not answer.
	Unreachable []string `json:"unreachable"`
}

// Room is a row of that page.
type Room struct {
	Room                string   `json:"room"`
	Node                string   `json:"node"`
	Branches            []string `json:"branches"` // nodes that carry some of the people, too
	People              uint32   `json:"people"`
	Connected           uint32   `json:"connected"`
	EgressBitsPerSecond uint64   `json:"egressBitsPerSecond"`
	PacketsDropped      uint64   `json:"packetsDropped"`
}

// on names the room's node, and how many branches there are.
func (r Room) on() string {
	if len(r.Branches) == 0 {
		return r.Node
	}
	return fmt.Sprintf("%s +%d", r.Node, len(r.Branches))
}

// question is which rooms to show.
type question struct {
	sort          string
	offset, limit int
}

func usualQuestion() question { return question{sort: sorts()[0], limit: 50} }

// sorts are the API's names of columns, in the order in which a key goes through them.
func sorts() []string { return []string{"egress", "people", "dropped", "room", "node"} }

const (
	past          = 15 * time.Minute // of events, at the start
	linesKept     = 200
	pagesAtOnce   = 10  // of events
	nodesWithLoad = 200 // the API tells the loads of that many at once
)

// feed asks for pictures. One goroutine at a time may use it.
type feed struct {
	ask    Ask
	after  string // the last event that was read
	merger events.Merger
	lines  []events.Line
}

func newFeed(ask Ask) *feed { return &feed{ask: ask} }

// next asks for a picture. Without the list of rooms or events, which may fail while the store or a media node is away, it has the others.
func (f *feed) next(ctx context.Context, q question) (Picture, error) {
	var p Picture
	if err := f.get(ctx, "overview", nil, &p.Overview); err != nil {
		return p, err
	}
	var answer nodelist.Answer
	if err := f.get(ctx, "nodes", nil, &answer); err != nil {
		return p, err
	}
	for _, n := range answer.Nodes {
		p.Nodes = append(p.Nodes, Node{Node: n})
	}
	slices.SortStableFunc(p.Nodes, byImportance)
	f.addLoads(ctx, p.Nodes)
	query := url.Values{"sort": {q.sort}, "offset": {strconv.Itoa(q.offset)}, "limit": {strconv.Itoa(q.limit)}}
	if q.sort == "room" || q.sort == "node" {
		query.Set("order", "asc")
	}
	if err := f.get(ctx, "room-list", query, &p.Rooms); err != nil {
		p.Rooms = Rooms{Missing: true}
	}
	f.readEvents(ctx)
	p.Happened = slices.Clone(f.lines)
	return p, nil
}

// byImportance puts media nodes first, and nodes that are gone last.
func byImportance(a, b Node) int {
	rank := func(n Node) int {
		switch {
		case n.Gone():
			return 2
		case n.Signaling():
			return 1
		default:
			return 0
		}
	}
	if order := rank(a) - rank(b); order != 0 {
		return order
	}
	if order := len(a.Name) - len(b.Name); order != 0 { // sfu-10 after sfu-9
		return order
	}
	return strings.Compare(a.Name, b.Name)
}

func (f *feed) addLoads(ctx context.Context, nodes []Node) {
	var names []string
	for _, n := range nodes {
		if !n.Signaling() && !n.Gone() && len(names) < nodesWithLoad {
			names = append(names, n.Name)
		}
	}
	var answer struct {
		Loads map[string][]int16 `json:"loads"`
	}
	if len(names) == 0 || f.get(ctx, "loads", url.Values{"node": names}, &answer) != nil {
		return
	}
	for i := range nodes {
		nodes[i].Loads = answer.Loads[nodes[i].Name]
	}
}

// readEvents adds what happened since the last time.
func (f *feed) readEvents(ctx context.Context) {
	query := url.Values{"after": {f.after}}
	if f.after == "" {
		query = url.Values{"since": {past.String()}}
	}
	for range pagesAtOnce {
		var page struct {
			Events []events.Event `json:"events"`
			Next   string         `json:"next"`
			More   bool           `json:"more"`
		}
		if f.get(ctx, "events", query, &page) != nil {
			break
		}
		for _, e := range page.Events {
			now := time.Now()
			if f.after == "" { // It is long over, so nothing of it is waited for.
				now = e.At
			}
			f.add(f.merger.Add(e, now))
		}
		if query = (url.Values{"after": {page.Next}}); page.Next == "" {
			break
		}
		if !page.More {
			f.after = page.Next
			break
		}
	}
	f.add(f.merger.Due(time.Now()))
}

func (f *feed) add(lines []events.Line) {
	f.lines = append(f.lines, lines...)
	slices.SortStableFunc(f.lines, func(a, b events.Line) int { return a.At.Compare(b.At) })
	f.lines = f.lines[max(0, len(f.lines)-linesKept):]
}

func (f *feed) get(ctx context.Context, path string, query url.Values, into any) error {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	body, err := f.ask(ctx, path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("decode the answer of %s: %w", path, err)
	}
	return nil
}
