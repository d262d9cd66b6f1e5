package sfu

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/connlimit"
)

const (
	// Lines with longer texts or ids are dropped.
	chatBytes   = 8000
	chatIDBytes = 64
	// A person may say so much. One signaling node lets half of it through, so only somebody who uses several comes near.
	chatPerSecond = 10
	chatBurst     = 20
	// chatKept is how many lines of a room are kept for the grace time.
	chatKept = 64
)

// chatLog numbers a room's lines and keeps the latest. The room's loop owns it.
type chatLog struct {
	// limit is by identity.
	limit *connlimit.KeyedLimiter
	// last is the number of the newest line.
	last uint64
	// recent are the latest lines, the newest last.
	recent []said
}

// said is a line with the time at which it was said.
type said struct {
	line *control.Chat
	at   time.Time
}

func newChatLog(people int) chatLog {
	return chatLog{limit: connlimit.NewKeyedLimiter(chatPerSecond, chatBurst, people)}
}

// add returns the line that a person says, or nil where nothing may be said: an empty or too long text, a hidden person, or too many
// lines of one identity.
func (c *chatLog) add(speaker *control.Peer, say *control.Say, now time.Time) *control.Chat {
	text, id := say.GetText(), say.GetId()
	if strings.TrimSpace(text) == "" || len(text) > chatBytes || len(id) > chatIDBytes || !utf8.ValidString(text) || speaker.GetHidden() ||
		!c.limit.Allow(speaker.GetIdentity()) {
		return nil
	}
	line := &control.Chat{Peer: speaker.GetId(), Name: speaker.GetName(), Text: text, Id: id, AtUnixMs: now.UnixMilli(), Seq: c.last + 1}
	c.keep(line, now)
	return line
}

// keep takes in a line that has its number.
func (c *chatLog) keep(line *control.Chat, now time.Time) {
	c.last = max(c.last, line.GetSeq())
	c.recent = append(c.recent[max(len(c.recent)+1-chatKept, 0):], said{line, now})
}

// has reports whether a line is among the latest. Owners that follow one another may give two lines the same number.
func (c *chatLog) has(line *control.Chat) bool {
	return slices.ContainsFunc(c.recent, func(kept said) bool {
		return kept.line.GetSeq() == line.GetSeq() && kept.line.GetPeer() == line.GetPeer() && kept.line.GetAtUnixMs() == line.GetAtUnixMs()
	})
}

// follow goes on after the line of this number.
func (c *chatLog) follow(last uint64) {
	c.last = last
	c.recent = slices.DeleteFunc(c.recent, func(kept said) bool { return kept.line.GetSeq() > last })
}

// missed returns the lines of the last grace time that a person may lack: those after the number from, and of them those after sent,
// the last that was sent, and those with an id. What was sent to a former signaling node may have been lost there; a client drops an
// id that it has, so lines without an id are sent once.
func (c *chatLog) missed(from, sent uint64, grace time.Duration) []*control.Chat {
	var lines []*control.Chat
	for _, kept := range c.recent {
		number := kept.line.GetSeq()
		if number > from && (number > sent || kept.line.GetId() != "") && time.Since(kept.at) < grace {
			lines = append(lines, kept.line)
		}
	}
	return lines
}

func chatEvent(line *control.Chat) *control.PeerEvent {
	return &control.PeerEvent{Event: &control.PeerEvent_Chat{Chat: line}}
}
