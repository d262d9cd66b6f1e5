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
)

// chat sends a line to everybody attached, also to the speaker as the acknowledgement. Nothing is kept.
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
		r.send(other, &control.PeerEvent{Event: &control.PeerEvent_Chat{Chat: line}})
	}
}
