// Package rest answers a signaling node's HTTP requests: the page, the REST API, one file a resource, and what routes to them.
//
// Every answer but the page is JSON. A refusal has a code, a sentence and whether to retry; see reply.Refusal. Tokens decide who may ask what:
// docs/API.md has each request and its grant, and a test compares it with the routes. The WebSocket and the readiness check are handlers
// that the signaling node hands over. Begin with API; each of its methods stands in the file of its resource.
package rest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/internal/readiness"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/people/messaging"
	"github.com/holdfast-rtc/holdfast/people/presence"
	"github.com/holdfast-rtc/holdfast/people/roster"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/door"
	"github.com/holdfast-rtc/holdfast/signaling/endings"
	"github.com/holdfast-rtc/holdfast/signaling/fault"
	"github.com/holdfast-rtc/holdfast/signaling/limits"
	"github.com/holdfast-rtc/holdfast/signaling/moderation"
	"github.com/holdfast-rtc/holdfast/signaling/operator"
	"github.com/holdfast-rtc/holdfast/signaling/reply"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// Views gives the current view.
type Views interface {
	View() *cluster.View
}

// Placer explains where a room belongs; see orchestrator.Orchestrator.
type Placer interface {
	Explain(ctx context.Context, room ring.RoomID) (orchestrator.Explanation, error)
}

// Hub counts the sessions that get no media from a boot.
type Hub interface {
	Stalled(boot pin.BootID) (stalled, all int)
}

// Users is who is online in the whole cluster.
type Users interface {
	Ask(ctx context.Context, users []string) ([]presence.Status, error)
	List(ctx context.Context, page uint64) (users []presence.Status, next uint64, err error)
	Count(ctx context.Context) (users int64, err error)
}

// Rosters asks the store once.
type Rosters interface {
	Roster(ctx context.Context, room ring.RoomID) (roster.Room, error)
}

// Messenger carries notices to users.
type Messenger interface {
	Submit(sender *messaging.Client, to messaging.UserID, m messaging.Message) error
	Counters() messaging.Counters
}

// MediaSockets says which media sockets a boot tells clients of, and which are silent here.
type MediaSockets interface {
	Told(boot pin.BootID) (told, silent []string)
}

// Killer kills a media node's process in development clusters.
type Killer interface {
	Kill(ctx context.Context, node string) error
}

// Config is a part of the signaling node's; see signaling.Config.
type Config struct {
	Node             ring.NodeID
	Dev              bool
	Origins          []string
	HSTS             time.Duration
	InviteURL        string
	DemandRoomCreate bool
}

// Deps is what an API needs.
type Deps struct {
	Config Config

	Keys    *access.Keyring
	Views   Views
	Placer  Placer
	Pool    *control.Pool
	Hub     Hub
	Users   Users
	Rosters Rosters
	Events  Events
	// Recorder may be nil. Then nothing is recorded.
	Recorder *events.Recorder
	Messages Messenger
	// Loads are those of the last minutes.
	Loads *operator.History
	// MediaSockets may be nil. Then media sockets are not checked.
	MediaSockets MediaSockets
	// Killer is nil outside development clusters.
	Killer Killer
	// RelayCounters is nil without a relay.
	RelayCounters func() any
	// Static has the page, with index.html.
	Static fs.FS

	Limits     *limits.Limits
	Endings    *endings.Endings
	Moderation *moderation.Moderation
	Doors      *door.Doors

	// RoomService answers LiveKit's server SDKs.
	RoomService http.Handler
	// Socket answers requests for the WebSocket.
	Socket http.HandlerFunc
	// LiveKit answers requests for the WebSocket of LiveKit's clients; LiveKitCheck says whether it would.
	LiveKit, LiveKitCheck http.HandlerFunc
	// Ready answers balancers.
	Ready http.HandlerFunc
	// Sockets counts the connections that have a session.
	Sockets func() int64
	Pending func() (waiting int, sentAway uint64)
	// TokenRefused hears why a request's token does not count. It may be nil.
	TokenRefused func(err error, what, remote string)

	Panics *panics.Guard
	Log    *slog.Logger
}

// API is the HTTP side of one signaling node.
type API struct {
	deps     Deps
	list     operator.Rooms
	departed *departed
}

// New returns an API.
func New(deps Deps) *API { return &API{deps: deps, departed: newDeparted(deps.Events)} }

// granted refuses requests whose token does not pass.
func (a *API) granted(pass func(access.Grant) error) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			grant, err := a.grantOf(r)
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

// grantOf reads the request's token, and has the reason logged if it is none of this deployment.
func (a *API) grantOf(r *http.Request) (access.Grant, error) {
	var grant access.Grant
	given := r.Header.Get("Authorization")
	token, ok := strings.CutPrefix(given, "Bearer ")
	err := error(access.ErrMissing)
	if ok {
		grant, err = a.deps.Keys.Verify(strings.TrimSpace(token))
	} else if given != "" {
		err = fmt.Errorf("%w: the header Authorization has no Bearer before the token", access.ErrMissing)
	}
	if err == nil && grant.Check {
		err = access.ErrCheck
	}
	if err != nil && a.deps.TokenRefused != nil {
		a.deps.TokenRefused(err, r.Method+" of the HTTP API", r.RemoteAddr)
	}
	return grant, err
}

// takeOrders has the routes of those who may change the cluster.
func (a *API) takeOrders(r chi.Router) {
	r.Use(a.granted(access.Grant.ForClusterAdmin))
	r.Post("/nodes/{node}/drain", a.serveDrain)
	r.Delete("/nodes/{node}/drain", a.serveDrain)
	r.Post("/rooms/{room}/move", a.serveMove)
	r.Post("/rooms/{room}/spread", a.serveSpread)
	r.Post("/rooms/{room}/gather", a.serveGather)
	r.Delete("/presence", a.serveUserRemoval)
}

// Handler routes all requests.
func (a *API) Handler() http.Handler {
	r := chi.NewRouter()
	r.Use(a.headers, a.catchRequests)
	if a.deps.Config.Dev {
		r.Use(a.ownNameOnly)
	}
	r.Use(readableQuery)
	r.NotFound(serveNothing)
	r.MethodNotAllowed(servesWrongMethod(r))
	r.Get("/ws", a.deps.Socket)
	for _, path := range []string{"/rtc", "/rtc/v1"} {
		r.Get(path, a.deps.LiveKit)
		r.Get(path+"/validate", a.deps.LiveKitCheck)
	}
	r.Get("/healthz", func(w http.ResponseWriter, _ *http.Request) { reply.Text(w, http.StatusOK, "alive") })
	r.Get(readiness.Path, a.deps.Ready)
	r.Handle("/twirp/*", a.deps.RoomService)
	r.Route("/api/v1", func(r chi.Router) {
		r.Get("/config", a.serveConfig)
		r.Get("/openapi.json", serveOpenAPI)
		if a.deps.Config.Dev {
			r.Get("/dev/token", a.serveDevToken)
			r.Post("/dev/operator", a.serveDevOperator)
		}
		if a.mayKill() {
			r.Post("/dev/kill", a.serveDevKill)
		}
		r.Group(func(r chi.Router) {
			r.Use(unstored)
			r.Get("/rooms/{room}/roster", a.serveRoster)
			r.Get("/rooms/*", a.serveRoom)
			r.Delete("/rooms/*", a.serveCallEnd)
			r.Delete("/peers", a.serveRemoval)
			r.Post("/peers/{act}", a.serveModeration)
			r.Get("/door", a.serveDoor)
			r.Patch("/door", a.serveDoor)
			r.Post("/check", a.serveCheck)
			r.Post("/messages", a.serveMessages)
			r.Post("/waiting", a.serveWaiting)
			r.Delete("/waiting", a.serveWaiting)
			r.Group(func(r chi.Router) {
				r.Use(a.granted(access.Grant.ForCluster))
				r.Get("/nodes", a.serveNodes)
				r.Get("/nodes/{node}/drain", a.serveDrain)
				r.Get("/process", a.serveProcess)
				r.Get("/rooms", a.serveRooms)
				r.Get("/presence", a.servePresence)
				r.Get("/events", a.serveEvents)
				r.Get("/overview", a.serveOverview)
				r.Get("/ring", a.serveRing)
				r.Get("/loads", a.serveLoads)
				r.Get("/room-list", a.serveRoomList)
			})
			r.Group(a.takeOrders)
		})
	})
	files := servesStatic(a.deps.Static)
	r.Get("/*", files)
	r.Head("/*", files)
	return r
}

// contentPolicy allows this node's own scripts, what the page has captured or made, and connections to this node.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; " +
	"connect-src 'self'; media-src 'self' blob: mediastream:; worker-src 'self' blob:; manifest-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

func (a *API) headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Permissions-Policy", "camera=(self), microphone=(self), display-capture=(self)")
		if a.deps.Config.HSTS > 0 {
			h.Set("Strict-Transport-Security", fmt.Sprintf("max-age=%.0f", a.deps.Config.HSTS.Seconds()))
		}
		// A new build serves other content under the same names, so caches must ask each time.
		h.Set("Cache-Control", "no-cache")
		h.Add("Vary", "Origin")
		if origin := r.Header.Get("Origin"); a.embeds(origin) {
			h.Set("Access-Control-Allow-Origin", origin)
		}
		next.ServeHTTP(w, r)
	})
}

func (a *API) embeds(origin string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false
	}
	return matches(PageHosts(a.deps.Config.Dev, a.deps.Config.Origins), u.Host)
}

// PageHosts are the patterns of hosts whose pages may connect: in dev, also every server of this machine.
func PageHosts(dev bool, origins []string) []string {
	if !dev {
		return origins
	}
	return append([]string{"localhost", "localhost:*", "127.0.0.1", "127.0.0.1:*", `\[::1\]`, `\[::1\]:*`}, origins...)
}

func matches(patterns []string, host string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(strings.ToLower(pattern), strings.ToLower(host))
		return ok && err == nil
	})
}

// ownNameOnly refuses names in dev that are not this machine's. With DNS rebinding a stranger's page would have our
// origin, which gets tokens. A request without a Host is from no browser, but perhaps from a health check.
func (a *API) ownNameOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		host = strings.ToLower(strings.Trim(host, "[]"))
		_, err := netip.ParseAddr(host)
		if err != nil && host != "" && host != "localhost" && !strings.HasSuffix(host, ".localhost") &&
			!matches(a.deps.Config.Origins, host) && !matches(a.deps.Config.Origins, r.Host) {
			reply.Refuse(w, fault.Sayf(wire.CodeNotAllowed, "This development node is not known as %.100q: open it by its address, or start it with --origin and that name.", host))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (a *API) catchRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caught := a.deps.Panics.Catch(a.deps.Log, "a request broke its handling", func() { next.ServeHTTP(w, r) },
			"method", r.Method, "path", fmt.Sprintf("%.200q", r.URL.Path), "remote", r.RemoteAddr)
		if !caught {
			return
		}
		w.Header().Set("Connection", "close")
		reply.Refuse(w, errBroke)
	})
}

func (a *API) mayAsk(grant access.Grant, room ring.RoomID) error {
	if err := grant.ForRoomAdmin(room); err != nil {
		return err
	}
	if !a.deps.Limits.AskAboutRoom(room) {
		return limits.ErrFlood
	}
	return nil
}

// people names one peer, an identity's peers, or everybody in a room.
type people struct {
	Room           ring.RoomID
	Peer, Identity string
}

func (a *API) whomOf(r *http.Request) (access.Grant, people, error) {
	grant, err := a.grantOf(r)
	if err != nil {
		return grant, people{}, err
	}
	query := r.URL.Query()
	room, err := access.CheckRoom(query.Get("room"))
	if err != nil {
		return grant, people{}, err
	}
	whom := people{Room: room, Peer: query.Get("peer"), Identity: access.Identity(query.Get("identity"))}
	if whom.Peer != "" && whom.Identity != "" || len(whom.Peer) > wire.MaxPeerIDBytes || len(whom.Identity) > access.MaxIdentityBytes {
		return grant, whom, fmt.Errorf("%w: %w", wire.ErrMalformed, ErrWhom)
	}
	return grant, whom, a.mayAsk(grant, room)
}

// roomOf reads "/api/v1/rooms/{room}" and what follows. Names may contain slashes.
func roomOf(r *http.Request, follows string) (ring.RoomID, error) {
	name, err := url.PathUnescape(strings.TrimSuffix(strings.TrimPrefix(r.URL.EscapedPath(), "/api/v1/rooms/"), follows))
	if err != nil {
		return "", access.ErrBadRoom
	}
	return access.CheckRoom(name)
}

// ErrWhom refuses a request that names nobody, or both a peer and an identity.
var ErrWhom = errors.New("name one peer or one identity")

// nobodyFound says why an order reached nobody, and is nil if it reached somebody.
func nobodyFound(found int, unreachable []ring.NodeID) error {
	switch {
	case found > 0:
		return nil
	case len(unreachable) > 0:
		return fault.Sayf(wire.CodeNodeUnreachable, "Nobody was found, but %s did not answer and may have them. Try again in a moment.", joined(unreachable))
	default:
		return errNobodyFound
	}
}

var errNobodyFound = fault.Coded(wire.CodeUnknownPerson, "nobody was found")

var errBroke = errors.New("this signaling node broke while it handled this request")

func each[A, B any, L ~[]A](list L, f func(A) B) []B {
	out := make([]B, 0, len(list))
	for _, a := range list {
		out = append(out, f(a))
	}
	return out
}
