package operator

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	// freshFor is how long an answer of the nodes serves all who ask.
	freshFor = 2 * time.Second
	// MaxPage bounds the rooms of one answer.
	MaxPage = 200
)

// Room is one row of the list.
type Room struct {
	Room                ring.RoomID `json:"room"`
	Node                ring.NodeID `json:"node"`
	People              uint32      `json:"people"`
	Connected           uint32      `json:"connected"`
	EgressBitsPerSecond uint64      `json:"egressBitsPerSecond"`
	PacketsForwarded    uint64      `json:"packetsForwarded"`
	PacketsDropped      uint64      `json:"packetsDropped"`
	// Branches are the nodes that carry some of the room's people beside Node. All counts are of the whole room.
	Branches []ring.NodeID `json:"branches,omitempty"`
	// owner is not empty for a branch's part of a room.
	owner ring.NodeID
	// folded is Room in lower case, for the search.
	folded string
}

// RoomOf returns the row of a room that a media node told of.
func RoomOf(node ring.NodeID, h *control.HeldRoom) Room {
	people, connected := h.GetPeople(), h.GetConnected()
	// An older node sends the peers, and does not count them.
	if people == 0 {
		people = uint32(min(len(h.GetPeers()), 1<<20))
		for _, p := range h.GetPeers() {
			if p.GetConnected() {
				connected++
			}
		}
	}
	return Room{
		Room: ring.RoomID(h.GetRoom()), Node: node, People: people, Connected: connected, EgressBitsPerSecond: h.GetEgressBitsPerSecond(),
		PacketsForwarded: h.GetPacketsForwarded(), PacketsDropped: h.GetPacketsDropped(), owner: ring.NodeID(h.GetOwner()),
	}
}

// Joined makes one row of a room's owner and its branches. A branch whose owner did not answer is left out.
func Joined(rooms []Room) []Room {
	type part struct {
		room  ring.RoomID
		owner ring.NodeID
	}
	whole, at := make([]Room, 0, len(rooms)), map[part]int{}
	for _, r := range rooms {
		if r.owner == "" {
			at[part{r.Room, r.Node}] = len(whole)
			whole = append(whole, r)
		}
	}
	for _, r := range rooms {
		i, known := at[part{r.Room, r.owner}]
		if r.owner == "" || !known {
			continue
		}
		w := &whole[i]
		w.People, w.Connected, w.EgressBitsPerSecond = w.People+r.People, w.Connected+r.Connected, w.EgressBitsPerSecond+r.EgressBitsPerSecond
		w.PacketsForwarded, w.PacketsDropped = w.PacketsForwarded+r.PacketsForwarded, w.PacketsDropped+r.PacketsDropped
		w.Branches = append(w.Branches, r.Node)
		slices.Sort(w.Branches)
	}
	return whole
}

// Question selects a page of the list.
type Question struct {
	// Search is a part of the room's or of the node's name, in any case; empty selects all.
	Search string
	// By is the column.
	By Column
	// Ascending puts the lowest first.
	Ascending bool
	// Offset is the first row, and Limit how many, at most MaxPage.
	Offset, Limit int
}

// Column is what the list is sorted by.
type Column string

// The columns.
const (
	ByRoom    Column = "room"
	ByNode    Column = "node"
	ByPeople  Column = "people"
	ByEgress  Column = "egress"
	ByDropped Column = "dropped"
)

// Valid reports whether there is such a column.
func (c Column) Valid() bool {
	switch c {
	case ByRoom, ByNode, ByPeople, ByEgress, ByDropped:
		return true
	}
	return false
}

func (c Column) compare(a, b Room) int {
	switch c {
	case ByNode:
		return cmp.Compare(a.Node, b.Node)
	case ByPeople:
		return cmp.Compare(a.People, b.People)
	case ByEgress:
		return cmp.Compare(a.EgressBitsPerSecond, b.EgressBitsPerSecond)
	case ByDropped:
		return cmp.Compare(a.PacketsDropped, b.PacketsDropped)
	case ByRoom:
	}
	return cmp.Compare(a.Room, b.Room)
}

// Page is one answer.
type Page struct {
	Rooms []Room `json:"rooms"`
	// Found is how many rooms the search selects, and Total how many there are.
	Found int `json:"found"`
	Total int `json:"total"`
	// At is when the media nodes were asked.
	At time.Time `json:"at"`
	// Unreachable nodes did not answer. Their rooms are not in the list.
	Unreachable []ring.NodeID `json:"unreachable"`
}

// Ask returns every room of every media node that answers.
type Ask func(ctx context.Context) (rooms []Room, unreachable []ring.NodeID)

// Rooms lists the rooms of the cluster. However many operators look, the media nodes are asked once in two seconds, and not at all while
// nobody looks.
type Rooms struct {
	// asking is held while the nodes are asked.
	asking      sync.Mutex
	at          time.Time
	rooms       []Room
	unreachable []ring.NodeID
	// sorted is the column in whose order rooms are, the lowest first; empty: none.
	sorted Column
}

func (r *Room) matches(search string) bool {
	on := func(n ring.NodeID) bool { return strings.Contains(strings.ToLower(string(n)), search) }
	return strings.Contains(r.folded, search) || on(r.Node) || slices.ContainsFunc(r.Branches, on)
}

// Page answers a question.
func (r *Rooms) Page(ctx context.Context, q Question, ask Ask) Page {
	r.asking.Lock()
	defer r.asking.Unlock()
	if time.Since(r.at) > freshFor {
		r.rooms, r.unreachable = ask(ctx)
		r.rooms = Joined(r.rooms)
		r.at, r.sorted = time.Now(), ""
		for i := range r.rooms {
			r.rooms[i].folded = strings.ToLower(string(r.rooms[i].Room))
		}
	}
	if r.sorted != q.By {
		slices.SortFunc(r.rooms, func(a, b Room) int {
			return cmp.Or(q.By.compare(a, b), cmp.Compare(a.Room, b.Room), cmp.Compare(a.Node, b.Node))
		})
		r.sorted = q.By
	}
	page := Page{Rooms: []Room{}, Total: len(r.rooms), At: r.at.UTC(), Unreachable: r.unreachable}
	search := strings.ToLower(q.Search)
	for i := range r.rooms {
		room := &r.rooms[i]
		if !q.Ascending {
			room = &r.rooms[len(r.rooms)-1-i]
		}
		if search != "" && !room.matches(search) {
			continue
		}
		if page.Found >= q.Offset && len(page.Rooms) < q.Limit {
			page.Rooms = append(page.Rooms, *room)
		}
		page.Found++
	}
	return page
}
