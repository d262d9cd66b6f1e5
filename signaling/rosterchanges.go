package signaling

import (
	"slices"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/signaling/replica"
	"github.com/holdfast-rtc/holdfast/signaling/translate"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// A client that knows no wire.RosterChanges is told more changes as one roster.
const changesByOne = 16

// beginRoster takes the roster with which the link began.
func (s *session) beginRoster() {
	attached := s.link.Attached
	s.beginAudience()
	s.known.run, s.known.seq = s.server.rosters.Run(attached.GetRun()), s.link.Seq
	s.setRoster(s.known.run.Begin(s.link.Seq, attached.GetRoster()))
}

// continueRoster takes the roster of a link that replaces another one, and tells the client if people have changed. The owner and the branches
// of a room number its changes alike, and one of them may be behind the other: then the client knows more than the new link told.
func (s *session) continueRoster() {
	attached, seq := s.link.Attached, s.link.Seq
	run := s.server.rosters.Run(attached.GetRun())
	switch same := run != nil && run == s.known.run; {
	case same && seq < s.known.seq:
		s.beginAudience()
	case attached.GetRosterKnown():
		s.beginAudience()
		s.known.run, s.known.seq = run, seq
	default:
		changed := !samePeople(s.known.roster.Peers(), attached.GetRoster())
		s.beginRoster()
		if changed {
			s.socket.send(&wire.Roster{Roster: s.wireRoster(s.known.roster), Epoch: s.pin.Fence.Epoch, Seq: seq})
		}
	}
}

// rosterChanged takes encoded control.RosterChanges up to a number.
func (s *session) rosterChanged(encoded []byte, seq uint64) {
	if seq < s.known.seq { // a branch is behind its owner, from which the client came
		return
	}
	told, err := s.known.run.Change(s.known.roster, seq, encoded)
	if err != nil {
		s.log.Warn("a media node's changes of the roster cannot be read: attaching again", "node", s.place.Node, "error", err)
		s.link.Close()
		return
	}
	former := s.known.roster
	s.setRoster(told.Roster)
	if seq == s.known.seq { // the client was told of all of them when the link began
		return
	}
	s.known.seq = seq
	key := rosterFrames{epoch: s.pin.Fence.Epoch, many: s.takesRosterChanges}
	if !key.many && told.Roster.Peer(s.who.Peer) == nil {
		key.own = s.known.audience.own.GetId()
	}
	for _, frame := range told.Frames(key, func() [][]byte { return s.encodeChanges(told) }) {
		s.socket.queue(frame)
	}
	own := func(c *control.RosterChange) bool {
		return c.GetUpdated().GetId() == s.who.Peer || c.GetJoined().GetId() == s.who.Peer
	}
	if slices.ContainsFunc(told.Changes, own) {
		// Who was unlisted is listed, and stays so.
		s.known.audience.own = nil
		s.followGrant(former.Peer(s.who.Peer).GetModerator())
	}
}

// rosterReplaced and rosterChangedByOne are the words of an older media node, and of any to a client whom nobody sees.

func (s *session) rosterReplaced(peers []*control.Peer, seq uint64) {
	before := s.known.ownEntry(s.who.Peer).GetModerator()
	s.setRoster(replica.Of(peers))
	if s.known.roster.Peer(s.who.Peer) != nil {
		s.known.audience.own = nil
	}
	s.socket.send(&wire.Roster{Roster: s.wireRoster(s.known.roster), Epoch: s.pin.Fence.Epoch, Seq: seq})
	s.followGrant(before)
}

func (s *session) rosterChangedByOne(change *control.RosterChange, seq uint64) {
	before := s.known.roster.Peer(s.who.Peer).GetModerator()
	s.setRoster(s.known.roster.Change(change))
	s.socket.send(translate.RosterChange(change, s.pin.Fence.Epoch, seq))
	s.followGrant(before)
}

// rosterFrames is what the frames of changes depend on.
type rosterFrames struct {
	epoch uint64
	many  bool
	own   string // of a client that is told of itself apart from the roster
}

// encodeChanges numbers the changes one by one for a client that takes them so. A number may be higher than that of the change, but not
// higher than that of a later one: a client that has the number has the change.
func (s *session) encodeChanges(told *replica.Told) [][]byte {
	epoch, count := s.pin.Fence.Epoch, len(told.Changes)
	var messages []wire.Message
	switch {
	case count > 1 && s.takesRosterChanges:
		messages = append(messages, translate.RosterChanges(told.Changes, epoch, told.Seq))
	case count > changesByOne:
		messages = append(messages, &wire.Roster{Roster: s.wireRoster(told.Roster), Epoch: epoch, Seq: told.Seq})
	default:
		for i, change := range told.Changes {
			messages = append(messages, translate.RosterChange(change, epoch, told.Seq-uint64(count-1-i)))
		}
	}
	frames := make([][]byte, 0, len(messages))
	for _, m := range messages {
		if frame := s.socket.encode(m); frame != nil {
			frames = append(frames, frame)
		}
	}
	return frames
}
