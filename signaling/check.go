package signaling

import (
	"cmp"
	"net/http"
	"time"

	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
)

const (
	checksPerSecond = 0.1 // of an identity; each opens a room
	checkBurst      = 5
	checkTokenLife  = 3 * time.Minute
	checkPlaces     = 2 // the page sends to itself
)

// serveCheck gives a token of a new room for a connection test, unseen by the invitation's room. Who may join no call gets none.
func (s *Server) serveCheck(w http.ResponseWriter, r *http.Request) {
	asking, err := s.grantOf(r)
	if err == nil {
		_, err = asking.ForRoom(cmp.Or(string(asking.Room), "check"))
	}
	if err == nil && !s.checks.Allow(asking.Key+"/"+asking.Identity) {
		err = errTooOften
	}
	if err != nil {
		writeFault(w, err)
		return
	}
	grant := access.Everything("check-"+newPeerID(), ring.RoomID("check-"+newPeerID()))
	grant.RoomCreate, grant.MaxParticipants = true, checkPlaces
	token, err := s.parts.Keys.Mint(asking.Key, grant, checkTokenLife)
	if err != nil {
		writeFault(w, err)
		return
	}
	writeJSON(w, http.StatusOK, map[string]string{"token": token})
}
