package forward

import "time"

// A layer need not come while nobody wants it: a remote layer crosses no link then, and a publisher here may let a layer rest.

const (
	// remoteLinger is how long a remote layer stays wanted after the last slot: pages that change their view come back to it.
	remoteLinger = 2 * time.Second
	// restAfter is the same for a layer of a publisher here, whose encoder takes a moment to begin again.
	restAfter = 10 * time.Second
	// wakeWait is how long a layer that rested may take to come. Then another one is shown.
	wakeWait = 3 * time.Second
)

// feed is how a layer with LayerConfig.OnWanted comes.
type feed struct {
	// state is what the publisher's node told last of a remote layer. Of a layer here it is what was known when it began to rest, and
	// Alive is false again once the layer has come back.
	state RemoteState
	// wanted is what OnWanted was told last; it was told so of a layer that rested at wantedAt. unwantedSince is since when no slot and no
	// tap has had the layer.
	wanted                  bool
	wantedAt, unwantedSince time.Time
}

// noteWanted tells the publisher's side that somebody here wants the layer, or begins the time after which nobody does.
func (l *Layer) noteWanted() {
	switch used := len(l.slots) > 0 || len(l.taps) > 0; {
	case l.cfg.OnWanted == nil:
	case !used:
		l.feed.unwantedSince = time.Now()
	case !l.feed.wanted:
		l.want(time.Now())
	}
}

func (l *Layer) want(now time.Time) {
	l.feed.wanted, l.feed.wantedAt = true, now
	l.requests.unanswered = 0
	// What was measured while nothing came says nothing.
	l.rate, l.upper = rateMeter{}, [len(l.upper)]rateMeter{}
	l.cfg.OnWanted(true)
}

// expireWanted tells the publisher's side that nobody here has wanted the layer for a while.
func (l *Layer) expireWanted(now time.Time) {
	f := &l.feed
	if !f.wanted || len(l.slots) > 0 || len(l.taps) > 0 || l.cfg.OnWanted == nil {
		return
	}
	unwanted := now.Sub(f.unwantedSince)
	if !l.Remote() {
		if unwanted < restAfter || !l.mayRest(now) {
			return
		}
		f.state = RemoteState{Alive: true, Height: l.height, BitsPerSecond: l.bits()}
	} else if unwanted < remoteLinger {
		return
	}
	f.wanted = false
	l.cfg.OnWanted(false)
}

// mayRest: the lowest layer that comes goes on, so that a picture begins at once, and a layer that the browser itself stopped has nothing
// to rest from.
func (l *Layer) mayRest(now time.Time) bool {
	if now.Sub(l.lastHeard) >= layerSilence {
		return false
	}
	for _, other := range l.room.members.publication(l.cfg.key()).layers {
		if other.lines() < l.lines() && now.Sub(other.lastHeard) < layerSilence {
			return true
		}
	}
	return false
}

// asleep reports whether the layer rests, or has not come back yet.
func (l *Layer) asleep(now time.Time) bool {
	return l.feed.state.Alive && !l.Remote() && now.Sub(l.lastHeard) >= layerSilence
}

// wake is for a layer that is wanted as soon as it comes.
func (l *Layer) wake(now time.Time) {
	l.feed.unwantedSince = now
	if !l.feed.wanted {
		l.want(now)
	}
}

// awake notes a packet of a layer, which may have rested.
func (l *Layer) awake() {
	if l.feed.state.Alive && l.feed.wanted && !l.Remote() {
		l.feed.state.Alive = false
		l.room.changed.layers = true
	}
}

// expireWake gives a layer up that does not come back.
func (l *Layer) expireWake(now time.Time) {
	if l.feed.state.Alive && l.feed.wanted && !l.Remote() && now.Sub(l.feed.wantedAt) >= wakeWait {
		l.feed.state.Alive = false
		l.room.changed.layers = true
	}
}

// unwant is for a layer that is dropped.
func (l *Layer) unwant() {
	l.taps = nil
	if l.Remote() {
		l.noteSpeaks(false)
	}
	if l.feed.wanted && l.Remote() {
		l.feed.wanted = false
		l.cfg.OnWanted(false)
	}
}
