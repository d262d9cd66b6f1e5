package chaos

import (
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/peer"
)

// World is what one trial showed from outside: the input of every verdict.
type World struct {
	Expect   Expect
	Asked    int // moves of one room that an operator asked for
	Faults   []Fault
	Until    time.Time // when healing began
	Before   Look      // before the fault
	Between  []Look    // during the fault
	After    Look      // healed and settled
	Clients  []Client
	People   map[string][]string // who stays, by room
	Capped   string              // a full room, with somebody waiting
	Cap      int
	Line     []string // who waits for it
	Full     Look     // later, when the waiter would have been let in
	Received []Receipt
	Pauses   []Pause // of every stream, during the fault
	Log      []Entry // the entries that matter here
	Percent  int     // of gossip that was to be lost

	Lacking    string // what people had not got back when the faults were mended; empty = nothing
	LogUnknown string // why Log is not whole; empty = it is

	Letters     []Letter // written before the mending, not judged before
	LateLetters []string // repeated, or after a successor

	Newcomers []Newcomer // who came during the fault
	Alone     error      // who had no standby before the fault; nil: everybody had one, or nobody was to

	Ghosts   []string // who lost their signaling node and stayed away
	Haunting []string // those of them who are online in the end

	Watched time.Time // when the watch ended

	Lasts  time.Duration // least length of the fault, whatever has moved
	Spread *Spread       // the room on several nodes; nil without one

	Late Look // after people were sent to the nodes that were cut off
}

// Expect is what a scenario does to rooms.
type Expect struct {
	Moves   bool // the struck media nodes' rooms move
	Store   bool // the store or a signaling node is struck: no media may stop
	Links   bool // a link between two nodes of the large room is hurt: the branch's people get other places, and nobody and nothing else moves
	Stays   bool // the hurt media node must move nothing and stop no media
	Smooth  bool // like Moves, and media goes on until then
	Calm    bool // nothing is hurt
	All     bool // every media node is struck, one by one: no room is spared
	Joins   bool // people join meanwhile
	Ghosts  bool // people vanish meanwhile
	Forgets bool // the store forgets its pins: an owner may have to take a room back under a higher epoch
	Returns bool // the struck media nodes live on and take new rooms later
}

// Fault is one thing done to one process.
type Fault struct {
	Node string          `json:"node"`
	Role devcluster.Role `json:"role"`
	What string          `json:"what"` // "killed", "frozen", "killed itself at rehome.before-swap"
	At   time.Time       `json:"at"`
	Seen bool            `json:"seen"` // confirmed: the process is dead, or took the signal
}

// Flow is another's source at a client.
type Flow struct{ Room, Client, From, Source string }

// Receipt says whether a flow was fresh in the end.
type Receipt struct {
	Flow

	Fresh bool
}

// Pause is a flow's longest pause.
type Pause struct {
	Flow

	Longest time.Duration
}

// Client is one person's account since the fault.
type Client struct {
	Name    string
	Room    string
	Browser bool
	Refused string        // for good; empty: not so
	Moments []peer.Moment // a browser's streams have the name of the picture
	Epochs  []uint64      // the placements it was told of, in order
	// Streams counts those to come back. With FewSlots not everybody is heard at once: one audio stream counts.
	Streams  int
	FewSlots bool

	// Of rooms on several nodes.
	LongestGap     time.Duration // of sound of people at unhurt nodes
	LocalGap       time.Duration // of those of them at the client's own node
	KeyframesAsked int           // for one layer within a second, at most
	Others         int           // in the roster that the client was told
}

// logged returns the entries of one message since the fault.
func (w *World) logged(msg string) []Entry {
	return slices.DeleteFunc(slices.Clone(w.Log), func(e Entry) bool { return e.Msg != msg || e.Time.Before(w.first()) })
}

func (w *World) struckSFU() []string {
	var names []string
	for _, f := range w.Faults {
		if f.Role == devcluster.RoleSFU && !slices.Contains(names, f.Node) {
			names = append(names, f.Node)
		}
	}
	return names
}

func (w *World) first() time.Time {
	var at time.Time
	for _, f := range w.Faults {
		if at.IsZero() || f.At.Before(at) {
			at = f.At
		}
	}
	return at
}

func (w *World) struckRoom(room string) bool {
	if w.Expect.Stays || w.Expect.Links {
		return false
	}
	struck := w.struckSFU()
	return slices.ContainsFunc(w.Before.holders(room), func(h Held) bool { return slices.Contains(struck, h.Node) })
}

// struckClient reports whether a client was at a node that was hurt.
func (w *World) struckClient(c Client) bool {
	if w.Spread.is(c.Room) && !w.Expect.Stays {
		return slices.Contains(w.struckSFU(), w.Spread.At[c.Name])
	}
	return w.struckRoom(c.Room)
}

func (w *World) rooms() []string {
	var rooms []string
	for _, h := range w.Before.Held {
		if !slices.Contains(rooms, h.Room) {
			rooms = append(rooms, h.Room)
		}
	}
	slices.Sort(rooms)
	return rooms
}

func (w *World) healthyPause() time.Duration {
	longest := time.Duration(0)
	for _, p := range w.Pauses {
		if !w.struckRoom(p.Room) {
			longest = max(longest, p.Longest)
		}
	}
	return longest
}
