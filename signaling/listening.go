package signaling

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/time/rate"

	"github.com/holdfast-rtc/holdfast/people/waitlist"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/fault"
	"github.com/holdfast-rtc/holdfast/signaling/reply"
	"github.com/holdfast-rtc/holdfast/signaling/rest"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// serveSocket returns at once, so that net/http frees the request.
func (s *Server) serveSocket(w http.ResponseWriter, r *http.Request) {
	conn := connOf(r.Context())
	if conn == nil || s.full() {
		reply.Refuse(w, errFull)
		return
	}
	socket, err := s.upgrade(w, r, conn)
	if err != nil {
		s.log.Debug("socket refused", "remote", r.RemoteAddr, "error", err)
		return
	}
	s.begin(r, s.prepare(r, socket))
}

// prepare makes the session of a socket.
func (s *Server) prepare(r *http.Request, socket *socket) *session {
	address := addressOf(r, s.config.TrustedProxies)
	if address.IsValid() {
		socket.tcp.CountFor(address)
	}
	one := &session{
		began:  time.Now(),
		server: s, socket: socket, log: s.log, address: address,
		offers: rate.NewLimiter(rate.Limit(s.config.OffersPerSecond), s.config.OfferBurst),
		seat:   seat{socket: socket, moves: make(chan pin.Pin, 1), died: make(chan pin.BootID, 1)}, reached: make(chan reached), drop: func() {},
		verdicts: make(chan error), unjudge: func() {}, renew: make(chan struct{}, 1),
		mail:     mail{messages: s.parts.Messages, limits: s.limits, socket: socket},
		watching: watching{tracker: s.parts.Presence, limits: s.limits, socket: socket},
	}
	one.line = &line{
		placer: s.parts.Placer, hub: s.hub, doors: s.doors, store: s.parts.Doors, usual: s.config.MaxParticipants,
		work: one.work, socket: socket, log: s.log, who: &one.who, words: make(chan waitlist.Word, 1),
	}
	return one
}

// begin has hostSessions run the session.
func (s *Server) begin(r *http.Request, one *session) {
	select {
	case s.upgraded <- one:
	case <-r.Context().Done():
		_ = one.socket.conn.Close(websocket.StatusServiceRestart, "service restart")
	}
}

func (s *Server) upgrade(w http.ResponseWriter, r *http.Request, tcp *clientConn) (*socket, error) {
	if !speaks(r) {
		reply.Refuse(w, errTongue)
		return nil, errTongue
	}
	slim := &slimWriter{ResponseWriter: w}
	conn, err := websocket.Accept(slim, r, &websocket.AcceptOptions{
		Subprotocols: []string{wire.Subprotocol}, OriginPatterns: rest.PageHosts(s.config.Dev, s.config.Origins),
	})
	if slim.refused == http.StatusForbidden {
		s.warnOfOrigin(r)
		reply.Refuse(w, errOrigin)
	} else if slim.refused != 0 {
		reply.Refuse(w, fmt.Errorf("%w: %w", wire.ErrMalformed, errNoUpgrade))
	}
	if err != nil {
		return nil, fmt.Errorf("accept WebSocket: %w", err)
	}
	conn.SetReadLimit(strangerBytes)
	return &socket{
		conn: conn, decode: s.decode, panics: s.panics, tcp: tcp, config: &s.config, log: s.log,
		in: make(chan inbound, incomingMessages),
	}, nil
}

// The upgrade would succeed without our subprotocol.
func speaks(r *http.Request) bool {
	for offered := range strings.SplitSeq(strings.Join(r.Header.Values("Sec-WebSocket-Protocol"), ","), ",") {
		if strings.EqualFold(strings.TrimSpace(offered), wire.Subprotocol) {
			return true
		}
	}
	return false
}

func (s *Server) full() bool { return s.sockets.Load() >= int64(s.config.MaxSockets) }

func (s *Server) hostSessions(ctx context.Context) {
	var sessions sync.WaitGroup
	defer sessions.Wait()
	for {
		select {
		case one := <-s.upgraded:
			sessions.Go(func() { one.live(ctx) })
		case <-ctx.Done():
			return
		}
	}
}

// warnOfToken logs why a token is none of this deployment, which its bearer is not told. It ignores other refusals.
func (s *Server) warnOfToken(err error, what, remote string) {
	if reply.Of(err).Code != wire.CodeBadToken {
		return
	}
	if unlogged, ok := s.tokenLogs.Next(); ok {
		s.log.Warn("a token was refused", "error", err, "keys", s.parts.Keys.Keys(), "for", what, "remote", remote, "unlogged", unlogged)
	}
}

func (s *Server) admit(m *wire.Join) (access.Session, error) {
	grant, err := s.parts.Keys.Verify(m.Token)
	if err != nil {
		return access.Session{}, err
	}
	room, err := grant.ForRoom(m.Room)
	if err != nil {
		return access.Session{}, err
	}
	until := grant.Expires.Add(s.config.ResumeGrace)
	if grant.Check {
		until = grant.Expires
		if !time.Now().Before(until) { // accepted, because clocks differ
			return access.Session{}, access.ErrExpired
		}
	}
	// Invisible names are empty by now.
	name := cmp.Or(access.ShownName(grant.Name), access.SelfChosenName(m.Name), access.ShownName(grant.Identity), nameless)
	return access.Session{
		Key: grant.Key, Began: s.parts.Store.Now().UnixMilli(),
		Until: until.Unix(), Check: grant.Check,
		Room: room, Peer: access.NewPeerID(), Identity: grant.Identity, Name: name, Metadata: grant.Metadata, Attributes: grant.Attributes,
		CanPublish: grant.CanPublish, Sources: grant.Sources, CanSubscribe: grant.CanSubscribe, CanChat: grant.CanPublishData,
		Hidden: grant.Hidden, RoomCreate: grant.RoomCreate, CanRename: grant.CanRename, CanWatch: grant.CanWatch, CanMessage: grant.CanMessage,
		CanModerate: grant.ForRoomAdmin(room) == nil, ExpectedSize: grant.ExpectedSize,
		MaxParticipants: grant.MaxParticipants,
	}, nil
}

// Why a session may not resume.
var (
	errResumeExpired = fault.Coded(wire.CodeResumeExpired, "the resume token has expired")
	errWithdrawn     = fault.Coded(wire.CodeResumeExpired, "the API key that opened this session is not valid any more")
	errForgedResume  = fault.New(wire.CodeBadToken, "the resume token is not genuine", "Join again.")
)

func (s *Server) readmit(m *wire.Resume) (access.Session, error) {
	who, err := s.parts.Keys.Open(m.Resume)
	if errors.Is(err, access.ErrExpired) {
		return access.Session{}, errResumeExpired
	}
	if errors.Is(err, access.ErrUnknownKey) {
		return access.Session{}, errWithdrawn
	}
	if err != nil {
		return access.Session{}, errForgedResume.Over(err)
	}
	// Not m.Epoch: a client could move its room at will.
	if who.Epoch > 0 {
		s.parts.Placer.Observe(who.Room, pin.Fence{Epoch: who.Epoch})
	}
	return who, nil
}

// connect begins a session in no room.
func (s *Server) connect(m *wire.Connect) (access.Session, error) {
	grant, err := s.parts.Keys.Verify(m.Token)
	if err == nil && grant.Identity == "" {
		err = access.ErrNoIdentity
	}
	if err == nil && grant.Check {
		err = access.ErrCheck
	}
	return access.Session{
		Key: grant.Key, Began: s.parts.Store.Now().UnixMilli(), Peer: access.NewPeerID(), Identity: grant.Identity,
		Name:   cmp.Or(access.ShownName(grant.Name), access.ShownName(grant.Identity), nameless),
		Hidden: grant.Hidden, CanWatch: grant.CanWatch, CanMessage: grant.CanMessage,
	}, err
}
