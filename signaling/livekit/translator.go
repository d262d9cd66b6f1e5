// Package livekit lets clients of LiveKit join rooms of Holdfast: it translates the frames of their WebSocket to and from the messages of
// signaling/wire. Sessions, moves and limits know nothing of it.
//
// A client of LiveKit has one RTCPeerConnection and always offers, or has another one that it receives on and answers there: see downlink.
// What differs from a client of ours is done here:
//   - A subscription to a track is a media section of the client's offer. The media node fills its slots as for any client. What fills
//     a slot is told by the answer, so that a change takes another offer: lines.go asks for one and answers it from memory.
//   - A client says what it publishes by the track's id in the offer; published.go names the sources of media sections.
//   - Data channels are those of the media node, whose messages are LiveKit's for all clients. A node of an earlier release has none, and
//     their media section is refused.
//   - Most clients cannot move their connection. When the room has moved they are told to connect again, with a token that continues the
//     session: the peer, and what the others see of it, stay. Others resume with the connection that they have: see resumption.
//
// Begin with Translator. livekitpb has the protobuf messages.
package livekit

import (
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/livekit/livekitpb"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// Deps is what a Translator calls, under its lock: none of it may block.
type Deps struct {
	// Send takes a frame for the client.
	Send func(frame []byte)
	// Wake is called when Take has something new outside of Read.
	Wake func()
	// Renew returns a token that continues the session of a resume token, with state for New, or nothing.
	Renew func(resume, state string) string
	// Supersede removes an earlier peer of this client's identity.
	Supersede func(peer wire.PeerID)
	Node      ring.NodeID
	// TwoConnections says that the client has a connection for each direction.
	TwoConnections bool
	UserAgent      string
	Log            *slog.Logger
}

// Self is who a client is.
type Self struct {
	Room           ring.RoomID
	Peer           wire.PeerID
	Identity, Name string
	Permissions    wire.Permissions
}

// Translator is one client's. Its methods may be called concurrently.
type Translator struct {
	deps    Deps
	request *livekitpb.JoinRequest

	mu      sync.Mutex
	pending []wire.Message // for the session
	self    Self
	// metadata are the room's.
	metadata string
	resumes  bool
	joined   bool
	// told is set once the client was told to leave or to connect again. What it says after that is not heard.
	told bool

	people     people
	published  published
	lines      lines
	downlink   downlink
	resumption resumption
}

// New returns the translator of a client whose session begins with first. known is who continues a session, or nil, and state that of the
// session's token.
func New(deps Deps, request *livekitpb.JoinRequest, first wire.Message, known *Self, state string) *Translator {
	t := &Translator{deps: deps, request: request, pending: []wire.Message{first}}
	if known != nil {
		t.self, t.resumes = *known, true
	}
	t.people = newPeople(request.GetConnectionSettings())
	t.lines, t.downlink, t.resumption = newLines(), newDownlink(deps.TwoConnections), newResumption(&deps, request, state)
	return t
}

// Take returns the messages for the session.
func (t *Translator) Take() []wire.Message {
	t.mu.Lock()
	defer t.mu.Unlock()
	taken := t.pending
	t.pending = nil
	return taken
}

// say has the session hear a message of the client's.
func (t *Translator) say(m wire.Message) { t.pending = append(t.pending, m) }

func (t *Translator) tell(response *livekitpb.SignalResponse) {
	frame, err := proto.Marshal(response)
	if err != nil {
		t.deps.Log.Error("message for a LiveKit client not encoded", "error", err)
		return
	}
	t.deps.Send(frame)
}

// Read reads a frame of the client. An error wraps wire.ErrMalformed.
func (t *Translator) Read(frame []byte) error {
	var request livekitpb.SignalRequest
	if err := proto.Unmarshal(frame, &request); err != nil {
		return fmt.Errorf("%w: %w", wire.ErrMalformed, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.told {
		return nil
	}
	switch m := request.GetMessage().(type) {
	case *livekitpb.SignalRequest_PingReq:
		t.tell(&livekitpb.SignalResponse{Message: &livekitpb.SignalResponse_PongResp{
			PongResp: &livekitpb.Pong{LastPingTimestamp: m.PingReq.GetTimestamp(), Timestamp: time.Now().UnixMilli()},
		}})
	case *livekitpb.SignalRequest_Ping:
		t.tell(&livekitpb.SignalResponse{Message: &livekitpb.SignalResponse_Pong{Pong: time.Now().UnixMilli()}})
	case *livekitpb.SignalRequest_Leave:
		t.told = true
		t.say(&wire.Leave{})
	}
	if !t.joined {
		return nil
	}
	t.release()
	switch m := request.GetMessage().(type) {
	case *livekitpb.SignalRequest_Offer:
		return t.offered(m.Offer)
	case *livekitpb.SignalRequest_Answer:
		return t.clientAnswered(m.Answer)
	case *livekitpb.SignalRequest_SyncState:
		t.synced(m.SyncState)
	case *livekitpb.SignalRequest_AddTrack:
		t.addTrack(m.AddTrack)
	case *livekitpb.SignalRequest_Mute:
		t.muted(m.Mute)
	case *livekitpb.SignalRequest_Subscription:
		t.subscribed(m.Subscription)
	case *livekitpb.SignalRequest_TrackSetting:
		t.sized(m.TrackSetting)
	case *livekitpb.SignalRequest_UpdateMetadata:
		t.renamed(m.UpdateMetadata)
	}
	return nil
}

// renamed takes over a name. Metadata are those of the token.
func (t *Translator) renamed(m *livekitpb.UpdateParticipantMetadata) {
	reason := livekitpb.RequestResponse_OK
	switch {
	case !t.self.Permissions.Rename || m.GetMetadata() != "" || len(m.GetAttributes()) > 0 || m.GetName() == "" || len(m.GetName()) > wire.MaxNameBytes:
		reason = livekitpb.RequestResponse_NOT_ALLOWED
	default:
		t.say(&wire.Rename{Name: m.GetName()})
	}
	t.tell(&livekitpb.SignalResponse{Message: &livekitpb.SignalResponse_RequestResponse{
		RequestResponse: &livekitpb.RequestResponse{RequestId: m.GetRequestId(), Reason: reason},
	}})
}

// Write tells the client what the session says.
func (t *Translator) Write(m wire.Message) {
	t.mu.Lock()
	before := len(t.pending)
	if !t.told {
		t.hear(m)
	}
	more := len(t.pending) > before
	t.mu.Unlock()
	if more {
		t.deps.Wake()
	}
}

func (t *Translator) hear(m wire.Message) {
	switch m := m.(type) {
	case *wire.Joined:
		t.self = Self{Room: m.Room, Peer: m.Peer, Identity: m.Identity, Name: m.Name, Permissions: m.Permissions}
		t.described(m.RoomMetadata)
		t.lines.data = m.Data
		t.begin(m.Roster, m.ICEServers, m.Resume)
	case *wire.Resumed:
		t.resumed(m)
	case *wire.PermissionsChanged:
		t.self.Permissions = m.Permissions
		t.renew(m.Resume)
		t.tellSelf()
	case *wire.Restart:
		t.comeBack()
	case *wire.Error:
		if !t.joined {
			t.refused(m)
		}
	case *wire.Bye:
		t.dismiss(m.Code)
	default:
		if t.joined {
			t.hearRoom(m)
		}
	}
}

func (t *Translator) hearRoom(m wire.Message) {
	switch m := m.(type) {
	case *wire.Roster:
		t.replaceRoster(m.Roster)
	case *wire.PeerJoined:
		t.changeRoster(wire.List[wire.Peer]{m.Peer}, nil)
	case *wire.PeerUpdated:
		t.changeRoster(wire.List[wire.Peer]{m.Peer}, nil)
	case *wire.PeerLeft:
		t.changeRoster(nil, wire.List[wire.PeerID]{m.Peer})
	case *wire.RosterChanges:
		t.changeRoster(m.Entries, m.Left)
	case *wire.RoomUpdated:
		t.described(&m.Metadata)
		t.tell(&livekitpb.SignalResponse{Message: &livekitpb.SignalResponse_RoomUpdate{RoomUpdate: &livekitpb.RoomUpdate{Room: t.room(len(t.people.members))}}})
	case *wire.Slots:
		if m.Node != "" {
			t.rest(nil) // What rested at the former node does not at this one.
		}
		t.filled(m.Slots)
	case *wire.Speakers:
		t.spoke(m.Speakers)
	case *wire.Answer:
		t.answered(m)
	case *wire.OfferRejected:
		t.rejected(m)
	case *wire.Reoffer:
		t.askAgain(m)
	case *wire.Rests:
		t.rest(m.Resting)
	case *wire.MutedBy:
		t.mutedBy(m.Source)
	}
}

// begin answers the join. What the client brought with it follows.
func (t *Translator) begin(roster wire.List[wire.Peer], servers wire.ICEServers, resume string) {
	t.joined = true
	if t.resumes && t.resumption.brought != nil {
		t.goOn(roster, servers, resume)
		return
	}
	if t.request.GetReconnect() {
		// The client would go on with its connection, of which nothing is known here.
		if !t.resumes {
			t.say(&wire.Leave{})
		}
		t.reconnect()
		return
	}
	others := t.meet(roster)
	t.tell(&livekitpb.SignalResponse{Message: &livekitpb.SignalResponse_Join{Join: t.joinResponse(others, servers)}})
	t.renew(resume)
	t.tellQuality(others)
	// Until it publishes. Others would take it for somebody with a camera and a microphone otherwise.
	for _, source := range []wire.Source{wire.SourceMicrophone, wire.SourceCamera} {
		t.say(&wire.Mute{Source: source, Muted: true})
	}
	for _, track := range t.request.GetAddTrackRequests() {
		t.addTrack(track)
	}
	if offer := t.request.GetPublisherOffer(); offer.GetSdp() != "" {
		t.lines.held = true
		time.AfterFunc(heldFor, func() {
			t.mu.Lock()
			t.release()
			t.mu.Unlock()
			t.deps.Wake()
		})
		if err := t.offered(offer); err != nil {
			t.deps.Log.Info("offer of a LiveKit client not read", "error", err)
		}
	}
	t.showView()
	t.settle()
}

// protocolVersion and serverVersion are those of the LiveKit server whose answers these follow. Clients refuse a server without a version.
const (
	protocolVersion = 16
	serverVersion   = "1.13.5"
	pingInterval    = 5
	pingTimeout     = 15
)

func (t *Translator) joinResponse(others []*livekitpb.ParticipantInfo, servers wire.ICEServers) *livekitpb.JoinResponse {
	join := &livekitpb.JoinResponse{
		Room:              t.room(len(others)),
		SubscriberPrimary: t.downlink.used,
		Participant:       t.selfInfo(), OtherParticipants: others, ServerVersion: serverVersion, PingInterval: pingInterval, PingTimeout: pingTimeout,
		ServerInfo: t.serverInfo(), IceServers: serversOf(servers),
	}
	for _, mime := range []string{"audio/opus", "audio/red", "video/VP8", "video/H264", "video/VP9", "video/AV1"} {
		join.EnabledPublishCodecs = append(join.EnabledPublishCodecs, &livekitpb.Codec{Mime: mime})
	}
	join.Room.EnabledCodecs = join.GetEnabledPublishCodecs()
	return join
}

func (t *Translator) serverInfo() *livekitpb.ServerInfo {
	return &livekitpb.ServerInfo{Version: serverVersion, Protocol: protocolVersion, NodeId: string(t.deps.Node)}
}

func serversOf(servers wire.ICEServers) (list []*livekitpb.ICEServer) {
	for _, server := range servers.ICEServers {
		list = append(list, &livekitpb.ICEServer{Urls: server.URLs, Username: server.Username, Credential: server.Credential})
	}
	return list
}

// room is what the client is told of the room and of how many others are in it.
func (t *Translator) room(others int) *livekitpb.Room {
	return &livekitpb.Room{
		Sid: RoomSID(t.self.Room), Name: string(t.self.Room), NumParticipants: uint32(min(max(others, 0), math.MaxInt32)) + 1, CreationTime: time.Now().Unix(), Metadata: t.metadata,
	}
}

// described takes the room's metadata; nil are not known, and change nothing.
func (t *Translator) described(metadata *string) {
	if metadata != nil {
		t.metadata = *metadata
	}
}

// resumed answers a client that continues a session. The same message also comes when the media node lost the connection.
func (t *Translator) resumed(m *wire.Resumed) {
	t.described(m.RoomMetadata)
	switch {
	case !t.joined:
		t.lines.data, t.resumption.alive = m.Data, m.MediaAlive
		t.begin(m.Roster, m.ICEServers, m.Resume)
		if t.resumption.awaited {
			t.filled(m.Slots)
		}
	case !m.MediaAlive:
		t.renew(m.Resume)
		t.comeBack()
	default:
		t.renew(m.Resume)
		t.replaceRoster(m.Roster)
		t.filled(m.Slots)
	}
	for _, source := range m.Silenced {
		t.mutedBy(source)
	}
}

// reconnect has the client connect again, with a new RTCPeerConnection.
func (t *Translator) reconnect() {
	t.leave(livekitpb.LeaveRequest_RECONNECT, livekitpb.DisconnectReason_MIGRATION)
}

func (t *Translator) leave(action livekitpb.LeaveRequest_Action, reason livekitpb.DisconnectReason) {
	t.told = true
	t.tell(&livekitpb.SignalResponse{Message: &livekitpb.SignalResponse_Leave{Leave: &livekitpb.LeaveRequest{
		CanReconnect: action != livekitpb.LeaveRequest_DISCONNECT, Action: action, Reason: reason,
	}}})
}

// refused ends a join. An SDK that connects again takes a Leave for the end of its call, but tries again after a WebSocket that is closed
// without one. The session closes it.
func (t *Translator) refused(m *wire.Error) {
	if m.Retryable {
		t.told = true
		return
	}
	t.dismiss(m.Code)
}

// dismiss ends the client's session for good.
func (t *Translator) dismiss(code wire.Code) {
	reason := livekitpb.DisconnectReason_UNKNOWN_REASON
	switch code {
	case wire.CodeKicked, wire.CodeTurnedAway:
		reason = livekitpb.DisconnectReason_PARTICIPANT_REMOVED
	case wire.CodeCallEnded:
		reason = livekitpb.DisconnectReason_ROOM_DELETED
	case wire.CodeSuperseded:
		reason = livekitpb.DisconnectReason_DUPLICATE_IDENTITY
	default:
		if !t.joined {
			reason = livekitpb.DisconnectReason_JOIN_FAILURE
		}
	}
	t.leave(livekitpb.LeaveRequest_DISCONNECT, reason)
}
