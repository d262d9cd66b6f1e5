// Package signaling is a signaling node: it serves the page, the REST API and the WebSocket, and holds each client's socket while
// the room behind it may move between nodes.
//
// A client is told to restart once per fence. A socket that dies without a leave costs no media if the client resumes, here or on another
// signaling node. A room is never moved here because its node does not answer. A slow, flooding or lying client harms only itself,
// and every queue is bounded.
//
// A Placer knows where rooms belong; failover tells, by Moved, which nodes are dead. Offers, answers and slots pass through.
// No other package knows WebSocket.
//
// Begin with session.go, the loop of one client; then entry.go, link.go and moving.go, its way into a room, to a media node and to another
// one. A session owns values with methods of their own: its line, mail, watching, memory, seat and socket. Sessions share a package with the
// server although both are large: as a package of its own, session would export some fifty errors and thirty other names to the server and
// to the tests that stand beside it, and would be read no more easily.
package signaling

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/connlimit"
	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/internal/loglimit"
	"github.com/holdfast-rtc/holdfast/internal/metrics"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/internal/readiness"
	"github.com/holdfast-rtc/holdfast/internal/traces"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/people/messaging"
	"github.com/holdfast-rtc/holdfast/people/presence"
	"github.com/holdfast-rtc/holdfast/people/waitlist"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/door"
	"github.com/holdfast-rtc/holdfast/signaling/endings"
	"github.com/holdfast-rtc/holdfast/signaling/fault"
	"github.com/holdfast-rtc/holdfast/signaling/gaps"
	"github.com/holdfast-rtc/holdfast/signaling/hub"
	"github.com/holdfast-rtc/holdfast/signaling/limits"
	"github.com/holdfast-rtc/holdfast/signaling/moderation"
	"github.com/holdfast-rtc/holdfast/signaling/operator"
	"github.com/holdfast-rtc/holdfast/signaling/replica"
	"github.com/holdfast-rtc/holdfast/signaling/rest"
	"github.com/holdfast-rtc/holdfast/signaling/twirp"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// Placer says where rooms live; see orchestrator.Orchestrator.
type Placer interface {
	// Place returns or makes the room's pin, with waitlist.ErrDoor if the room has a door.
	Place(ctx context.Context, room ring.RoomID, expect headroom.Room) (pin.Pin, error)
	// PlaceAgain moves a room that its node refused.
	PlaceAgain(ctx context.Context, room ring.RoomID, refused pin.Pin, expect headroom.Room) (pin.Pin, error)
	// Move moves a room off from, whose node lives, to the named node or the placer's choice.
	Move(ctx context.Context, room ring.RoomID, from pin.Pin, to ring.NodeID, expect headroom.Room, why string) (pin.Pin, error)
	Observe(room ring.RoomID, fence pin.Fence)
	// Opened says from which load report on the node counts the room.
	Opened(room ring.RoomID, node ring.NodeID, chargedInReport uint64)
	Explain(ctx context.Context, room ring.RoomID) (orchestrator.Explanation, error)
	// Enter is Place through the room's door. A *waitlist.WaitError lets nobody in.
	Enter(ctx context.Context, room ring.RoomID, expect headroom.Room, e waitlist.Entry) (pin.Pin, waitlist.Answer, error)
}

// Views gives the current view.
type Views interface {
	View() *cluster.View
}

// Store has pins and notes; see redisstore.
type Store interface {
	Ping(ctx context.Context) error
	Pins(ctx context.Context, rooms []ring.RoomID, visit func(pin.Holding) error) error
	Note(ctx context.Context, room ring.RoomID, notes map[string]string, life time.Duration) error
	Notes(ctx context.Context, room ring.RoomID, names ...string) ([]string, error)
	// Now is the store's clock.
	Now() time.Time
}

// Messenger carries messages to other nodes; nodelink.Links is one.
type Messenger interface {
	Open(client *messaging.Client)
	Close(client *messaging.Client)
	Submit(sender *messaging.Client, to messaging.UserID, m messaging.Message) error
	Received(client *messaging.Client, from messaging.UserID, stream string, seq uint64)
	Counters() messaging.Counters
}

// Doors keeps who may enter capped rooms; see redisstore.
type Doors interface {
	CheckIn(ctx context.Context, rooms []waitlist.Asked) []waitlist.Checked
	Door(ctx context.Context, room ring.RoomID, o waitlist.Order) (waitlist.Door, error)
	Described(ctx context.Context) (map[ring.RoomID]string, error)
}

// Reports gossips this node's own figures.
type Reports interface {
	SetLoad(load cluster.Load)
}

// Parts is what a Server needs.
type Parts struct {
	Placer Placer
	Pool   *control.Pool
	Views  Views
	Store  Store
	Keys   *access.Keyring
	Static fs.FS         // with index.html
	Killer rest.Killer   // nil outside development clusters
	Panics *panics.Guard // nil: its own

	Messages Messenger         // run by the caller; nil: for this node's users
	Presence *presence.Tracker // run by the caller
	Users    rest.Users        // of all nodes
	Rosters  rest.Rosters
	Doors    Doors
	Reports  Reports
	Events   rest.Events      // of all nodes
	Recorder *events.Recorder // run by the caller; nil: nothing is recorded
	Metrics  *metrics.Clients // nil: nothing is counted
	Traces   *traces.Tracer   // run by the caller; nil: nothing is traced

	MediaSockets rest.MediaSockets // run by the caller; nil: unchecked

	RelayCounters func() any // nil: no relay
}

// signalingNodes includes this one.
func (p Parts) signalingNodes() int {
	view := p.Views.View()
	if view == nil {
		return 1
	}
	return max(len(view.Signaling), 1)
}

// Server is one signaling node.
type Server struct {
	config Config
	parts  Parts
	hub    *hub.Hub
	log    *slog.Logger
	panics *panics.Guard
	decode func([]byte) (wire.Message, error)
	// around wraps the handler of all requests. Tests set it.
	around func(http.Handler) http.Handler

	rosters      *replica.Rosters
	pending      *connlimit.Limiter
	loads        operator.History
	limits       *limits.Limits
	retries      retrySchedule
	strangerLogs *loglimit.Limiter
	pathLogs     *loglimit.Limiter
	originLogs   *loglimit.Limiter
	tokenLogs    *loglimit.Limiter

	endings    *endings.Endings
	gaps       *gaps.Gaps
	moderation *moderation.Moderation
	doors      *door.Doors
	others     *others
	reach      *reach
	storeWatch *storeWatch

	ready      atomic.Bool  // the store was reached once
	sockets    atomic.Int64 // with a session
	overloaded atomic.Bool  // others have far fewer
	leaving    atomic.Bool  // Leave was called
	elsewhere  atomic.Bool  // others take the clients
	hosted     hosted
	upgraded   chan *session // for hostSessions
}

const (
	// Without a good token.
	strangerLogsPerSecond = 1
	strangerLogBurst      = 20
)

// Lines about pages of other hosts, which try again and again.
const originLogsPerSecond, originLogBurst = 0.1, 3

// Lines about tokens that no key here has signed. They are for the developer of an application, who needs a few.
const tokenLogsPerSecond, tokenLogBurst = 0.1, 5

// Lines about the ways of media; clients choose how many.
const pathLogsPerSecond, pathLogBurst = 5, 100

var errStopping = fault.Coded(wire.CodeNotReady, "this signaling node stops")

// New needs Run.
func New(config Config, parts Parts, log *slog.Logger) (*Server, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("signaling configuration: %w", err)
	}
	if parts.Placer == nil || parts.Pool == nil || parts.Views == nil || parts.Store == nil ||
		parts.Keys == nil || parts.Static == nil || parts.Presence == nil || parts.Users == nil || parts.Rosters == nil || parts.Doors == nil {
		return nil, errors.New("signaling needs all of its parts")
	}
	if parts.Messages == nil {
		parts.Messages = lonelyMessenger(config)
	}
	guard := cmp.Or(parts.Panics, panics.New())
	s := &Server{
		config: config, parts: parts, hub: hub.New(hub.Deps{Placer: parts.Placer, Store: parts.Store, Nodes: parts.signalingNodes, Panics: guard, Log: log}), log: log, panics: guard, decode: wire.Decode,
		around:       func(handler http.Handler) http.Handler { return handler },
		pending:      connlimit.New(connlimit.Limits{Total: maxWaiting, PerAddress: config.MaxWaitingPerAddress, Proxies: config.proxies()}),
		limits:       limits.New(config.Limits),
		upgraded:     make(chan *session),
		rosters:      replica.New(),
		gaps:         gaps.New(config.Node, parts.Recorder),
		endings:      endings.New(endings.Deps{Store: parts.Store, Keys: parts.Keys, Panics: guard, Log: log}),
		strangerLogs: loglimit.New(strangerLogsPerSecond, strangerLogBurst),
		pathLogs:     loglimit.New(pathLogsPerSecond, pathLogBurst),
		originLogs:   loglimit.New(originLogsPerSecond, originLogBurst),
		tokenLogs:    loglimit.New(tokenLogsPerSecond, tokenLogBurst),
	}
	s.doors = door.New(door.Deps{Store: parts.Doors, Pool: parts.Pool, Views: parts.Views, Limits: s.limits, Panics: guard, Log: log})
	s.moderation = moderation.New(moderation.Deps{
		Self: config.Node, ExpectedSize: config.ExpectedSize, Placer: parts.Placer, Store: parts.Store, Views: parts.Views, Pool: parts.Pool,
		Rooms: s.hub, Endings: s.endings, Presence: parts.Presence, Panics: guard, Log: log,
	})
	s.others = &others{self: config.Node, log: log}
	s.reach = &reach{
		others: s.others, views: parts.Views, hub: s.hub, after: config.CutOffAfter, panics: guard, log: log, asker: readiness.New(askReadyLimit),
	}
	s.storeWatch = &storeWatch{others: s.others, views: parts.Views, store: parts.Store, after: config.StorelessAfter, node: config.Node, events: parts.Recorder, panics: guard, log: log}
	return s, nil
}

func lonelyMessenger(config Config) Messenger {
	self := messaging.Peer{ID: config.Node, Boot: pin.NewBootID(time.Now())}
	return messaging.New(self, messaging.DefaultConfig(), nobodyElse{}, nobodyElse{})
}

// nobodyElse knows no other node.
type nobodyElse struct{}

func (nobodyElse) Send(messaging.Peer, messaging.Frame) {}

func (nobodyElse) Ask(messaging.UserID) {}

// handler has the routes of this node.
func (s *Server) handler() http.Handler {
	return rest.New(rest.Deps{
		Config: rest.Config{
			Node: s.config.Node, Dev: s.config.Dev, Origins: s.config.Origins, HSTS: s.config.HSTS, InviteURL: s.config.InviteURL,
			DemandRoomCreate: s.config.DemandRoomCreate,
		},
		Keys: s.parts.Keys, Views: s.parts.Views, Placer: s.parts.Placer, Pool: s.parts.Pool, Hub: s.hub, Users: s.parts.Users,
		Rosters: s.parts.Rosters, Events: s.parts.Events, Recorder: s.parts.Recorder, Messages: s.parts.Messages, MediaSockets: s.parts.MediaSockets, Loads: &s.loads, Killer: s.parts.Killer,
		RelayCounters: s.parts.RelayCounters, Static: s.parts.Static,
		Limits: s.limits, Endings: s.endings, Moderation: s.moderation, Doors: s.doors,
		RoomService: twirp.New(twirp.Deps{
			Keys: s.parts.Keys, Store: s.parts.Doors, Limits: s.limits, Moderation: s.moderation, Doors: s.doors, Recorder: s.parts.Recorder, TokenRefused: s.warnOfToken, Log: s.log,
		}),
		Socket: s.serveSocket, LiveKit: s.serveLiveKit, LiveKitCheck: s.serveLiveKitCheck, Ready: s.serveReady, Sockets: s.sockets.Load, Pending: s.pending.Count, TokenRefused: s.warnOfToken,
		Panics: s.panics, Log: s.log,
	}).Handler()
}

// Hub is for failover.
func (s *Server) Hub() *hub.Hub { return s.hub }

// StayingRooms are those of this node's clients, for control.AnswerStaying.
func (s *Server) StayingRooms(boot pin.BootID) []*control.StayingRoom {
	rooms := make([]*control.StayingRoom, 0)
	for room, why := range s.hub.Staying(boot) {
		rooms = append(rooms, &control.StayingRoom{Room: string(room), Reason: why})
	}
	return rooms
}

// Run serves until ctx ends. It then sends clients elsewhere (close code 1012) and returns after all sessions.
func (s *Server) Run(ctx context.Context, lis net.Listener) error {
	life, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	server := &http.Server{
		Handler:     s.behindProxy(s.around(s.handler())),
		BaseContext: func(net.Listener) context.Context { return life },
		ConnContext: withConn,
		// WebSockets have none of these.
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       60 * time.Second,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		TLSConfig:         s.config.TLS,
		Protocols:         &http.Protocols{},
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
	}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetHTTP2(true)
	server.Protocols.SetUnencryptedHTTP2(true) // holdfast front ends TLS and passes HTTP/2 on
	ended := make(chan error, 1)
	clients := proxied(&clientListener{connlimit.Listen(lis, s.pending)}, s.config.ProxyProtocolFrom, s.config.proxies())
	go func() {
		if s.config.TLS == nil {
			ended <- server.Serve(clients)
		} else {
			ended <- server.ServeTLS(clients, "", "")
		}
	}()
	var watched sync.WaitGroup
	watched.Go(func() { s.reach.watch(life) })
	watched.Go(func() { s.storeWatch.watch(life) })
	watched.Go(func() { s.hub.Run(life) })
	watched.Go(func() { s.endings.Run(life) })
	watched.Go(func() { s.doors.Run(life) })
	watched.Go(func() { s.countSockets(life) })
	watched.Go(func() { s.hostSessions(life) })
	watched.Go(func() { s.loads.Run(life, s.parts.Views.View) })
	var err error
	select {
	case <-ctx.Done():
	case err = <-ended:
	}
	stop(errStopping)
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownLimit)
	defer cancel()
	if server.Shutdown(limited) != nil {
		_ = server.Close()
	}
	watched.Wait()
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve signaling on %s: %w", lis.Addr(), err)
	}
	return nil
}
