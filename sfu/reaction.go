package sfu

import (
	"slices"
	"time"
	"unicode/utf8"

	"github.com/holdfast-rtc/holdfast/control"
)

const (
	reactEvery = 250 * time.Millisecond
	// Twice a signaling node's: more comes through several.
	reactPerSecond = 4
	reactBurst     = 12
	// Of one emoji; of one event.
	emojiBytes   = 32
	maxReactions = 1000
)

// react sends an emoji, with others of the moment, to everybody attached.
func (r *room) react(p *peer, emoji string) {
	if emoji == "" || len(emoji) > emojiBytes || !utf8.ValidString(emoji) || p.entry.GetHidden() || !r.reactors.Allow(p.entry.GetIdentity()) {
		return
	}
	again := slices.ContainsFunc(r.reactions, func(o *control.Reaction) bool { return o.GetPeer() == string(p.id) && o.GetEmoji() == emoji })
	if again || len(r.reactions) >= maxReactions {
		return
	}
	r.reactions = append(r.reactions, &control.Reaction{Peer: string(p.id), Emoji: emoji})
	if len(r.reactions) == 1 {
		r.after(max(0, reactEvery-time.Since(r.reactedAt)), r.tellReactions)
	}
}

func (r *room) tellReactions() {
	event := &control.Reactions{Reactions: r.reactions}
	r.reactions, r.reactedAt = nil, time.Now()
	for _, p := range r.peers {
		r.send(p, &control.PeerEvent{Event: &control.PeerEvent_Reactions{Reactions: event}})
	}
}
