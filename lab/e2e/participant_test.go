package e2e

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
)

// participant is a page with a call in it.
type participant struct {
	*page
	id string // the peer id, once live
}

// slotStats is what one receive m-line has received, by the browser's own count.
type slotStats struct {
	Paused               bool
	Kind                 string
	Peer                 string
	Source               string
	PacketsReceived      float64
	BytesReceived        float64
	FramesDecoded        float64
	FrameWidth           float64
	ConcealedSamples     float64
	TotalSamplesReceived float64
}

type migration struct {
	How     string
	Attempt int
	GapMs   float64
}

// callStats is call.stats() of the client library.
type callStats struct {
	PcID       int
	Epoch      uint64
	Node       string
	OffersSent int
	Migrations []migration
	PerSlot    map[string]slotStats
	Outbound   []outboundStats
}

func (s callStats) lastGap() time.Duration {
	if len(s.Migrations) == 0 {
		return 0
	}
	return time.Duration(s.Migrations[len(s.Migrations)-1].GapMs) * time.Millisecond
}

type outboundStats struct {
	Source        string
	RID           string
	FramesEncoded float64
	FrameWidth    float64
}

func join(t *testing.T, base, room, name string, extra url.Values) *participant {
	t.Helper()
	return &participant{page: openPage(t, name, callAddress(base, room, name, extra))}
}

// joinAll opens a page for each of these people, and waits until all of them decode each other.
func joinAll(t *testing.T, base, room string, extra url.Values, names ...string) (people []*participant) {
	t.Helper()
	for _, name := range names {
		people = append(people, join(t, base, room, name, extra))
	}
	for _, p := range people {
		p.knowsItself(t)
	}
	allDecodeAll(t, time.Minute, people)
	return people
}

func (p *participant) stats() (callStats, error) {
	var s callStats
	err := p.eval("window.call ? window.call.stats() : null", &s)
	return s, err
}

func (p *participant) mustStats(t *testing.T) callStats {
	t.Helper()
	s, err := p.stats()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (p *participant) knowsItself(t *testing.T) {
	t.Helper()
	eventually(t, time.Minute, p.name+" joins", func() error {
		if err := p.eval("window.call?.peer ?? ''", &p.id); err != nil {
			return err
		}
		if p.id == "" {
			var text string
			_ = p.eval("document.body.innerText", &text)
			return fmt.Errorf("not joined; the page says %q", text)
		}
		return nil
	})
}

// flow is what a page has of one other person at one moment.
type flow struct {
	frames           float64 // video frames decoded
	packets          float64 // audio packets received
	concealed, total float64 // audio samples
}

func (s callStats) flowFrom(peer string) flow {
	var f flow
	for _, slot := range s.PerSlot {
		if slot.Peer != peer {
			continue
		}
		switch slot.Source {
		case "camera":
			f.frames += slot.FramesDecoded
		case "microphone":
			f.packets += slot.PacketsReceived
			f.concealed += slot.ConcealedSamples
			f.total += slot.TotalSamplesReceived
		}
	}
	return f
}

// A third of a second of video at 15 frames a second, and of audio at 50 packets a second.
const (
	someFrames  = 5
	somePackets = 16
)

// flowsSince fails unless frames were decoded and real audio, not concealment, was played between two looks.
func (f flow) flowsSince(before flow) error {
	if got := f.frames - before.frames; got < someFrames {
		return fmt.Errorf("%g frames decoded, want %d", got, someFrames)
	}
	if got := f.packets - before.packets; got < somePackets {
		return fmt.Errorf("%g audio packets received, want %d", got, somePackets)
	}
	concealed, total := f.concealed-before.concealed, f.total-before.total
	if total <= 0 || concealed > total/2 {
		return fmt.Errorf("%g of %g audio samples are concealment", concealed, total)
	}
	return nil
}

// allDecodeAll waits until every page of a room decodes video and audio of
// every other, counted from looks taken now.
func allDecodeAll(t *testing.T, limit time.Duration, people []*participant) {
	t.Helper()
	for _, receiver := range people {
		first := make(map[string]flow)
		eventually(t, limit, receiver.name+" decodes everybody", func() error {
			s, err := receiver.stats()
			if err != nil {
				return err
			}
			for _, sender := range people {
				if sender == receiver {
					continue
				}
				now := s.flowFrom(sender.id)
				before, seen := first[sender.id]
				if !seen || now.frames < before.frames || now.packets < before.packets {
					first[sender.id] = now // a new SSRC counts from zero
					before = now
				}
				if err := now.flowsSince(before); err != nil {
					return fmt.Errorf("%s at %s (epoch %d): %w", sender.name, receiver.name, s.Epoch, err)
				}
			}
			return nil
		})
	}
}

// mark stamps the page's connections, tracks and video elements; unchanged
// says what has been replaced since.
func (p *participant) mark(t *testing.T) {
	t.Helper()
	p.mustEval(t, `(() => {
	  const elements = [...document.querySelectorAll('video, audio')].filter((e) => e.srcObject);
	  globalThis.__marked = {
	    connections: [...globalThis.__connections],
	    closed: globalThis.__connections.filter((c) => c.signalingState === 'closed'), // after a live move
	    tracks: globalThis.__connections.flatMap((c) => c.getReceivers().map((r) => r.track)),
	    live: globalThis.__connections.flatMap((c) => c.getReceivers().map((r) => r.track)).filter((t) => t.readyState === 'live'),
	    elements: elements.map((e) => ({ e, stream: e.srcObject, tracks: e.srcObject.getTracks() })),
	  };
	  return elements.length;
	})()`, nil)
}

// unchanged fails if anything that was marked is not the same any more.
func (p *participant) unchanged(t *testing.T) {
	t.Helper()
	p.sameConnections(t)
	p.sameElements(t)
}

func (p *participant) sameConnections(t *testing.T) {
	t.Helper()
	p.compare(t, `
	  const now = globalThis.__connections;
	  if (now.length !== m.connections.length) changed.push('connections: ' + m.connections.length + ' -> ' + now.length);
	  if (m.connections.some((c) => c.signalingState === 'closed' && !m.closed.includes(c))) changed.push('a connection was closed');
	  const tracks = now.flatMap((c) => c.getReceivers().map((r) => r.track));
	  if (m.tracks.some((track, i) => tracks[i] !== track)) changed.push('a receiver has another track');
	  if (m.live.some((track) => track.readyState !== 'live')) changed.push('a track has ended');
	  for (const { e, tracks } of m.elements) {
	    if (tracks.some((track) => !e.srcObject?.getTracks().includes(track))) changed.push('a stream has lost a track');
	  }`)
}

// sameElements is all that a page is promised where the connection must be a new one.
func (p *participant) sameElements(t *testing.T) {
	t.Helper()
	p.compare(t, `
	  for (const { e, stream } of m.elements) {
	    if (!e.isConnected) changed.push('an element has left the page');
	    if (e.srcObject !== stream) changed.push('an element has another stream');
	    else if (!stream.getTracks().some((track) => track.readyState === 'live')) changed.push('a stream has no live track');
	  }
	  if (m.elements.length === 0) changed.push('no element was marked');`)
}

// compare runs statements that append to changed what differs from the mark m. A track that has ended is replaced soon.
func (p *participant) compare(t *testing.T, statements string) {
	t.Helper()
	eventually(t, 30*time.Second, p.name+" has what it had", func() error {
		var changed []string
		err := p.eval("(() => { const m = globalThis.__marked, changed = []; "+statements+" return changed; })()", &changed)
		if err == nil && len(changed) > 0 {
			now, _ := p.stats()
			err = fmt.Errorf("after the migration %s; offers sent: %d, told of %+v", strings.Join(changed, ", "), now.OffersSent, now.Migrations)
		}
		return err
	})
}

// layers are what somebody sends of the camera, to be shown where that is not enough.
func (p *participant) layers() []outboundStats {
	s, _ := p.stats()
	return s.Outbound
}
