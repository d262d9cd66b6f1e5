package sfu

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"

	"github.com/holdfast-rtc/holdfast/control"
)

// TestATrackThatBeginsWithRetransmissionsIsPublished: browsers probe the path to another node with retransmissions, so one may
// be the first packet that arrives.
func TestATrackThatBeginsWithRetransmissionsIsPublished(t *testing.T) {
	s := newStage(t, "one")
	for i := range 12 {
		name := fmt.Sprintf("p%d", i)
		stream, _ := s.attach("room", name, 1)
		client := newMediaClient(t, 'a', false, 0)
		track := &rawTrack{ready: make(chan struct{})}
		if _, err := client.pc.AddTransceiverFromTrack(track, webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionSendonly}); err != nil {
			t.Fatal(err)
		}
		client.senders = append(client.senders, &control.Sender{Mid: "0", Source: control.Source_SOURCE_CAMERA})
		client.negotiate(stream, nil)
		<-track.ready
		var begun time.Time
		for begun.IsZero() || time.Since(begun) < 20*time.Millisecond {
			if track.retransmission(t) > 0 && begun.IsZero() {
				begun = time.Now()
			}
			<-time.After(200 * time.Microsecond)
		}
		eventually(t, name+"'s track", func() bool {
			track.frame(t)
			reply, err := s.client.Rooms(t.Context(), &control.RoomsRequest{Media: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range reply.GetRooms()[0].GetPeers() {
				if p.GetId() == name {
					return len(p.GetMedia().GetTracks()) == 1
				}
			}
			return false
		})
	}
}

// rawTrack writes whatever SSRC and payload type it likes.
type rawTrack struct {
	mu       sync.Mutex // guards the fields below
	bound    webrtc.TrackLocalContext
	codecs   []webrtc.RTPCodecParameters // all that were negotiated
	sequence uint16
	ready    chan struct{}
}

// Bind is part of webrtc.TrackLocal.
func (r *rawTrack) Bind(bound webrtc.TrackLocalContext) (webrtc.RTPCodecParameters, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bound, r.codecs = bound, bound.CodecParameters()
	close(r.ready)
	for _, codec := range bound.CodecParameters() {
		if codec.MimeType == webrtc.MimeTypeVP8 {
			return codec, nil
		}
	}
	return bound.CodecParameters()[0], nil
}

// Unbind is part of webrtc.TrackLocal.
func (*rawTrack) Unbind(webrtc.TrackLocalContext) error { return nil }

// ID is part of webrtc.TrackLocal.
func (*rawTrack) ID() string { return "camera" }

// RID is part of webrtc.TrackLocal.
func (*rawTrack) RID() string { return "" }

// StreamID is part of webrtc.TrackLocal.
func (*rawTrack) StreamID() string { return "camera" }

// Kind is part of webrtc.TrackLocal.
func (*rawTrack) Kind() webrtc.RTPCodecType { return webrtc.RTPCodecTypeVideo }

func (r *rawTrack) retransmission(t *testing.T) int {
	return r.write(t, r.bound.SSRCRetransmission(), webrtc.MimeTypeRTX, []byte{0, 1, 0x10, 1, 2, 3})
}

func (r *rawTrack) frame(t *testing.T) int {
	return r.write(t, r.bound.SSRC(), webrtc.MimeTypeVP8, []byte{0x10, 1, 2, 3})
}

func (r *rawTrack) write(t *testing.T, ssrc webrtc.SSRC, mime string, payload []byte) int {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if ssrc == 0 {
		t.Fatalf("no SSRC for %s was negotiated", mime)
	}
	var kind webrtc.PayloadType
	for _, codec := range r.codecs {
		if codec.MimeType == mime && kind == 0 {
			kind = codec.PayloadType
		}
	}
	r.sequence++
	n, err := r.bound.WriteStream().WriteRTP(&rtp.Header{Version: 2, PayloadType: uint8(kind), SequenceNumber: r.sequence, Timestamp: 1800 * uint32(r.sequence), SSRC: uint32(ssrc), Marker: true}, payload)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
