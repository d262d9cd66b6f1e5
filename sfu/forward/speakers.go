package forward

import (
	"cmp"
	"math"
	"slices"
	"time"
)

const (
	speakersInterval = 300 * time.Millisecond

	// Speaking begins at speakFrom and ends below speakUntil. Both are 127 minus a level of RFC 6464.
	speakFrom  = 127 - 50
	speakUntil = 127 - 58
	// speakHold bridges pauses between words.
	speakHold = 700 * time.Millisecond
	// swapMargin is how many dB louder somebody must be to overtake.
	swapMargin = 6

	attack  = 60 * time.Millisecond
	release = 300 * time.Millisecond

	// Smaller changes than levelStep are not told.
	levelStep = 0.05

	maxSpeakers = 16
)

type speakerTracker struct {
	voices map[PeerID]*voice
	order  []PeerID
	listed []Speaker
	last   time.Time
}

type voice struct {
	// loudness is smoothed, from 0 (silence) to 127.
	loudness float64
	at       time.Time
	speaking bool
	// lastLoud is when loudness was last above speakUntil.
	lastLoud time.Time
	// lastSpoke ranks those who are silent.
	lastSpoke time.Time
	muted     bool
	// told says that the person's node says that they speak. It counts while no sound comes from there.
	told bool
}

func newSpeakerTracker() speakerTracker {
	return speakerTracker{voices: make(map[PeerID]*voice)}
}

// observe takes the audio level of a packet, from 0 (loudest) to 127 (silence).
func (t *speakerTracker) observe(peer PeerID, level uint8, now time.Time) {
	v := t.voice(peer)
	if v.muted {
		return
	}
	v.smoothTo(float64(127-min(level, 127)), now)
}

func (v *voice) smoothTo(target float64, now time.Time) {
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

// tell takes whether somebody at another node speaks, and reports whether that is new.
func (t *speakerTracker) tell(peer PeerID, speaks bool) bool {
	v := t.voices[peer]
	if v == nil && !speaks || v != nil && v.told == speaks {
		return false
	}
	v = t.voice(peer)
	v.told = speaks
	if speaks && !v.speaking && !v.muted {
		v.speaking, v.lastSpoke, v.loudness = true, time.Now(), max(v.loudness, speakFrom)
	}
	return true
}

func (t *speakerTracker) speaks(peer PeerID) bool {
	v := t.voices[peer]
	return v != nil && v.speaking
}

func (t *speakerTracker) remove(peer PeerID) { delete(t.voices, peer) }

// update returns the loudest speakers, whether they differ from those it last returned, and whether anybody has begun or ceased to speak.
func (t *speakerTracker) update(now time.Time) (list []Speaker, changed, turned bool) {
	// Ticks that come speakersInterval apart come a little sooner at times.
	if now.Sub(t.last) < speakersInterval-tickInterval/2 {
		return nil, false, false
	}
	t.last = now
	for _, v := range t.voices {
		before := v.speaking
		v.updateSpeaking(now)
		turned = turned || v.speaking != before
	}
	t.sortOrder()
	list = make([]Speaker, min(len(t.order), maxSpeakers))
	for i, peer := range t.order[:len(list)] {
		list[i] = Speaker{Peer: peer, Level: t.voices[peer].loudness / 127}
	}
	same := slices.EqualFunc(list, t.listed, func(a, b Speaker) bool {
		return a.Peer == b.Peer && math.Abs(a.Level-b.Level) < levelStep
	})
	if same {
		return nil, false, turned
	}
	t.listed = list
	return slices.Clone(list), true, turned
}

func (v *voice) updateSpeaking(now time.Time) {
	// A microphone that sends nothing is silent, unless its sound stays at another node.
	const quiet = 100 * time.Millisecond
	switch silent := now.Sub(v.at) > quiet; {
	case silent && v.told && !v.muted:
		v.smoothTo(max(v.loudness, speakFrom), now)
	case silent:
		v.smoothTo(0, now)
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

// sortOrder keeps the order of the speakers until one is louder than the one before by swapMargin.
func (t *speakerTracker) sortOrder() {
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
