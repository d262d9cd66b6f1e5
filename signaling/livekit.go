package signaling

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/endings"
	"github.com/holdfast-rtc/holdfast/signaling/fault"
	"github.com/holdfast-rtc/holdfast/signaling/livekit"
	"github.com/holdfast-rtc/holdfast/signaling/livekit/livekitpb"
	"github.com/holdfast-rtc/holdfast/signaling/reply"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// What follows is the door for clients of LiveKit. They are let in as ours are: their token is checked by the session that begins with
// the join, which is made here of their request.

// livekitEntry is a request of such a client that was understood.
type livekitEntry struct {
	token   string // the access token, without what continues a session
	request *livekitpb.JoinRequest
	first   wire.Message
	known   *livekit.Self // who continues a session, else nil
	state   string        // of the session that is continued
	// two says that the client has a connection for each direction.
	two bool
}

var errLiveKit = fault.Detailed(wire.CodeBadMessage, "this is not a request of a LiveKit client that can be answered", "docs/LIVEKIT.md has the clients that work.")

// liveKitToken is in the header, or in the query, where browsers have it.
func liveKitToken(r *http.Request) string {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return cmp.Or(strings.TrimSpace(token), r.URL.Query().Get("access_token"))
}

// enterLiveKit reads a request. A token that cannot join is refused before the upgrade, because clients read the status then.
func (s *Server) enterLiveKit(r *http.Request) (*livekitEntry, error) {
	token, resume, state, err := s.parts.Keys.Unfold(liveKitToken(r))
	if err != nil {
		return nil, err
	}
	e := &livekitEntry{token: token, state: state}
	query := r.URL.Query()
	if e.two = !query.Has("join_request") && !strings.HasPrefix(r.URL.Path, "/rtc/v1"); e.two {
		e.request = livekit.ReadQuery(query)
	} else if e.request, err = livekit.ReadRequest(query.Get("join_request")); err != nil {
		return nil, fmt.Errorf("%w: %w", errLiveKit, err)
	}
	if e.continues(r.Context(), s, resume) {
		return e, nil
	}
	grant, err := s.parts.Keys.Verify(token)
	if err == nil {
		_, err = grant.ForRoom("")
	}
	e.first = &wire.Join{Token: token, RosterChanges: true, Places: true}
	return e, err
}

// continues reports whether the client goes on with its session. One that has left begins another: clients also leave in order to connect again.
func (e *livekitEntry) continues(ctx context.Context, s *Server, resume string) bool {
	if resume == "" {
		return false
	}
	who, err := s.parts.Keys.Open(resume)
	if err != nil || errors.Is(s.endings.Ended(ctx, who), endings.ErrLeft) {
		return false
	}
	e.known = &livekit.Self{Room: who.Room, Peer: wire.PeerID(who.Peer), Identity: who.Identity, Name: who.Name, Permissions: permissionsOf(who)}
	e.first = &wire.Resume{Resume: resume, Attempt: attemptOf(who, s.parts.Store.Now()), Epoch: who.Epoch, RosterChanges: true, Places: true}
	return true
}

// attemptOf grows from one connection to the next, as these clients have no number of their own: it is the age of the session in
// milliseconds. A client that is told to connect again does so within a few of them.
func attemptOf(who access.Session, now time.Time) uint64 {
	const most = 1<<40 - 1
	return uint64(min(max(now.UnixMilli()-who.Began, 0)+2, most))
}

// serveLiveKitCheck answers a client that asks why it could not connect.
func (s *Server) serveLiveKitCheck(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Access-Control-Allow-Origin", "*")
	if _, err := s.enterLiveKit(r); err != nil {
		s.warnOfToken(err, "LiveKit", r.RemoteAddr)
		reply.Refuse(w, err)
		return
	}
	_, _ = w.Write([]byte("success"))
}

// serveLiveKit takes a client's WebSocket. Its token stands for its origin, which LiveKit's servers do not check either: no cookie opens anything here.
func (s *Server) serveLiveKit(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Access-Control-Allow-Origin", "*")
	conn := connOf(r.Context())
	if conn == nil || s.full() {
		reply.Refuse(w, errFull)
		return
	}
	entry, err := s.enterLiveKit(r)
	if err != nil {
		s.warnOfToken(err, "LiveKit", r.RemoteAddr)
		reply.Refuse(w, err)
		return
	}
	slim := &slimWriter{ResponseWriter: w}
	accepted, err := websocket.Accept(slim, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if slim.refused != 0 {
		reply.Refuse(w, fmt.Errorf("%w: %w", wire.ErrMalformed, errNoUpgrade))
	}
	if err != nil {
		s.log.Debug("socket of a LiveKit client refused", "remote", r.RemoteAddr, "error", err)
		return
	}
	accepted.SetReadLimit(strangerBytes)
	k := &socket{
		conn: accepted, panics: s.panics, tcp: conn, config: &s.config, log: s.log, in: make(chan inbound, incomingMessages),
		prompts: prompts{wake: make(chan struct{}, 1)},
	}
	var one *session
	k.livekit = livekit.New(livekit.Deps{
		Send: k.push, Wake: k.rouse, Node: s.config.Node, TwoConnections: entry.two, UserAgent: r.UserAgent(), Log: s.log,
		Renew:     func(resume, state string) string { return s.renewLiveKit(entry.token, resume, state) },
		Supersede: func(peer wire.PeerID) { one.supersede(peer) }, //nolint:contextcheck // the removal outlives the socket
	}, entry.request, entry.first, entry.known, entry.state)
	one = s.prepare(r, k)
	s.begin(r, one)
}

func (s *Server) renewLiveKit(token, resume, state string) string {
	renewed, err := s.parts.Keys.Renew(token, resume, state)
	if err != nil {
		s.log.Debug("token of a LiveKit client not renewed", "error", err)
	}
	return renewed
}

// supersede removes an earlier peer of the session's identity. The session's loop calls it.
func (s *session) supersede(peer wire.PeerID) {
	request := &control.RemoveRequest{Room: string(s.who.Room), Peer: string(peer)}
	s.work(func() {
		if err := s.server.moderation.Remove(context.Background(), request).Err(); err != nil {
			s.log.Info("the identity's earlier peer was not removed", "peer", peer, "error", err)
		}
	})
}
