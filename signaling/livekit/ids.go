package livekit

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/livekit/livekitpb"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// stream is one source of one peer: what LiveKit calls a track.
type stream struct {
	peer   wire.PeerID
	source wire.Source
}

// row is what the two protocols call a source. The letter stands in track ids.
type row struct {
	source wire.Source
	theirs livekitpb.TrackSource
	letter string
	audio  bool
}

func rows() []row {
	return []row{
		{wire.SourceMicrophone, livekitpb.TrackSource_MICROPHONE, "M", true},
		{wire.SourceCamera, livekitpb.TrackSource_CAMERA, "C", false},
		{wire.SourceScreen, livekitpb.TrackSource_SCREEN_SHARE, "S", false},
		{wire.SourceScreenAudio, livekitpb.TrackSource_SCREEN_SHARE_AUDIO, "A", true},
	}
}

func rowOf(source wire.Source) row {
	for _, r := range rows() {
		if r.source == source {
			return r
		}
	}
	return row{}
}

// Clients tell ids of participants and of tracks apart by these prefixes. The ids follow from the peer's, so that they are the same
// at every signaling node and after every move.
const (
	participantPrefix = "PA_"
	trackPrefix       = "TR_"
)

// ParticipantSID returns LiveKit's id of a peer.
func ParticipantSID(peer wire.PeerID) string { return participantPrefix + string(peer) }

// TrackSID returns LiveKit's id of a peer's source.
func TrackSID(peer wire.PeerID, source wire.Source) string {
	return trackPrefix + rowOf(source).letter + string(peer)
}

// ParseTrackSID returns the peer and the source of a track's id.
func ParseTrackSID(sid string) (peer wire.PeerID, source wire.Source, ok bool) {
	rest, ok := strings.CutPrefix(sid, trackPrefix)
	if !ok || len(rest) < 2 || len(rest) > wire.MaxPeerIDBytes {
		return "", "", false
	}
	for _, r := range rows() {
		if r.letter == rest[:1] {
			return wire.PeerID(rest[1:]), r.source, true
		}
	}
	return "", "", false
}

// RoomSID returns LiveKit's id of a room, which follows from its name.
func RoomSID(room ring.RoomID) string {
	sum := sha256.Sum256([]byte(room))
	return "RM_" + hex.EncodeToString(sum[:6])
}

func (s stream) sid() string { return TrackSID(s.peer, s.source) }
