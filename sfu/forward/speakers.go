package forward

import (
	"cmp"
	"math"
	"slices"
	"time"
)

const (
	speakersInterval = 300 * time.Millisecond // between two lists

	speakFrom  = 127 - 50               // loudness (127 - RFC 6464 level) at which somebody begins to speak
	speakUntil = 127 - 58               // and below which he has stopped
	speakHold  = 700 * time.Millisecond // a pause between words is no end
	swapMargin = 6                      // dB by which a speaker must be louder to go before another

	attack  = 60 * time.Millisecond  // time constant of the rising level
	release = 300 * time.Millisecond // and of the falling one

	levelStep = 0.05 // a smaller change of a level is not worth a message

	maxSpeakers = 16 // in a list, which goes to everybody in the room
)

// speakerTracker turns audio levels into a list of who speaks. It is given the
// time and has no clock.
type speakerTracker struct {
	voices map[PeerID]*voice
	order  []PeerID  // who speaks, as last listed
	listed []Speaker // as last reported
	last   time.Time
}

type voice struct {
	loudness  float64 // smoothed, 0 (silence) to 127
	at        time.Time
	speaking  bool
	lastLoud  time.Time // when it was last above speakUntil
	lastSpoke time.Time // when it was last known to speak; kept to rank the silent
	muted     bool
}

func newSpeakerTracker() speakerTracker {
	return speakerTracker{voices: make(map[PeerID]*voice)}
}

// observe takes in the level of one packet: 0 (loudest) to 127 (silence).
func (t *speakerTracker) observe(peer PeerID, level uint8, now time.Time) {
	v := t.voice(peer)
	if v.muted {
		return
	}
	v.move(float64(127-min(level, 127)), now)
}

func (v *voice) move(target float64, now time.Time) {
	constant := attack
	if target < v.loudness {
		constant = release
	}
	elapsed := max(now.Sub(v.at), 0)
	if v.at.IsZero() {
		elapsed = 20 * time.Millisecond
	}
	v.loudness += (target - v.loudness) * (1 - math.Exp(-float64(elapsed)/float64(constant)))
	v.at = now
}

func (t *speakerTracker) voice(peer PeerID) *voice {
	v := t.voices[peer]
	if v == nil {
		v = &voice{}
		t.voices[peer] = v
	}
	return v
}

func (t *speakerTracker) setMuted(peer PeerID, muted bool) {
	v := t.voice(peer)
	v.muted = muted
	if muted {
		v.loudness, v.speaking = 0, false
	}
}

func (t *speakerTracker) remove(peer PeerID) { delete(t.voices, peer) }

// update returns the list, loudest first and of at most maxSpeakers, and whether it is worth telling. It
// does nothing before speakersInterval has passed.
func (t *speakerTracker) update(now time.Time) ([]Speaker, bool) {
	if now.Sub(t.last) < speakersInterval {
		return nil, false
	}
	t.last = now
	for _, v := range t.voices {
		v.judge(now)
	}
	t.arrange()
	list := make([]Speaker, min(len(t.order), maxSpeakers))
	for i, peer := range t.order[:len(list)] {
		list[i] = Speaker{Peer: peer, Level: t.voices[peer].loudness / 127}
	}
	same := slices.EqualFunc(list, t.listed, func(a, b Speaker) bool {
		return a.Peer == b.Peer && math.Abs(a.Level-b.Level) < levelStep
	})
	if same {
		return nil, false
	}
	t.listed = list
	return slices.Clone(list), true
}

func (v *voice) judge(now time.Time) {
	// Whoever sends nothing (discontinuous transmission, loss) is silent.
	const quiet = 100 * time.Millisecond
	if now.Sub(v.at) > quiet {
		v.move(0, now)
	}
	if v.loudness >= speakUntil {
		v.lastLoud = now
	}
	switch {
	case v.loudness >= speakFrom && !v.muted:
		v.speaking = true
	case v.speaking && now.Sub(v.lastLoud) > speakHold:
		v.speaking = false
	}
	if v.speaking {
		v.lastSpoke = now
	}
}

// arrange keeps the last order as far as nobody is clearly louder than the one
// before.
func (t *speakerTracker) arrange() {
	t.order = slices.DeleteFunc(t.order, func(p PeerID) bool {
		v := t.voices[p]
		return v == nil || !v.speaking
	})
	var joined []PeerID
	for peer, v := range t.voices {
		if v.speaking && !slices.Contains(t.order, peer) {
			joined = append(joined, peer)
		}
	}
	slices.SortFunc(joined, func(a, b PeerID) int {
		return cmp.Or(-cmp.Compare(t.voices[a].loudness, t.voices[b].loudness), cmp.Compare(a, b))
	})
	t.order = append(t.order, joined...)
	for i := 1; i < len(t.order); i++ {
		for j := i; j > 0 && t.voices[t.order[j]].loudness > t.voices[t.order[j-1]].loudness+swapMargin; j-- {
			t.order[j], t.order[j-1] = t.order[j-1], t.order[j]
		}
	}
}
