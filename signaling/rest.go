package signaling

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/internal/readiness"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/reply"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// granted refuses requests whose token does not pass.
func (s *Server) granted(pass func(access.Grant) error) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			grant, err := s.grantOf(r)
			if err == nil {
				err = pass(grant)
			}
			if err != nil {
				reply.Refuse(w, err)
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

func (s *Server) routes() http.Handler {
	r := chi.NewRouter()
	r.Use(s.headers, s.bearRequests)
	if s.config.Dev {
		r.Use(s.ownNameOnly)
	}
	r.Get("/ws", s.serveSocket)
	r.Get("/healthz", func(w http.ResponseWriter, _ *http.Request) { reply.Text(w, http.StatusOK, "alive") })
	r.Get(readiness.Path, s.serveReady)
	r.Route("/api/v1", func(r chi.Router) {
		r.Get("/config", s.serveConfig)
		if s.config.Dev {
			r.Get("/dev/token", s.serveDevToken)
		}
		if s.mayKill() {
			r.Post("/dev/kill", s.serveDevKill)
		}
		r.Group(func(r chi.Router) {
			r.Use(unstored)
			r.Get("/rooms/{room}/roster", s.serveRoster)
			r.Get("/rooms/*", s.serveRoom)
			r.Delete("/peers", s.serveRemoval)
			r.Post("/peers/{act}", s.serveModeration)
			r.Get("/door", s.serveDoor)
			r.Patch("/door", s.serveDoor)
			r.Post("/check", s.serveCheck)
			r.Post("/messages", s.serveMessages)
			r.Post("/waiting", s.serveWaiting)
			r.Delete("/waiting", s.serveWaiting)
			r.Group(func(r chi.Router) {
				r.Use(s.granted(access.Grant.ForCluster))
				r.Get("/nodes", s.serveNodes)
				r.Get("/nodes/{node}/drain", s.serveDrain)
				r.Get("/process", s.serveProcess)
				r.Get("/rooms", s.serveRooms)
				r.Get("/presence", s.servePresence)
			})
			r.Group(func(r chi.Router) {
				r.Use(s.granted(access.Grant.ForClusterAdmin))
				r.Post("/nodes/{node}/drain", s.serveDrain)
				r.Delete("/nodes/{node}/drain", s.serveDrain)
				r.Post("/rooms/{room}/move", s.serveMove)
				r.Delete("/presence", s.serveUserRemoval)
			})
		})
	})
	files := servesStatic(s.parts.Static)
	r.Get("/*", files)
	r.Head("/*", files)
	return r
}

// Our own scripts, what the page captured or made, this node.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; " +
	"connect-src 'self'; media-src 'self' blob: mediastream:; worker-src 'self' blob:; manifest-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

func (s *Server) headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Permissions-Policy", "camera=(self), microphone=(self), display-capture=(self)")
		if s.config.HSTS > 0 {
			h.Set("Strict-Transport-Security", fmt.Sprintf("max-age=%.0f", s.config.HSTS.Seconds()))
		}
		// New builds keep the names: caches must ask.
		h.Set("Cache-Control", "no-cache")
		h.Add("Vary", "Origin")
		if origin := r.Header.Get("Origin"); s.embeds(origin) {
			h.Set("Access-Control-Allow-Origin", origin)
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) embeds(origin string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false
	}
	return matches(s.config.pageHosts(), u.Host)
}

// In dev, every server of this machine.
func (c *Config) pageHosts() []string {
	if !c.Dev {
		return c.Origins
	}
	return append([]string{"localhost", "localhost:*", "127.0.0.1", "127.0.0.1:*", `\[::1\]`, `\[::1\]:*`}, c.Origins...)
}

func matches(patterns []string, host string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(strings.ToLower(pattern), strings.ToLower(host))
		return ok && err == nil
	})
}

// ownNameOnly refuses foreign names in dev: with DNS rebinding a stranger's page would have our origin, which gets
// tokens. Without a Host it is no browser, but perhaps a health check.
func (s *Server) ownNameOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		host = strings.ToLower(strings.Trim(host, "[]"))
		_, err := netip.ParseAddr(host)
		if err != nil && host != "" && host != "localhost" && !strings.HasSuffix(host, ".localhost") &&
			!matches(s.config.Origins, host) && !matches(s.config.Origins, r.Host) {
			reply.Text(w, http.StatusForbidden, fmt.Sprintf("this development node is not known as %.100q: open it by its address, or start it with --origin and that name", host))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) bearRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caught := panics.Catch(func() { next.ServeHTTP(w, r) })
		if caught == nil {
			return
		}
		s.panics.Report(s.log, caught, "a request broke its handling", "method", r.Method, "path", fmt.Sprintf("%.200q", r.URL.Path), "remote", r.RemoteAddr)
		w.Header().Set("Connection", "close")
		reply.Refuse(w, errBroke)
	})
}

func (s *Server) mayAsk(grant access.Grant, room ring.RoomID) error {
	if err := grant.ForRoomAdmin(room); err != nil {
		return err
	}
	if !s.limits.AskAboutRoom(room) {
		return errFlood
	}
	return nil
}

// people are one peer, an identity's, or all of a room.
type people struct {
	Room           ring.RoomID
	Peer, Identity string
}

func (s *Server) whomOf(r *http.Request) (access.Grant, people, error) {
	grant, err := s.grantOf(r)
	if err != nil {
		return grant, people{}, err
	}
	query := r.URL.Query()
	room, err := access.CheckRoom(query.Get("room"))
	if err != nil {
		return grant, people{}, err
	}
	whom := people{Room: room, Peer: query.Get("peer"), Identity: query.Get("identity")}
	if whom.Peer != "" && whom.Identity != "" || len(whom.Peer) > wire.MaxPeerIDBytes || len(whom.Identity) > access.MaxIdentityBytes {
		return grant, whom, fmt.Errorf("%w: %w", wire.ErrMalformed, errWhom)
	}
	return grant, whom, s.mayAsk(grant, room)
}

// roomOf reads "/api/v1/rooms/{room}" and what follows. Names may contain slashes.
func roomOf(r *http.Request, follows string) (ring.RoomID, error) {
	name, err := url.PathUnescape(strings.TrimSuffix(strings.TrimPrefix(r.URL.EscapedPath(), "/api/v1/rooms/"), follows))
	if err != nil {
		return "", access.ErrBadRoom
	}
	return access.CheckRoom(name)
}

var errWhom = errors.New("name one peer or one identity")

func statusOf(found int, unreachable []ring.NodeID) int {
	switch {
	case found > 0:
		return http.StatusOK
	case len(unreachable) > 0:
		return http.StatusServiceUnavailable // perhaps on a silent node
	default:
		return http.StatusNotFound
	}
}
