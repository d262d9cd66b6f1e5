package sfu

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-rtc/holdfast/control"
)

// Longer lines are dropped.
const (
	chatBytes   = 8000
	chatIDBytes = 64
	// One person's. A signaling node allows half; more comes through several nodes.
	chatPerSecond = 10
	chatBurst     = 20
	// Lines of a room that are kept for the grace time.
	chatKept = 64
)

// said is a line that was said at some time.
type said struct {
	line *control.Chat
	at   time.Time
}

// chat sends a line to everybody attached, also to the speaker as the acknowledgement. It is kept for those who are expected or whose
// signaling node is dead or frozen: they attach within the grace time.
func (r *room) chat(p *peer, say *control.Say) {
	text, id := say.GetText(), say.GetId()
	if strings.TrimSpace(text) == "" || len(text) > chatBytes || len(id) > chatIDBytes || !utf8.ValidString(text) || p.entry.GetHidden() ||
		!r.chatters.Allow(p.entry.GetIdentity()) {
		return
	}
	r.chatSeq++
	line := &control.Chat{
		Peer: string(p.id), Name: p.entry.GetName(), Text: text, Id: id, AtUnixMs: time.Now().UnixMilli(), Seq: r.chatSeq,
	}
	r.said = append(r.said[max(len(r.said)+1-chatKept, 0):], said{line, time.Now()})
	for _, other := range r.peers {
		r.send(other, chatEvent(line))
		if other.outbox != nil {
			other.chatSent = line.GetSeq()
		}
	}
}

// tellMissed repeats the lines since the peer came or was expected. What was sent to the former signaling node may have been lost
// there. A client drops an id that it has, so lines without an id are sent once.
func (r *room) tellMissed(p *peer) {
	for _, kept := range r.said {
		seq := kept.line.GetSeq()
		if seq > p.chatFrom && (seq > p.chatSent || kept.line.GetId() != "") && time.Since(kept.at) < r.node.cfg.Grace {
			r.send(p, chatEvent(kept.line))
			p.chatSent = max(p.chatSent, seq)
		}
	}
}

func chatEvent(line *control.Chat) *control.PeerEvent {
	return &control.PeerEvent{Event: &control.PeerEvent_Chat{Chat: line}}
}
