package peer

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/pion/rtp/codecs"

	"github.com/holdfast-rtc/holdfast/lab/portrait"
	"github.com/holdfast-rtc/holdfast/sfu/forward/parse"
)

// TestFramesAreWhole puts the packets of frames together as a receiver does: each is its pose's picture and zeros behind it,
// and the media node reads a keyframe of the layer's size where one was asked for, and nowhere else.
func TestFramesAreWhole(t *testing.T) {
	for _, codec := range []portrait.Codec{portrait.VP8, portrait.VP9} {
		for _, video := range []Video{VideoLight, VideoPortrait, VideoSimulcast} {
			t.Run(fmt.Sprint(codec, " ", video), func(t *testing.T) { framesAreWhole(t, codec, video) })
		}
	}
}

func framesAreWhole(t *testing.T, codec portrait.Codec, video Video) {
	stack, err := NewStackOf(video, codec)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newSender(Options{Stack: stack, Seed: 1, Face: 1})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for _, v := range s.layers {
		for i := range 40 {
			now = now.Add(v.clock.interval)
			v.wantKeyframe.Store(i == 20)
			v.frame(now, i%2 == 0)
			want, key := v.picture, i == 0 || i == 20
			frame, seen := take(t, v)
			if !bytes.Equal(frame[:len(want)], want) || len(bytes.Trim(frame[len(want):], "\x00")) > 0 {
				t.Fatalf("frame %d of %s is not a picture and zeros", i, v.rid)
			}
			size := v.encoder.layer.size
			if !seen.Begins || seen.Keyframe != key || key && (seen.Width != size.Width || seen.Height != size.Height) {
				t.Errorf("frame %d of %s is read as %+v", i, v.rid, seen)
			}
		}
	}
}

// take returns the present frame, and what the media node reads of its first packet.
func take(t *testing.T, v *videoTrack) (frame []byte, first parse.Picture) {
	t.Helper()
	kind := map[portrait.Codec]parse.Codec{portrait.VP8: parse.VP8, portrait.VP9: parse.VP9}[v.codec]
	for v.left > 0 {
		size := min(v.left, packetBytes)
		payload := v.packet(size)
		v.left -= size
		if picture := parse.ReadPayload(kind, payload); !v.started {
			first = picture
		} else if picture.Begins {
			t.Fatal("a frame begins in the middle of another")
		}
		v.started = true
		vp8, vp9 := new(codecs.VP8Packet), new(codecs.VP9Packet)
		var content []byte
		var err error
		if v.codec == portrait.VP9 {
			content, err = vp9.Unmarshal(payload)
			if err == nil && vp9.E != (v.left == 0) {
				t.Fatalf("the end of a frame is marked %t where %d bytes are left", vp9.E, v.left)
			}
		} else {
			content, err = vp8.Unmarshal(payload)
		}
		if err != nil {
			t.Fatal(err)
		}
		frame = append(frame, content...)
	}
	return frame, first
}

// TestSilenceIsOpus: its table of contents, its count and its padding are those of RFC 6716.
func TestSilenceIsOpus(t *testing.T) {
	for _, frames := range []int{1, 3} {
		for _, size := range []int{1, 60, 99} {
			p := silence(nil, frames, size)
			whole := max(size, 3+2*frames)
			if len(p) != whole || p[0] != 0xfb || p[1] != 0x40|byte(frames) || int(p[2]) != whole-3-2*frames || !bytes.Equal(p[3:5], []byte{0xff, 0xfe}) {
				t.Errorf("%d frames in %d bytes are % x", frames, size, p)
			}
		}
	}
}
