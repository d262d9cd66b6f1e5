package signaling

import (
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// Without a link the line is lost; the client misses its echo and repeats it.
func (s *session) chat(m *wire.Say) {
	if !s.who.CanChat {
		s.socket.send(faultOf(errNoChat))
		return
	}
	if !s.server.limits.Chat(s.person()) {
		s.socket.send(faultOf(errFlood))
		return
	}
	s.say(&control.PeerMessage{Message: &control.PeerMessage_Say{Say: &control.Say{Text: m.Text, Id: m.ID}}})
}

func wireChat(c *control.Chat, epoch uint64) *wire.Chat {
	return &wire.Chat{
		Peer: wire.PeerID(c.GetPeer()), Name: c.GetName(), Text: c.GetText(), ID: c.GetId(),
		At: c.GetAtUnixMs(), Seq: c.GetSeq(), Epoch: epoch,
	}
}
