package sfu

import (
	"slices"
	"time"
	"unicode/utf8"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/connlimit"
)

const (
	reactEvery = 250 * time.Millisecond
	// A person may send twice what one signaling node lets through, so only somebody who uses several comes near.
	reactPerSecond = 4
	reactBurst     = 12
	// An emoji has so many bytes at most, and an event so many reactions.
	emojiBytes   = 32
	maxReactions = 1000
)

// reactions gathers emojis that are told together. The room's loop owns it.
type reactions struct {
	// limit is by identity.
	limit   *connlimit.KeyedLimiter
	waiting []*control.Reaction
	toldAt  time.Time
}

func newReactions(people int) reactions {
	return reactions{limit: connlimit.NewKeyedLimiter(reactPerSecond, reactBurst, people)}
}

// add reports whether the emoji is the first that waits. It leaves out what is no emoji, repeated, or too much.
func (c *reactions) add(from *control.Peer, emoji string) (first bool) {
	if emoji == "" || len(emoji) > emojiBytes || !utf8.ValidString(emoji) || from.GetHidden() || !c.limit.Allow(from.GetIdentity()) {
		return false
	}
	again := slices.ContainsFunc(c.waiting, func(o *control.Reaction) bool { return o.GetPeer() == from.GetId() && o.GetEmoji() == emoji })
	if again || len(c.waiting) >= maxReactions {
		return false
	}
	c.waiting = append(c.waiting, &control.Reaction{Peer: from.GetId(), Emoji: emoji})
	return len(c.waiting) == 1
}

// due returns how long the first one waits for others.
func (c *reactions) due(now time.Time) time.Duration { return max(0, reactEvery-now.Sub(c.toldAt)) }

func (c *reactions) take(now time.Time) *control.PeerEvent {
	event := &control.Reactions{Reactions: c.waiting}
	c.waiting, c.toldAt = nil, now
	return &control.PeerEvent{Event: &control.PeerEvent_Reactions{Reactions: event}}
}
