// Package webhook tells applications' servers by HTTP what happens in rooms: who came, who left, who publishes what, and which
// rooms began, ended or have another node. Its messages have the form of LiveKit's.
//
// Facts wait in the store, in the order of their rooms. One signaling node at a time sends them, the one with a lease; the next one
// continues where it stopped. The package promises that a receiver gets each fact at least once within an hour, those of a room in
// order, and a fact that comes twice with the same id. It does not know Redis or how bodies are signed.
//
// Begin with Fact, then Sender.
package webhook

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/ring"
)

// Kind is the name of an event, as receivers see it.
type Kind string

// The kinds. NodeDown and RoomRehomed are Holdfast's own, the others LiveKit's.
const (
	RoomStarted       Kind = "room_started"
	RoomFinished      Kind = "room_finished"
	ParticipantJoined Kind = "participant_joined"
	ParticipantLeft   Kind = "participant_left"
	TrackPublished    Kind = "track_published"
	TrackUnpublished  Kind = "track_unpublished"
	RoomRehomed       Kind = "room_rehomed"
	NodeDown          Kind = "node_down"
)

// Fact is one event that waits to be sent. Fields that a Kind does not need are zero.
type Fact struct {
	// Position is where the fact stands in its queue. Positions of a room grow by one.
	Position string
	Kind     Kind
	// At is by the store's clock.
	At   time.Time
	Room ring.RoomID
	// SID names one life of the room, from its opening to its end.
	SID   string
	Began time.Time
	// People is how many were in the room after the fact, without hidden ones.
	People int
	Peer   Peer
	Track  Track
	From   ring.NodeID
	To     ring.NodeID
	// Cause is evidence or a reason, in words.
	Cause string
	// About tells two facts of one kind apart: an epoch, or the ID of the cluster's event.
	About string
}

// Peer is the participant of a fact.
type Peer struct {
	ID       string
	Identity string
	Name     string
	Hidden   bool
	Joined   time.Time
}

// Track is what a peer publishes.
type Track struct {
	// Source is LiveKit's name of it, such as SCREEN_SHARE.
	Source string
	// Number tells the tracks of one peer apart.
	Number int
}

// The sources of a Track.
const (
	Camera      = "CAMERA"
	Microphone  = "MICROPHONE"
	Screen      = "SCREEN_SHARE"
	ScreenAudio = "SCREEN_SHARE_AUDIO"
)

var errNotAFact = errors.New("not a fact for webhooks")

// Read reads the fields of a fact in the store. A row is "<identity>\n<since in milliseconds> <name>", after another newline if
// the peer is hidden.
func Read(room ring.RoomID, position string, fields map[string]string) (Fact, error) {
	f := Fact{
		Position: position, Room: room, Kind: Kind(fields["kind"]), SID: fields["sid"], Cause: fields["cause"], About: fields["epoch"],
		From: ring.NodeID(fields["from"]), To: ring.NodeID(fields["to"]), Track: Track{Source: fields["source"]},
	}
	var faults [4]error
	f.At, faults[0] = millis(fields["at"])
	f.Began, faults[1] = millis(fields["began"])
	f.People, faults[2] = whole(fields["people"])
	if fields["number"] != "" {
		f.Track.Number, faults[3] = whole(fields["number"])
	}
	if err := errors.Join(faults[:]...); err != nil || f.Kind == "" {
		return Fact{}, fmt.Errorf("%w: room %s, position %.40q", errNotAFact, room, position)
	}
	if fields["peer"] == "" {
		return f, nil
	}
	row, hidden := strings.CutPrefix(fields["row"], "\n")
	identity, rest, _ := strings.Cut(row, "\n")
	since, name, ok := strings.Cut(rest, " ")
	joined, err := millis(since)
	if !ok || err != nil {
		return Fact{}, fmt.Errorf("%w: room %s, the row %.60q", errNotAFact, room, row)
	}
	f.Peer = Peer{ID: fields["peer"], Identity: identity, Name: name, Hidden: hidden, Joined: joined}
	return f, nil
}

func millis(text string) (time.Time, error) {
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, err
	}
	return time.UnixMilli(ms).UTC(), nil
}

func whole(text string) (int, error) { return strconv.Atoi(text) }

// ID is the same for the same fact, whoever sends it and however often.
func (f *Fact) ID() string {
	return "EV_" + digest(string(f.Kind), string(f.Room), f.SID, f.Peer.ID, f.Track.Source, strconv.Itoa(f.Track.Number), f.About)
}

// trackSID is the track's id in the server API and for clients of LiveKit: livekit.TrackSID.
func (f *Fact) trackSID() string {
	letter := map[string]string{Microphone: "M", Camera: "C", Screen: "S", ScreenAudio: "A"}[f.Track.Source]
	return "TR_" + letter + f.Peer.ID
}

func digest(parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	const shown = 12
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil)[:shown])
}
