package peer

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/pion/webrtc/v4"
	"github.com/pion/webrtc/v4/pkg/media"
)

// The shape of what a synthetic peer sends. It is light on purpose: a load test
// must measure the cluster, not its own generator.
const (
	audioFrame       = 20 * time.Millisecond // Opus's usual frame
	audioFrameBytes  = 80                    // 32 kbit/s
	videoFrame       = 100 * time.Millisecond
	videoFrameBytes  = 900 // one packet a frame: 10 packets/s
	keyframeInterval = 10 * time.Second
)

// Dimensions written into the synthetic VP8 keyframes, in pixels.
const (
	videoWidth  = 320
	videoHeight = 180
)

// opusTOC begins a valid Opus packet: SILK wideband, 20 ms, one frame (RFC 6716 section 3.1).
const opusTOC = 0x48

// sender writes synthetic audio and video into two tracks until ctx ends. The
// tracks outlive the connections they are bound to.
type sender struct {
	audio, video *webrtc.TrackLocalStaticSample
	wantKeyframe atomic.Bool // set by a PLI, cleared by the next frame
}

func newSender(id string) (*sender, error) {
	audio, err := webrtc.NewTrackLocalStaticSample(
		webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeOpus, ClockRate: 48000, Channels: 2}, "audio", id)
	if err != nil {
		return nil, fmt.Errorf("make audio track: %w", err)
	}
	video, err := webrtc.NewTrackLocalStaticSample(
		webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeVP8, ClockRate: 90000}, "video", id)
	if err != nil {
		return nil, fmt.Errorf("make video track: %w", err)
	}
	return &sender{audio: audio, video: video}, nil
}

// run sends until ctx ends. Writing to a track that is bound to no connection
// is not an error, so run does not care about migrations.
func (s *sender) run(ctx context.Context) {
	audioTick, videoTick := time.NewTicker(audioFrame), time.NewTicker(videoFrame)
	defer audioTick.Stop()
	defer videoTick.Stop()
	sound := make([]byte, audioFrameBytes)
	sound[0] = opusTOC
	var lastKey time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-audioTick.C:
			_ = s.audio.WriteSample(media.Sample{Data: sound, Duration: audioFrame}) // a dead transport is the receiver's finding
		case now := <-videoTick.C:
			key := s.wantKeyframe.Swap(false) || now.Sub(lastKey) >= keyframeInterval
			if key {
				lastKey = now
			}
			_ = s.video.WriteSample(media.Sample{Data: vp8Frame(key), Duration: videoFrame})
		}
	}
}

// vp8Frame is a frame whose header a forwarder can read (RFC 6386 section 9.1);
// what follows the header is filler that no decoder would accept.
func vp8Frame(key bool) []byte {
	frame := make([]byte, videoFrameBytes)
	if !key {
		frame[0] = 0x01 // P=1: an inter frame
		return frame
	}
	frame[0] = 0x10 // P=0: a key frame, show_frame=1
	frame[3], frame[4], frame[5] = 0x9d, 0x01, 0x2a
	binary.LittleEndian.PutUint16(frame[6:], videoWidth)
	binary.LittleEndian.PutUint16(frame[8:], videoHeight)
	return frame
}
