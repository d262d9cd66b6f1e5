// Package replica has the rosters of rooms, as media nodes told them to this signaling node.
//
// Every session hears of every change of its room's roster. The first one that does makes the next Roster, and the others take it over: a
// change costs a room once, and not once for each of its people. A Roster never changes, so a session that reads slowly keeps an older one.
// It knows neither sessions nor sockets. Begin with Rosters.
package replica

import (
	"bytes"
	"runtime"
	"sync"
	"weak"

	"github.com/holdfast-rtc/holdfast/control"
)

// A session that is so many events behind the first one makes its rosters by itself.
const kept = 32

// Rosters has the rooms of one signaling node. Its methods may be called concurrently.
type Rosters struct {
	mu   sync.Mutex
	runs map[uint64]weak.Pointer[Run] // guarded by mu
}

// New returns Rosters of no room.
func New() *Rosters { return &Rosters{runs: map[uint64]weak.Pointer[Run]{}} }

// Run is a room as one process of a media node opened it; see control.Attached. It is forgotten when no session holds it. A nil Run
// shares nothing.
type Run struct {
	mu   sync.Mutex
	told [kept]*Told // by number; guarded by mu
}

// Told is what a media node told at one number.
type Told struct {
	Seq     uint64
	Roster  *Roster
	Changes []*control.RosterChange

	encoded []byte // of Changes

	mu     sync.Mutex
	frames map[any][][]byte // guarded by mu
}

// Run returns the run of an id, which is nil for 0.
func (r *Rosters) Run(id uint64) *Run {
	if id == 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.runs[id].Value(); known != nil {
		return known
	}
	run := &Run{}
	r.runs[id] = weak.Make(run)
	runtime.AddCleanup(run, r.forget, id)
	return run
}

func (r *Rosters) forget(id uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.runs[id].Value() == nil { // else it has come back
		delete(r.runs, id)
	}
}

// Begin returns the roster that a stream began with, at a number.
func (u *Run) Begin(seq uint64, peers []*control.Peer) *Roster {
	if u == nil {
		return Of(peers)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	place := &u.told[seq%kept]
	if *place == nil || (*place).Seq < seq {
		*place = &Told{Seq: seq, Roster: Of(peers)}
	}
	if (*place).Seq > seq {
		return Of(peers)
	}
	return (*place).Roster
}

// Change returns what encoded control.RosterChanges, up to a number, make of a roster that the media node told earlier. Sessions at a branch
// of the room share with those at its owner what both nodes told alike.
func (u *Run) Change(from *Roster, seq uint64, encoded []byte) (*Told, error) {
	if u == nil {
		return change(from, seq, encoded)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	place := &u.told[seq%kept]
	if *place != nil && (*place).Seq == seq && (*place).Changes != nil && bytes.Equal((*place).encoded, encoded) {
		return *place, nil
	}
	next, err := change(from, seq, encoded)
	if err == nil && (*place == nil || (*place).Seq <= seq) {
		*place = next
	}
	return next, err
}

func change(from *Roster, seq uint64, encoded []byte) (*Told, error) {
	changes, err := control.DecodeRosterChanges(encoded)
	if err != nil {
		return nil, err
	}
	return &Told{Seq: seq, Roster: from.Change(changes...), Changes: changes, encoded: encoded}, nil
}

// Frames returns what encode returned for the first session with the same key.
func (t *Told) Frames(key any, encode func() [][]byte) [][]byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	frames, ok := t.frames[key]
	if !ok {
		frames = encode()
		if t.frames == nil {
			t.frames = map[any][][]byte{}
		}
		t.frames[key] = frames
	}
	return frames
}
