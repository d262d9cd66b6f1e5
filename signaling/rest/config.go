package rest

import (
	"net/http"

	"github.com/holdfast-rtc/holdfast/signaling/reply"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

type clientConfig struct {
	Dev      bool   `json:"dev"`
	Protocol int    `json:"protocol"`
	Kill     bool   `json:"kill,omitempty"`
	Invite   string `json:"invite,omitempty"`
}

func (a *API) serveConfig(w http.ResponseWriter, _ *http.Request) {
	reply.JSON(w, http.StatusOK, clientConfig{Dev: a.deps.Config.Dev, Protocol: wire.Version, Kill: a.mayKill(), Invite: a.deps.Config.InviteURL})
}
