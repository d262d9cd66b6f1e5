package wire

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

func (m *Join) validate() error {
	return text("name", m.Name, 0, MaxNameBytes)
}

func (m *Resume) validate() error {
	return errors.Join(
		text("resume", m.Resume, 1, maxResumeBytes),
		number("attempt", m.Attempt, 2, maxAttempt),
		number("epoch", m.Epoch, 0, maxInteger),
		number("seq", m.Seq, 0, maxInteger),
	)
}

func (m *Offer) validate() error {
	err := errors.Join(
		text("id", m.ID, 1, maxOfferIDBytes),
		text("sdp", m.SDP, 1, maxSDPBytes),
		count("senders", len(m.Senders), maxSenders),
		count("slots", len(m.Slots), maxSlots),
		count("unused", len(m.Unused), maxSlots),
	)
	if err != nil {
		return err
	}
	for _, s := range m.Senders {
		if err := s.validate(); err != nil {
			return err
		}
	}
	for _, s := range m.Slots {
		if err := s.validate(); err != nil {
			return err
		}
	}
	for _, s := range m.Unused {
		if err := text("mid", s.Mid, 1, maxMidBytes); err != nil {
			return err
		}
	}
	return nil
}

func (s Sender) validate() error {
	return errors.Join(text("mid", s.Mid, 1, maxMidBytes), text("rid", s.Rid, 0, maxRidBytes), s.Source.validate())
}

func (s Slot) validate() error {
	if s.Kind != KindAudio && s.Kind != KindVideo {
		return fmt.Errorf("kind %.20q is not audio or video", string(s.Kind))
	}
	err := errors.Join(text("mid", s.Mid, 1, maxMidBytes), text("peer", string(s.Peer), 0, MaxPeerIDBytes))
	if s.Peer == "" && s.Source == "" {
		return err
	}
	return errors.Join(err, s.Source.validate())
}

func (m *View) validate() error {
	if err := count("wants", len(m.Wants), MaxWants); err != nil {
		return err
	}
	for _, w := range m.Wants {
		err := errors.Join(
			text("peer", string(w.Peer), 1, MaxPeerIDBytes), w.Source.validate(),
			number("width", uint64(w.Width), 0, maxPixels), number("height", uint64(w.Height), 0, maxPixels),
		)
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *Rename) validate() error { return text("name", m.Name, 1, MaxNameBytes) }

func (m *Mute) validate() error { return m.Source.validate() }

func (m *Migrated) validate() error {
	if m.How != HowRestart && m.How != HowNewConnection && m.How != HowLive {
		return fmt.Errorf("how %.20q is not %s, %s or %s", m.How, HowRestart, HowNewConnection, HowLive)
	}
	err := errors.Join(
		number("epoch", m.Epoch, 0, maxInteger),
		number("attempt", m.Attempt, 0, maxAttempt),
		number("gapMs", m.GapMs, 0, maxGapMs),
		count("lost", len(m.Lost), maxLost),
	)
	if err != nil {
		return err
	}
	for _, lost := range m.Lost {
		if err := errors.Join(text("peer", string(lost.Peer), 1, MaxPeerIDBytes), lost.Source.validate()); err != nil {
			return err
		}
	}
	return nil
}

func (m *Stalled) validate() error {
	return errors.Join(number("epoch", m.Epoch, 0, maxInteger), number("silentMs", m.SilentMs, 0, maxGapMs))
}

func (m *Refresh) validate() error {
	if len(m.Mids) == 0 {
		return errors.New("mids has no entries")
	}
	if err := count("mids", len(m.Mids), maxRefreshed); err != nil {
		return err
	}
	for _, mid := range m.Mids {
		if err := text("mid", mid, 1, maxMidBytes); err != nil {
			return err
		}
	}
	return nil
}

func (m *Say) validate() error {
	if strings.TrimSpace(m.Text) == "" {
		return errors.New("text is empty")
	}
	if n := utf8.RuneCountInString(m.Text); n > maxChatRunes {
		return fmt.Errorf("text has %d characters, want at most %d", n, maxChatRunes)
	}
	return text("id", m.ID, 0, maxChatIDBytes)
}

func (m *Watch) validate() error {
	err := count("users", len(m.Users), MaxWatched)
	for _, user := range m.Users {
		if err == nil {
			err = text("user", user, 1, maxUserBytes)
		}
	}
	return err
}

func (m *Moderate) validate() error {
	err := text("peer", string(m.Peer), 0, MaxPeerIDBytes)
	switch m.Act {
	case ActMute, ActAskUnmute:
		err = errors.Join(err, m.Source.validate())
	case ActLowerHand, ActRemove, ActGrant, ActGiveUp, ActEndCall:
	default:
		return fmt.Errorf("act %.20q is not mute, ask-unmute, lower-hand, remove, grant, give-up or end-call", string(m.Act))
	}
	if m.Peer == "" && (m.Act == ActAskUnmute || m.Act == ActRemove || m.Act == ActGrant) {
		return fmt.Errorf("act %s names no peer", m.Act)
	}
	return err
}

func (m *React) validate() error {
	if !slices.Contains(Emojis(), m.Emoji) {
		return fmt.Errorf("emoji %.20q is none of %s", m.Emoji, strings.Join(Emojis(), " "))
	}
	return nil
}

// MaxCap bounds the cap of a room.
const MaxCap = 1_000_000

func (m *SetDoor) validate() error {
	if m.Cap != nil && (*m.Cap < -1 || *m.Cap > MaxCap) {
		return fmt.Errorf("cap is %d, want -1 to %d", *m.Cap, MaxCap)
	}
	return nil
}

// Check does what Decode would have done, for callers that do not use Decode.
func (m *SetDoor) Check() error {
	if err := m.validate(); err != nil {
		return fmt.Errorf("%w: door: %w", ErrMalformed, err)
	}
	return nil
}

func (m *LetIn) validate() error { return text("identity", m.Identity, 1, maxUserBytes) }

func (m *TurnAway) validate() error { return text("identity", m.Identity, 1, maxUserBytes) }

func (m *Ping) validate() error {
	if math.Abs(m.T) > maxInteger {
		return errors.New("t is out of range")
	}
	if m.Path == nil {
		return nil
	}
	switch way := m.Path.Way; way {
	case "", WayUDP, WayTCP, WayTURN:
		return nil
	default:
		return fmt.Errorf("way %.20q is not %s, %s, %s or empty", way, WayUDP, WayTCP, WayTURN)
	}
}

func (s Source) validate() error {
	if !slices.Contains(Sources(), s) {
		return fmt.Errorf("source %.20q is not microphone, camera, screen or screen-audio", string(s))
	}
	return nil
}

func text(name, value string, atLeast, atMost int) error {
	if len(value) < atLeast || len(value) > atMost {
		return fmt.Errorf("%s has %d bytes, want %d to %d", name, len(value), atLeast, atMost)
	}
	return nil
}

func number(name string, value, atLeast, atMost uint64) error {
	if value < atLeast || value > atMost {
		return fmt.Errorf("%s is %d, want %d to %d", name, value, atLeast, atMost)
	}
	return nil
}

func count(name string, n, atMost int) error {
	if n > atMost {
		return fmt.Errorf("%s has %d entries, want at most %d", name, n, atMost)
	}
	return nil
}
