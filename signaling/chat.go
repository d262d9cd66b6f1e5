package signaling

import (
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// People type less than a line a second; a pasted list comes as a few at once. Every
// line goes to everybody in the room, so one person must not make many, in however many tabs.
const (
	chatPerSecond = 5
	chatBurst     = 10
)

// chat passes a line on to the room's owner. Without a link it is lost, and the
// client, to which no echo comes, says it again.
func (s *session) chat(m *wire.Say) {
	if !s.who.CanChat {
		s.socket.send(faultOf(errNoChat))
		return
	}
	if !s.server.chats.Pass(s.entryKey()) {
		s.socket.send(faultOf(errFlood))
		return
	}
	s.say(&control.EdgeMessage{Message: &control.EdgeMessage_Say{Say: &control.Say{Text: m.Text, Id: m.ID}}})
}

func wireChat(c *control.Chat, epoch uint64) *wire.Chat {
	return &wire.Chat{
		Peer: wire.PeerID(c.GetPeer()), Name: c.GetName(), Text: c.GetText(), ID: c.GetId(),
		At: c.GetAtUnixMs(), Seq: c.GetSeq(), Epoch: epoch,
	}
}
