package sfu

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-rtc/holdfast/control"
)

// Bounds of a line of chat. Signaling nodes bound and pace it too; what is longer comes from
// a signaling node that does not, and is dropped.
const (
	chatBytes   = 8000
	chatIDBytes = 64
	// One person's lines in the room, whatever the number of tabs. A signaling node allows half of it
	// and answers what is above; more comes from one who speaks through several.
	chatPerSecond = 10
	chatBurst     = 20
)

// chat tells a line to everybody who is attached, the speaker included: its return is
// how the speaker knows that it was said. Nothing is kept of it.
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
