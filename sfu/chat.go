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
	// Lines that wait for each person of a moved room.
	chatMissed = 64
)

// chat sends a line to everybody attached, also to the speaker as the acknowledgement. It is kept for those only who are expected.
func (r *room) chat(p *peer, said *control.Say) {
	text, id := said.GetText(), said.GetId()
	if strings.TrimSpace(text) == "" || len(text) > chatBytes || len(id) > chatIDBytes || !utf8.ValidString(text) || p.entry.GetHidden() ||
		!r.chatters.Allow(p.entry.GetIdentity()) {
		return
	}
	r.chatSeq++
	line := &control.Chat{
		Peer: string(p.id), Name: p.entry.GetName(), Text: text, Id: id, AtUnixMs: time.Now().UnixMilli(), Seq: r.chatSeq,
	}
	for _, other := range r.peers {
		if other.expected {
			other.missed = append(other.missed[max(len(other.missed)+1-chatMissed, 0):], line)
		}
		r.send(other, chatEvent(line))
	}
}

// tellMissed is for who attaches later than others of a moved room.
func (r *room) tellMissed(p *peer) {
	for _, line := range p.missed {
		r.send(p, chatEvent(line))
	}
	p.missed = nil
}

func chatEvent(line *control.Chat) *control.PeerEvent {
	return &control.PeerEvent{Event: &control.PeerEvent_Chat{Chat: line}}
}
