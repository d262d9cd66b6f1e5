package signaling

import (
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// A pasted list comes as a few lines at once.
const (
	chatPerSecond = 5
	chatBurst     = 10
)

// Without a link the line is lost; the client misses its echo and repeats it.
func (s *session) chat(m *wire.Say) {
	if !s.who.CanChat {
		s.socket.send(faultOf(errNoChat))
		return
	}
	if !s.server.chats.Allow(s.entryKey()) {
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
