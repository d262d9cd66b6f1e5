package signaling

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

func (s *session) iceServers() wire.ICEServers {
	if s.server.config.ICEServers == nil {
		return wire.ICEServers{}
	}
	servers, life := s.server.config.ICEServers(s.relaySession(), s.ends(), time.Now())
	return wire.ICEServers{ICEServers: servers, ForMs: life.Milliseconds()}
}

// relaySession is one for all joins of an identity, whose limits it has. Relays log it; it does not show who that is.
func (s *session) relaySession() string {
	sum := sha256.Sum256([]byte(s.strikeName()))
	return hex.EncodeToString(sum[:8])
}

func (s *session) giveICEServers() {
	servers := s.iceServers()
	s.socket.send(&servers)
}

// RenewICEServers gives everybody in a room new credentials, before those of a former cluster key are worth nothing.
func (s *Server) RenewICEServers() {
	s.hosted.mu.Lock()
	defer s.hosted.mu.Unlock()
	for one := range s.hosted.sessions {
		select {
		case one.renew <- struct{}{}:
		default: // it is about to
		}
	}
}
