package peer

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/portrait"
)

const (
	audioClock      = 48000
	audioFrame      = 20 * time.Millisecond
	audioFrameBytes = 80 // 32 kbit/s

	videoClock       = 90000
	packetBytes      = 1100 // as browsers cut a frame
	burstPackets     = 8    // sent back to back
	burstInterval    = 5 * time.Millisecond
	keyframeInterval = 10 * time.Second
	keyframePause    = 300 * time.Millisecond // browsers ignore requests that come sooner
)

// Frames past lateLimit are left out: sending them in a burst would measure the sender itself.
const lateLimit = 200 * time.Millisecond

// The mean lengths of speech and of silence, which are exponentially distributed.
const (
	speaking = 3 * time.Second
	silent   = 6 * time.Second
)

// RFC 6464, in -dBov.
const (
	levelSpeaking = 30
	levelSilent   = 127
)

type sender struct {
	audio  *track
	layers []*videoTrack
	rng    *rand.Rand
	frame  time.Duration // of audio
	sound  [2 * audioFrameBytes]byte

	speaks bool
	turnAt time.Time

	lag     atomic.Int64 // the largest delay of a frame, in nanoseconds
	leftOut atomic.Uint64
}

type videoTrack struct {
	*track

	face      int
	clip      portrait.Clip
	began     time.Time // when the face began to live
	encoder   encoder
	clock     clock
	picture   []byte // what is unsent of the present frame's picture
	left      int    // unsent bytes of the present frame, filler included
	key       bool
	started   bool
	burstAt   time.Time
	lastKey   time.Time
	pictureID uint16
	payload   [payloadBytes]byte
}

type clock struct {
	next      time.Time
	interval  time.Duration
	ticks     uint32
	timestamp uint32
}

// due reports whether a frame is due, how late it is, and how many before it are left out.
func (c *clock) due(now time.Time) (late time.Duration, leftOut int, ok bool) {
	late = now.Sub(c.next)
	if late < 0 {
		return 0, 0, false
	}
	if late > lateLimit {
		leftOut = int(late / c.interval)
	}
	frames := leftOut + 1
	c.next = c.next.Add(time.Duration(frames) * c.interval)
	c.timestamp += uint32(frames) * c.ticks
	return late, leftOut, true
}

// The seed decides everything but the starting times.
func newSender(opts Options) (*sender, error) {
	video := opts.Stack.video
	s := &sender{
		frame: video.soundFrame(),
		audio: &track{audio: true},
		rng:   rand.New(rand.NewPCG(opts.Seed, 0)), //nolint:gosec // repeatable, not secret
	}
	if opts.CameraOff {
		video = VideoOff
	}
	for _, l := range layersOf(video) {
		clip, err := opts.Stack.clip(opts.Face, l.size)
		if err != nil {
			return nil, err
		}
		v := &videoTrack{
			track: &track{rid: l.rid, codec: opts.Stack.codec}, face: opts.Face, clip: clip, began: time.Now(),
			encoder: encoder{layer: l, rng: s.rng},
		}
		v.clock = clock{interval: l.interval(), ticks: uint32(videoClock / l.framesPerSecond), timestamp: s.rng.Uint32()}
		s.layers = append(s.layers, v)
	}
	return s, nil
}

func (s *sender) run(ctx context.Context) {
	// Random starts: a crowd must not send in step.
	now := time.Now()
	sound := clock{interval: s.frame, ticks: uint32(s.frame * audioClock / time.Second), timestamp: s.rng.Uint32()}
	sound.next = now.Add(rand.N(s.frame))
	for _, v := range s.layers {
		v.clock.next = now.Add(rand.N(v.clock.interval))
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		now = time.Now() // the timer's own time is older
		if late, leftOut, ok := sound.due(now); ok {
			s.behind(late, leftOut)
			s.speak(now, sound.timestamp)
		}
		next := sound.next
		for _, v := range s.layers {
			if late, leftOut, ok := v.clock.due(now); ok {
				s.behind(late, leftOut)
				v.frame(now, s.speaks)
			}
			v.burst(now)
			next = v.sooner(next)
		}
		timer.Reset(time.Until(next))
	}
}

func (s *sender) behind(late time.Duration, leftOut int) {
	s.leftOut.Add(uint64(leftOut))
	if int64(late) > s.lag.Load() { // one writer
		s.lag.Store(int64(late))
	}
}

func (s *sender) speak(now time.Time, timestamp uint32) {
	if now.After(s.turnAt) {
		s.speaks = !s.speaks
		mean := silent
		if s.speaks {
			mean = speaking
		}
		s.turnAt = now.Add(time.Duration(s.rng.ExpFloat64() * float64(mean)))
	}
	size, level := audioFrameBytes*3/4+s.rng.IntN(audioFrameBytes/2), uint8(levelSilent)
	if s.speaks {
		level = levelSpeaking
	}
	s.audio.write(timestamp, false, level, silence(s.sound[:0], int(s.frame/audioFrame), size))
}

func (v *videoTrack) sooner(next time.Time) time.Time {
	if v.clock.next.Before(next) {
		next = v.clock.next
	}
	if v.left > 0 && v.burstAt.Before(next) {
		next = v.burstAt
	}
	return next
}

// frame begins a frame, unless part of the last one is unsent. A keyframe begins the clip again.
func (v *videoTrack) frame(now time.Time, speaks bool) {
	if v.left > 0 {
		return
	}
	since := now.Sub(v.lastKey)
	v.key = since >= keyframeInterval || (since >= keyframePause && v.wantKeyframe.Load())
	if v.key {
		v.wantKeyframe.Store(false)
		v.lastKey = now
	}
	pose := 0
	if !v.key {
		pose = portrait.At(v.face, now.Sub(v.began), speaks)
	}
	v.picture = v.clip[pose]
	v.left, v.started, v.burstAt = v.encoder.frameBytes(v.key, len(v.picture)), false, now
	v.pictureID++
}

func (v *videoTrack) burst(now time.Time) {
	if v.left == 0 || now.Before(v.burstAt) {
		return
	}
	for range burstPackets {
		size := min(v.left, packetBytes)
		payload := v.packet(size)
		v.left -= size
		if !v.write(v.clock.timestamp, v.left == 0, 0, payload) {
			// Nobody got it: the next frame must be a keyframe.
			v.left, v.lastKey = 0, time.Time{}
			return
		}
		v.started = true
		if v.left == 0 {
			return
		}
	}
	v.burstAt = now.Add(burstInterval)
}
