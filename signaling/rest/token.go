package rest

import (
	"cmp"
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/fault"
	"github.com/holdfast-rtc/holdfast/signaling/limits"
	"github.com/holdfast-rtc/holdfast/signaling/reply"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

const (
	// CheckTokenLife is how long a token for a connection test lasts at most.
	CheckTokenLife = 3 * time.Minute
	// CheckPlaces is two, since the page sends to itself.
	CheckPlaces = 2
)

// ErrNoCheck refuses a connection test.
var ErrNoCheck = fault.Denied("a connection test opens a room of its own, and the token does not allow opening one (roomCreate)")

// serveCheck makes a token for a connection test in a room of its own, which nobody in the invitation's room sees. A
// token that joins no call gets none.
func (a *API) serveCheck(w http.ResponseWriter, r *http.Request) {
	token, err := a.checkToken(r)
	if err != nil {
		reply.Refuse(w, err)
		return
	}
	reply.JSON(w, http.StatusOK, map[string]string{"token": token})
}

// checkToken makes a token that ends with the asking one and has its identity, so that all quotas of the identity
// count the test with its calls.
func (a *API) checkToken(r *http.Request) (string, error) {
	asking, err := a.grantOf(r)
	if err != nil {
		return "", err
	}
	if _, err := asking.ForRoom(cmp.Or(string(asking.Room), "check")); err != nil {
		return "", err
	}
	life := min(CheckTokenLife, time.Until(asking.Expires))
	switch {
	case a.deps.Config.DemandRoomCreate && !asking.RoomCreate:
		return "", ErrNoCheck
	// The asking token was accepted although its time is over, because clocks differ.
	case life <= 0:
		return "", access.ErrExpired
	case !a.deps.Limits.TestConnection(limits.Person{Key: asking.Key, Identity: asking.Identity}):
		return "", limits.ErrTooOften
	}
	return a.deps.Keys.Mint(asking.Key, asking.ForCheck(ring.RoomID("check-"+access.NewPeerID()), CheckPlaces), life)
}

const devTokenLife = 12 * time.Hour

func (a *API) serveDevToken(w http.ResponseWriter, r *http.Request) {
	room, err := access.CheckRoom(r.URL.Query().Get("room"))
	if err != nil {
		reply.Refuse(w, err)
		return
	}
	grant := access.Everything(cmp.Or(r.URL.Query().Get("identity"), "dev-"+access.NewPeerID()), room)
	grant.Name, grant.CanWatch, grant.CanMessage, grant.RoomAdmin = r.URL.Query().Get("name"), true, true, r.URL.Query().Has("moderate")
	if len(grant.Name) > wire.MaxNameBytes {
		grant.Name = strings.ToValidUTF8(grant.Name[:wire.MaxNameBytes], "")
	}
	token, err := a.deps.Keys.Mint("", grant, devTokenLife)
	if err != nil {
		reply.Refuse(w, err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	reply.JSON(w, http.StatusOK, map[string]string{"token": token})
}
