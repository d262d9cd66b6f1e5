package chaos

import (
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/peer"
)

// World is all that one trial showed from outside: the input of every verdict.
type World struct {
	Expect   Expect
	Asked    int // moves that an operator asked for, of one room each
	Faults   []Fault
	Until    time.Time // when the healing of the faults began
	Before   Look      // in the calm before the fault
	Between  []Look    // while it lasted
	After    Look      // when all was healed and settled
	Clients  []Client
	People   map[string][]string // who stays, by room
	Capped   string              // a room with a cap, for which somebody else waits
	Cap      int
	Full     Look // at it, when who waits would long have been let in
	Received []Receipt
	Pauses   []Pause // of every stream, while the fault lasted
	Log      []Entry // what nodes logged that matters here
	Percent  int     // of gossip that was to be lost then

	Lacking    string // what people had not got back when the rooms had long been due to move, and the faults were mended; empty = nothing
	LogUnknown string // why Log is not whole; empty = it is

	Letters     []Letter // written until the mending began, and not judged before
	LateLetters []string // what came again or after its successor

	Lasts time.Duration // the fault lasts at least so long, whatever has moved before
	Late  Look          // when people had been sent to the nodes that were cut off
}

// Expect is what a scenario does to rooms.
type Expect struct {
	Moves   bool // the rooms of the struck media nodes move
	Store   bool // the store, or a signaling node, is what is struck: no media may stop
	Stays   bool // a media node is hurt in a way that must move nothing and stop no media
	Smooth  bool // the rooms of the struck media node move, and its media goes on until they have
	Calm    bool // nothing is hurt
	All     bool // every media node is struck, one after the other: no room is spared
	Returns bool // the struck media nodes live on, and take new rooms when they can be reached again
}

// Fault is one thing that was done to one process.
type Fault struct {
	Node string          `json:"node"`
	Role devcluster.Role `json:"role"`
	What string          `json:"what"` // "killed", "frozen", "killed itself at rehome.before-swap"
	At   time.Time       `json:"at"`
	Seen bool            `json:"seen"` // it was confirmed that the process is dead, or that it took the signal
}

// Flow is one source of another at a client.
type Flow struct{ Room, Client, From, Source string }

// Receipt says whether a client got fresh media of another in the end.
type Receipt struct {
	Flow

	Fresh bool
}

// Pause is a client's longest time without one source.
type Pause struct {
	Flow

	Longest time.Duration
}

// Client is one person, and what it lived through since the fault.
type Client struct {
	Name    string
	Room    string
	Browser bool
	Moments []peer.Moment // a browser's streams have the name of the picture
	Epochs  []uint64      // the placements it was told of since the fault, in order
	// Streams counts those that it is to get again. With FewSlots not everybody is heard at a time: one sound counts, since
	// when the next comes depends on who speaks.
	Streams  int
	FewSlots bool
}

// logged returns the lines of one message since the fault.
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
	if w.Expect.Stays {
		return false
	}
	struck := w.struckSFU()
	return slices.ContainsFunc(w.Before.holders(room), func(h Held) bool { return slices.Contains(struck, h.Node) })
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
