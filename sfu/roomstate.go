package sfu

import (
	"log/slog"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/people/roster"
)

// roomState is what clients are told of the room itself. The store has it, with the settings of the room's door. The room's loop owns it.
type roomState struct {
	members *members
	teller  *teller
	roll    *roll
	log     *slog.Logger

	// version is that of the settings, 0 before they are known.
	version  uint64
	metadata string
	// read is the text of the settings that were read last.
	read string
}

// proto is nil before the state is known.
func (s *roomState) proto() *control.RoomState {
	if s.version == 0 {
		return nil
	}
	return &control.RoomState{Metadata: s.metadata}
}

// heed takes the settings that the store or a signaling node has, if they are later than those known here, and tells everybody of
// another state.
func (s *roomState) heed(text string) {
	if text == "" || text == s.read {
		return
	}
	settings, err := roster.ParseSettings(text)
	if err != nil {
		s.log.Warn("settings of a room cannot be read: its metadata stays as it is", "error", err)
		return
	}
	if settings.Version <= s.version {
		s.read = text
		return
	}
	changed := s.metadata != settings.Description.Metadata
	s.version, s.metadata, s.read = settings.Version, settings.Description.Metadata, text
	s.roll.book.Learn(text)
	for _, m := range s.members.branches {
		s.members.tell(m, &control.LinkMessage{Message: &control.LinkMessage_Settings{Settings: text}})
	}
	if changed {
		s.teller.sendAll(&control.PeerEvent{Event: &control.PeerEvent_RoomState{RoomState: s.proto()}})
	}
}
