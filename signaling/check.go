package signaling

import (
	"cmp"
	"errors"
	"net/http"
	"time"

	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/limits"
)

const (
	checkTokenLife = 3 * time.Minute
	checkPlaces    = 2 // the page sends to itself
)

var errNoCheck = errors.New("a connection test opens a room of its own, and the token does not allow opening one (roomCreate)")

// serveCheck gives a token of a new room for a connection test, unseen by the invitation's room. Who may join no call gets none.
func (s *Server) serveCheck(w http.ResponseWriter, r *http.Request) {
	token, err := s.checkToken(r)
	if err != nil {
		writeFault(w, err)
		return
	}
	writeJSON(w, http.StatusOK, map[string]string{"token": token})
}

// checkToken ends with the asking token, and has its identity: all quotas of an identity count the test with its calls.
func (s *Server) checkToken(r *http.Request) (string, error) {
	asking, err := s.grantOf(r)
	if err != nil {
		return "", err
	}
	if _, err := asking.ForRoom(cmp.Or(string(asking.Room), "check")); err != nil {
		return "", err
	}
	life := min(checkTokenLife, time.Until(asking.Expires))
	switch {
	case s.config.DemandRoomCreate && !asking.RoomCreate:
		return "", errNoCheck
	case life <= 0: // accepted, because clocks differ
		return "", access.ErrExpired
	case !s.limits.TestConnection(limits.Person{Key: asking.Key, Identity: asking.Identity}):
		return "", errTooOften
	}
	return s.parts.Keys.Mint(asking.Key, asking.ForCheck(ring.RoomID("check-"+newPeerID()), checkPlaces), life)
}

// ends is when all that a connection test made is over; zero for other sessions.
func (s *session) ends() time.Time {
	if !s.who.Check {
		return time.Time{}
	}
	return time.Unix(s.who.Until, 0)
}

// expire has the session's loop end it at that time.
func (s *session) expire() {
	if ends := s.ends(); !ends.IsZero() {
		s.over = time.After(time.Until(ends))
	}
}
