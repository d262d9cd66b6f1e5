// Package events is the cluster's memory of what happened: nodes that came and died, rooms that opened, moved and closed,
// drains, and when the store was away. Nodes give facts to a Recorder, which writes them into the store's stream; operators
// read them from there, also after every process was replaced.
//
// It promises that a fact that several nodes report within a minute is kept once, that recording never waits for the store, and that what
// could not be kept is counted. It does not know Redis. An event names nodes, rooms, counts and who gave an order, and no other person.
//
// Begin with Event, then Recorder.
package events

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/ring"
)

// Kind says what happened.
type Kind string

// The kinds, in the order of docs/OPERATIONS.md.
const (
	// A process has joined. Version is its build.
	NodeUp Kind = "node_up"
	// A node has died. Cause is the evidence.
	NodeDown Kind = "node_down"
	// A boot that had been taken for dead is in the cluster again: its process was frozen, or cut off.
	NodeBack Kind = "node_back"
	// A node has left in good order.
	NodeLeft Kind = "node_left"
	// An operator ordered a drain.
	NodeDrains Kind = "node_drains"
	// A drain was taken back.
	NodeUndrains Kind = "node_undrains"
	// A room was opened on Node.
	RoomOpened Kind = "room_opened"
	// A room went To another node, because the node From is gone or must not be used. Cause is the reason.
	RoomRehomed Kind = "room_rehomed"
	// A room went From a healthy node To another one. Cause is the reason.
	RoomMoved Kind = "room_moved"
	// The clients of one signaling node have media again. Peers, Back and WorstGap say more. Without Peers, Back clients came later.
	RoomBack Kind = "room_back"
	// A room's node, Node, has To carry some of its people from now on. Cause is the reason.
	RoomSpread Kind = "room_spread"
	// A room's node, Node, takes the people back that From carries. Cause is the reason.
	RoomGathered Kind = "room_gathered"
	// Node carried some of a room's people, and holds the room now, in the place of From. Peers is how many people it had.
	BranchPromoted Kind = "branch_promoted"
	// Everybody has left a room.
	RoomClosed Kind = "room_closed"
	// These five are orders. By says who gave them, and Cause what became of a door.
	MoveOrdered   Kind = "move_ordered"
	PersonRemoved Kind = "person_removed"
	CallEnded     Kind = "call_ended"
	DoorChanged   Kind = "door_changed"
	NodeKilled    Kind = "node_killed"
	// StoreBack: the store answers Node again. Cause says how long it was silent.
	StoreBack Kind = "store_back"
	// WebhookLost: a receiver of webhooks did not get Peers facts of Room. Cause says which receiver and why.
	WebhookLost Kind = "webhook_lost"
	// LimitReached: Room, Node, or, without both, the cluster is at a limit. Cause says which one in words, and About is its name.
	LimitReached Kind = "limit_reached"
)

// Known reports whether this build has events of that kind.
func (k Kind) Known() bool {
	switch k {
	case NodeUp, NodeDown, NodeBack, NodeLeft, NodeDrains, NodeUndrains, RoomOpened, RoomRehomed, RoomMoved, RoomBack, RoomClosed, MoveOrdered, PersonRemoved, CallEnded,
		DoorChanged, NodeKilled, StoreBack, WebhookLost, LimitReached, RoomSpread, RoomGathered, BranchPromoted:
		return true
	default:
		return false
	}
}

// Event is one fact. Fields that a Kind does not need are zero.
type Event struct {
	// ID is given by the store, and events are in the order of their IDs. It is empty until the store has the event.
	ID string `json:"id,omitempty"`
	// At is when the store wrote it, by the store's clock.
	At   time.Time `json:"at,omitzero"`
	Kind Kind      `json:"kind"`
	// Node is the node that the event is about. For StoreBack and RoomBack it is the node that reports
	// it.
	Node ring.NodeID `json:"node,omitempty"`
	// Role is the role of Node.
	Role string      `json:"role,omitempty"`
	Room ring.RoomID `json:"room,omitempty"`
	From ring.NodeID `json:"from,omitempty"`
	To   ring.NodeID `json:"to,omitempty"`
	// Cause is evidence or a reason, in words.
	Cause string `json:"cause,omitempty"`
	// By is the identity of the operator or moderator who ordered it.
	By string `json:"by,omitempty"`
	// Version is the build of Node.
	Version string `json:"version,omitempty"`
	// Peers is how many clients the event concerned.
	Peers int `json:"peers,omitempty"`
	// Back is how many of them have media again.
	Back int `json:"back,omitempty"`
	// WorstGapMillis is the longest time without media, in milliseconds, as the clients measured it.
	WorstGapMillis int64 `json:"worstGapMs,omitempty"`
	// About tells two facts of one kind apart: a boot, or a fence. Reports that agree in Kind, Node, Room and About are one fact.
	About string `json:"about,omitempty"`
}

const (
	maxText   = 300  // bytes of each text
	maxStored = 4096 // bytes of an encoded event
)

var (
	errTooLong  = errors.New("an event of more than 4096 bytes")
	errUnnamed  = errors.New("an event without a kind")
	errNoCursor = errors.New("an event's id is milliseconds, a hyphen and a number, such as 1795783230243-0")
)

// Same returns what the reports of one fact have in common.
func (e Event) Same() string {
	if e.Kind == LimitReached && e.Room != "" {
		// A full room may move to another node and still be full.
		e.Node = ""
	}
	return strings.Join([]string{string(e.Kind), strconv.Quote(string(e.Node)), strconv.Quote(string(e.Room)), strconv.Quote(e.About)}, "/")
}

// SameFor is how long further reports of the fact are left out: nodes notice it seconds apart, and a later one is another fact. A fact
// that has a fence never happens again.
func (e Event) SameFor() time.Duration {
	switch e.Kind {
	case NodeUp, NodeDown, NodeBack, NodeLeft, NodeDrains, NodeUndrains, StoreBack:
		return time.Minute
	case LimitReached:
		return limitQuiet
	case RoomOpened, RoomRehomed, RoomMoved, RoomBack, RoomClosed, MoveOrdered, PersonRemoved, CallEnded, DoorChanged, NodeKilled, WebhookLost,
		RoomSpread, RoomGathered, BranchPromoted:
	}
	return time.Hour
}

// limitQuiet is how long no second event tells of the same limit.
const limitQuiet = 10 * time.Minute

// Encode returns the event as the store keeps it: JSON without ID and At, which the store gives. Long texts are cut.
func (e Event) Encode() (string, error) {
	e.ID, e.At = "", time.Time{}
	for _, text := range []*string{&e.Cause, &e.Version, &e.About, &e.By} {
		*text = strings.ToValidUTF8((*text)[:min(len(*text), maxText)], "")
	}
	text, err := json.Marshal(e)
	if err != nil {
		return "", fmt.Errorf("encode an event: %w", err)
	}
	if len(text) > maxStored {
		return "", errTooLong
	}
	return string(text), nil
}

// Parse reads what Encode wrote. Unknown fields, of a later version, are left out.
func Parse(id, text string) (Event, error) {
	at, err := TimeOf(id)
	if err != nil {
		return Event{}, err
	}
	if len(text) > maxStored {
		return Event{}, errTooLong
	}
	var e Event
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		return Event{}, fmt.Errorf("event %s: %w", id, err)
	}
	if e.Kind == "" {
		return Event{}, errUnnamed
	}
	e.ID, e.At = id, at
	return e, nil
}

var idForm = regexp.MustCompile(`^[0-9]{1,15}-[0-9]{1,18}$`)

// TimeOf returns when the event with this id was written.
func TimeOf(id string) (time.Time, error) {
	if !idForm.MatchString(id) {
		return time.Time{}, fmt.Errorf("%w, not %.40q", errNoCursor, id)
	}
	millis, _, _ := strings.Cut(id, "-")
	ms, err := strconv.ParseInt(millis, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("event id %q: %w", id, err)
	}
	return time.UnixMilli(ms).UTC(), nil
}

// Before returns an ID that every event since t follows.
func Before(t time.Time) string { return fmt.Sprintf("%d-0", max(t.UnixMilli()-1, 0)) }

// Filter selects events. Zero fields select all.
type Filter struct {
	Room ring.RoomID
	// Node may be the event's Node, From or To.
	Node  ring.NodeID
	Kinds []Kind
}

// Selects reports whether the filter lets the event through.
func (f Filter) Selects(e Event) bool {
	if f.Room != "" && e.Room != f.Room {
		return false
	}
	if f.Node != "" && e.Node != f.Node && e.From != f.Node && e.To != f.Node {
		return false
	}
	return len(f.Kinds) == 0 || slices.Contains(f.Kinds, e.Kind)
}
