package webhook

import (
	"encoding/json"
	"fmt"
	"time"
)

// The messages as receivers see them: LiveKit's WebhookEvent in protobuf's JSON form, in which 64-bit numbers are strings and
// zero values are left out. Fields that LiveKit does not have are Holdfast's own; LiveKit's libraries skip them.
type (
	message struct {
		Event       Kind         `json:"event"`
		Room        *room        `json:"room,omitempty"`
		Participant *participant `json:"participant,omitempty"`
		Track       *track       `json:"track,omitempty"`
		ID          string       `json:"id"`
		CreatedAt   int64        `json:"createdAt,string"`
		Holdfast    *own         `json:"holdfast,omitempty"`
	}
	room struct {
		SID             string `json:"sid"`
		Name            string `json:"name"`
		CreationTime    int64  `json:"creationTime,string"`
		CreationTimeMs  int64  `json:"creationTimeMs,string"`
		NumParticipants int    `json:"numParticipants,omitempty"`
	}
	participant struct {
		SID        string      `json:"sid"`
		Identity   string      `json:"identity"`
		Name       string      `json:"name,omitempty"`
		State      string      `json:"state"`
		JoinedAt   int64       `json:"joinedAt,string"`
		JoinedAtMs int64       `json:"joinedAtMs,string"`
		Permission *permission `json:"permission,omitempty"`
	}
	permission struct {
		Hidden bool `json:"hidden"`
	}
	track struct {
		SID    string `json:"sid"`
		Type   string `json:"type,omitempty"`
		Source string `json:"source"`
	}
	own struct {
		Node  string `json:"node,omitempty"`
		From  string `json:"from,omitempty"`
		To    string `json:"to,omitempty"`
		Cause string `json:"cause,omitempty"`
	}
)

// Body returns the message for receivers.
func (f *Fact) Body() ([]byte, error) {
	m := message{Event: f.Kind, ID: f.ID(), CreatedAt: f.At.Unix()}
	if f.Room != "" {
		m.Room = &room{SID: f.SID, Name: string(f.Room), CreationTime: f.Began.Unix(), CreationTimeMs: f.Began.UnixMilli(), NumParticipants: max(f.People, 0)}
	}
	if f.Peer.ID != "" {
		m.Participant = &participant{
			SID: "PA_" + f.Peer.ID, Identity: f.Peer.Identity, Name: f.Peer.Name, State: "ACTIVE",
			JoinedAt: f.Peer.Joined.Unix(), JoinedAtMs: f.Peer.Joined.UnixMilli(),
		}
		if f.Kind == ParticipantLeft {
			m.Participant.State = "DISCONNECTED"
		}
		if f.Peer.Hidden {
			m.Participant.Permission = &permission{Hidden: true}
		}
	}
	if f.Track.Source != "" {
		m.Track = &track{SID: f.trackSID(), Source: f.Track.Source}
		// AUDIO is the zero value, which is left out.
		if f.Track.Source == Camera || f.Track.Source == Screen {
			m.Track.Type = "VIDEO"
		}
	}
	switch f.Kind {
	case NodeDown:
		m.Holdfast = &own{Node: string(f.From), Cause: f.Cause}
	case RoomRehomed:
		m.Holdfast = &own{From: string(f.From), To: string(f.To), Cause: f.Cause}
	case RoomStarted, RoomFinished, ParticipantJoined, ParticipantLeft, TrackPublished, TrackUnpublished:
	}
	body, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", f.Kind, err)
	}
	return body, nil
}

// age is how old the fact is, by the store's clock in At and this node's in now.
func (f *Fact) age(now time.Time) time.Duration { return now.Sub(f.At) }
