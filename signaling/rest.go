package signaling

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/readiness"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

const (
	devTokenLife = 12 * time.Hour
	readyLimit   = time.Second
)

var errWarming = errors.New("the cluster has not been seen yet: no member of --join has answered")

// serveReady answers balancers: not before gossip settled and the store was reached once, nor while cut off from the media
// nodes, alone without the store, or overloaded. Running calls need no store.
func (s *Server) serveReady(w http.ResponseWriter, r *http.Request) {
	s.writeSockets(w)
	if s.storeReached.Load() {
		w.Header().Set(readiness.StoreHeader, readiness.StoreReached)
	}
	if err := cmp.Or(s.checkReady(r.Context()), s.checkEven()); err != nil {
		writeText(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	writeText(w, http.StatusOK, "ready")
}

func (s *Server) checkReady(ctx context.Context) error {
	if view := s.parts.Views.View(); view == nil || !view.Settled {
		return errWarming
	}
	if s.leaving.Load() {
		return errLeaving
	}
	if s.cut.Load() {
		return errCutOff
	}
	if s.full() {
		return errFull
	}
	if s.storeless.Load() {
		return errStoreless
	}
	if s.ready.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	if err := s.parts.Store.Ping(ctx); err != nil {
		s.log.Debug("store not reached", "error", err)
		return errors.New("the store has not been reached yet (is --store right, is Redis running?): nobody can join until it is")
	}
	s.ready.Store(true)
	return nil
}

func (s *Server) full() bool { return s.sockets.Load() >= int64(s.config.MaxSockets) }

type clientConfig struct {
	Dev      bool   `json:"dev"`
	Protocol int    `json:"protocol"`
	Kill     bool   `json:"kill,omitempty"`
	Invite   string `json:"invite,omitempty"`
}

func (s *Server) serveConfig(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, clientConfig{Dev: s.config.Dev, Protocol: wire.Version, Kill: s.mayKill(), Invite: s.config.InviteURL})
}

func (s *Server) serveDevToken(w http.ResponseWriter, r *http.Request) {
	room, err := access.CheckRoom(r.URL.Query().Get("room"))
	if err != nil {
		writeFault(w, err)
		return
	}
	grant := access.Everything(cmp.Or(r.URL.Query().Get("identity"), "dev-"+newPeerID()), room)
	grant.Name, grant.CanWatch, grant.CanMessage, grant.RoomAdmin = r.URL.Query().Get("name"), true, true, r.URL.Query().Has("moderate")
	if len(grant.Name) > wire.MaxNameBytes {
		grant.Name = strings.ToValidUTF8(grant.Name[:wire.MaxNameBytes], "")
	}
	token, err := s.parts.Keys.Mint("", grant, devTokenLife)
	if err != nil {
		writeFault(w, err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	writeJSON(w, http.StatusOK, map[string]string{"token": token})
}

// granted refuses requests whose token does not pass.
func (s *Server) granted(pass func(access.Grant) error) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			grant, err := s.grantOf(r)
			if err == nil {
				err = pass(grant)
			}
			if err != nil {
				writeFault(w, err)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// unstored keeps answers out of caches.
func unstored(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

func (s *Server) grantOf(r *http.Request) (access.Grant, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return access.Grant{}, access.ErrForged
	}
	grant, err := s.parts.Keys.Verify(strings.TrimSpace(token))
	if err == nil && grant.Check {
		err = access.ErrCheck
	}
	return grant, err
}

type restFault struct {
	Code      wire.Code `json:"code"`
	Message   string    `json:"message"`
	Retryable bool      `json:"retryable"`
}

func writeFault(w http.ResponseWriter, err error) {
	fault := faultOf(err)
	status := wire.MeaningOf(fault.Code).Status
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if fault.Retryable {
		w.Header().Set("Retry-After", "1")
	}
	writeJSON(w, status, restFault{Code: fault.Code, Message: fault.Message, Retryable: fault.Retryable})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		writeText(w, http.StatusInternalServerError, "the answer could not be encoded")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n'))
}

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n"))
}
