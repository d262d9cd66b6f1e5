package rest

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/moderation"
	"github.com/holdfast-rtc/holdfast/signaling/reply"
	"github.com/holdfast-rtc/holdfast/signaling/translate"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// media is a media node's account of one peer, with counts since each slot or track began; an age of -1 ms is never.
type media struct {
	// EstimateBitsPerSecond is 0 if nothing is limited.
	EstimateBitsPerSecond uint64 `json:"estimateBitsPerSecond"`
	// ShortBitsPerSecond is what the path lacks; 0 if it suffices.
	ShortBitsPerSecond uint64       `json:"shortBitsPerSecond"`
	Slots              []mediaSlot  `json:"slots"`
	Tracks             []mediaTrack `json:"tracks"`
	Unplaced           []unplaced   `json:"unplaced"`
}

type mediaSlot struct {
	Mid    string      `json:"mid"`
	Kind   wire.Kind   `json:"kind"`
	Peer   string      `json:"peer"`
	Source wire.Source `json:"source"`
	Ready  bool        `json:"ready"`
	Paused bool        `json:"paused"`
	// Waits is empty when the slot sends.
	Waits          string `json:"waits"`
	Target         string `json:"target"`
	Sent           string `json:"sent"`
	PacketsIn      uint64 `json:"packetsIn"`
	PacketsOut     uint64 `json:"packetsOut"`
	KeyframesAsked uint64 `json:"keyframesAsked"`
	AskedMsAgo     int64  `json:"askedMsAgo"`
	KeyframesSent  uint64 `json:"keyframesSent"`
	SentMsAgo      int64  `json:"sentMsAgo"`
}

type mediaTrack struct {
	Source         wire.Source `json:"source"`
	Rid            string      `json:"rid"`
	SSRC           uint32      `json:"ssrc"`
	Muted          bool        `json:"muted"`
	PacketsIn      uint64      `json:"packetsIn"`
	HeardMsAgo     int64       `json:"heardMsAgo"`
	BitsPerSecond  uint64      `json:"bitsPerSecond"`
	Height         uint32      `json:"height"`
	KeyframesAsked uint64      `json:"keyframesAsked"`
	AskedMsAgo     int64       `json:"askedMsAgo"`
	KeyframesSeen  uint64      `json:"keyframesSeen"`
	SeenMsAgo      int64       `json:"seenMsAgo"`
}

type unplaced struct {
	SSRC    uint32 `json:"ssrc"`
	Packets uint64 `json:"packets"`
	Codec   string `json:"codec"`
}

func mediaOf(m *control.MediaState) *media {
	if m == nil {
		return nil
	}
	return &media{
		EstimateBitsPerSecond: m.GetEstimateBitsPerSecond(), ShortBitsPerSecond: m.GetShortBitsPerSecond(),
		Slots: each(m.GetSlots(), func(s *control.SlotState) mediaSlot {
			return mediaSlot{
				Mid: s.GetMid(), Kind: translate.Kind(s.GetKind()), Peer: s.GetPeer(), Source: translate.Source(s.GetSource()),
				Ready: s.GetReady(), Paused: s.GetPaused(), Waits: s.GetWaits(), Target: s.GetTarget(), Sent: s.GetSent(),
				PacketsIn: s.GetPacketsIn(), PacketsOut: s.GetPacketsOut(), KeyframesAsked: s.GetKeyframesAsked(), AskedMsAgo: s.GetAskedMsAgo(),
				KeyframesSent: s.GetKeyframesSent(), SentMsAgo: s.GetSentMsAgo(),
			}
		}),
		Tracks: each(m.GetTracks(), func(t *control.TrackState) mediaTrack {
			return mediaTrack{
				Source: translate.Source(t.GetSource()), Rid: t.GetRid(), SSRC: t.GetSsrc(), Muted: t.GetMuted(), PacketsIn: t.GetPacketsIn(),
				HeardMsAgo: t.GetHeardMsAgo(), BitsPerSecond: t.GetBitsPerSecond(), Height: t.GetHeight(), KeyframesAsked: t.GetKeyframesAsked(),
				AskedMsAgo: t.GetAskedMsAgo(), KeyframesSeen: t.GetKeyframesSeen(), SeenMsAgo: t.GetSeenMsAgo(),
			}
		}),
		Unplaced: each(m.GetUnplaced(), func(s *control.Stream) unplaced {
			return unplaced{SSRC: s.GetSsrc(), Packets: s.GetPackets(), Codec: s.GetCodec()}
		}),
	}
}

type heldPeer struct {
	Peer     string `json:"peer"`
	Identity string `json:"identity"`
	// Node has the peer, if that is a branch of the room.
	Node      string `json:"node,omitempty"`
	Attached  bool   `json:"attached"`
	Connected bool   `json:"connected"`
	Offers    uint64 `json:"offers"`
	// Signaling is the signaling node that holds its stream; empty if none does.
	Signaling string `json:"signaling"`
	// Transport is udp or tcp, RoundTripMs that of its last report (0: not known), and LostPermille what did not arrive of the worst of the
	// streams that it is sent. They are told with Media.
	Transport    string `json:"transport,omitempty"`
	RoundTripMs  uint32 `json:"roundTripMs,omitempty"`
	LostPermille uint32 `json:"lostPermille,omitempty"`
	Media        *media `json:"media,omitempty"`
}

type heldRoom struct {
	Room                string     `json:"room"`
	Node                string     `json:"node"`
	Boot                string     `json:"boot"`
	Epoch               uint64     `json:"epoch"`
	Peers               []heldPeer `json:"peers"`
	PacketsForwarded    uint64     `json:"packetsForwarded"`
	PacketsDropped      uint64     `json:"packetsDropped"`
	PacketsLate         uint64     `json:"packetsLate"`
	EgressBitsPerSecond uint64     `json:"egressBitsPerSecond"`
	// Members are the nodes of a room that has branches, the owner first. The counts above are of all of them.
	Members []member `json:"members,omitempty"`
	// Changes are the last ones of these nodes, the oldest first.
	Changes []change `json:"changes,omitempty"`
	// Standby can go on with the room's connections.
	Standby *standby `json:"standby,omitempty"`

	fill  float64
	owner string // not empty for a branch's part of a room
}

// member is a node that carries some of a room's people.
type member struct {
	Node                string `json:"node"`
	People              uint32 `json:"people"`
	EgressBitsPerSecond uint64 `json:"egressBitsPerSecond"`
	// Fill is the node's load/ceiling, with people who are on their way to it; 0: not known.
	Fill float64 `json:"fill,omitempty"`
	// Why, Since, Stays and Link are of a branch. Since is in Unix ms.
	Why   string `json:"why,omitempty"`
	Stays string `json:"stays,omitempty"`
	Since int64  `json:"since,omitempty"`
	Link  *link  `json:"link,omitempty"`
}

// standby is a node that stands by for a room.
type standby struct {
	Node        string `json:"node"`
	Connections uint32 `json:"connections"`
}

// change is one of a spread room's nodes.
type change struct {
	At     int64  `json:"at"` // Unix ms
	What   string `json:"what"`
	Node   string `json:"node"`
	To     string `json:"to,omitempty"`
	People uint32 `json:"people,omitempty"`
	Why    string `json:"why"`
}

// link joins a branch to the owner.
type link struct {
	Up       bool        `json:"up"`
	Sent     linkFigures `json:"sent"` // by the owner
	Received linkFigures `json:"received"`
}

// linkFigures count since the link began.
type linkFigures struct {
	Packets uint64 `json:"packets"`
	Lost    uint64 `json:"lost"`
	Layers  uint32 `json:"layers"` // that cross now
	Known   uint32 `json:"known"`  // that were announced
}

func linkOf(m *control.Member) *link {
	figures := func(f *control.LinkFigures) linkFigures {
		return linkFigures{Packets: f.GetPackets(), Lost: f.GetLost(), Layers: f.GetLayers(), Known: f.GetKnown()}
	}
	return &link{Up: m.GetUp(), Sent: figures(m.GetSent()), Received: figures(m.GetReceived())}
}

// merged makes one row of a room's owner and its branches. A branch whose owner did not answer is left out, as all rooms of that owner are.
func merged(rooms []heldRoom) []heldRoom {
	type part struct{ room, owner string }
	parts := map[part][]heldRoom{}
	whole := make([]heldRoom, 0, len(rooms))
	for _, r := range rooms {
		if r.owner == "" {
			whole = append(whole, r)
		} else {
			parts[part{r.Room, r.owner}] = append(parts[part{r.Room, r.owner}], r)
		}
	}
	for i := range whole {
		whole[i].join(parts[part{whole[i].Room, whole[i].Node}])
	}
	return whole
}

// join adds the branches' parts to the owner's row, which knows of each branch unless it has just left the room.
func (r *heldRoom) join(parts []heldRoom) {
	if len(parts)+len(r.Members) == 0 {
		return
	}
	own := member{Node: r.Node, People: uint32(min(len(r.Peers), 1<<20)), EgressBitsPerSecond: r.EgressBitsPerSecond, Fill: r.fill}
	for _, p := range parts {
		at := slices.IndexFunc(r.Members, func(m member) bool { return m.Node == p.Node })
		if at < 0 {
			at = len(r.Members)
			r.Members = append(r.Members, member{Node: p.Node, Link: &link{}})
		}
		r.Members[at].People, r.Members[at].EgressBitsPerSecond = uint32(min(len(p.Peers), 1<<20)), p.EgressBitsPerSecond
		for _, peer := range p.Peers {
			peer.Node = p.Node
			r.Peers = append(r.Peers, peer)
		}
		r.PacketsForwarded, r.PacketsDropped, r.PacketsLate = r.PacketsForwarded+p.PacketsForwarded, r.PacketsDropped+p.PacketsDropped, r.PacketsLate+p.PacketsLate
		r.EgressBitsPerSecond += p.EgressBitsPerSecond
	}
	r.Members = append([]member{own}, r.Members...)
}

type roomsAnswer struct {
	Rooms       []heldRoom    `json:"rooms"`
	Unreachable []ring.NodeID `json:"unreachable"`
}

type roomAnswer struct {
	// Explanation is only for tokens that may see the whole cluster.
	Explanation *orchestrator.Explanation `json:"explanation,omitempty"`
	HeldBy      []heldRoom                `json:"heldBy"`
	Unreachable []ring.NodeID             `json:"unreachable"`
}

func (a *API) serveRooms(w http.ResponseWriter, r *http.Request) {
	reply.JSON(w, http.StatusOK, a.askAll(r.Context(), &control.RoomsRequest{Media: r.URL.Query().Has("media")}))
}

// serveRoom answers a token that runs the room or sees the cluster.
func (a *API) serveRoom(w http.ResponseWriter, r *http.Request) {
	grant, err := a.grantOf(r)
	if err != nil {
		reply.Refuse(w, err)
		return
	}
	room, err := roomOf(r, "")
	if err != nil {
		reply.Refuse(w, err)
		return
	}
	var answer roomAnswer
	// The explanation names other rooms' nodes.
	if grant.ForCluster() == nil {
		explanation, err := a.deps.Placer.Explain(r.Context(), room)
		if err != nil {
			reply.Refuse(w, err)
			return
		}
		answer.Explanation = &explanation
	} else if err := a.mayAsk(grant, room); err != nil {
		reply.Refuse(w, err)
		return
	}
	held := a.askAll(r.Context(), &control.RoomsRequest{Room: string(room), Media: r.URL.Query().Has("media")})
	// An older media node tells of all its rooms.
	answer.HeldBy = slices.DeleteFunc(held.Rooms, func(h heldRoom) bool { return h.Room != string(room) })
	answer.Unreachable = held.Unreachable
	reply.JSON(w, http.StatusOK, answer)
}

// askAll asks every node, because the store knows only where rooms are meant to be.
func (a *API) askAll(ctx context.Context, request *control.RoomsRequest) roomsAnswer {
	rooms, unreachable := moderation.AskNodes(ctx, a.deps.Moderation, "rooms", func(ctx context.Context, _ cluster.Node, client control.MediaClient) ([]heldRoom, error) {
		reply, err := client.Rooms(ctx, request)
		return heldRooms(reply), err
	})
	slices.SortFunc(rooms, func(a, b heldRoom) int { return cmp.Or(cmp.Compare(a.Room, b.Room), cmp.Compare(a.Node, b.Node)) })
	return roomsAnswer{Rooms: merged(rooms), Unreachable: unreachable}
}

func membersOf(branches []*control.Member) []member {
	return each(branches, func(m *control.Member) member {
		return member{Node: m.GetPlace().GetNode(), People: m.GetPeople(), Why: m.GetWhy(), Since: m.GetSinceUnixMs(), Fill: m.GetFill(), Stays: m.GetStays(), Link: linkOf(m)}
	})
}

func standbyOf(s *control.RoomStandby) *standby {
	if s == nil {
		return nil
	}
	return &standby{Node: s.GetNode(), Connections: s.GetConnections()}
}

func heldRooms(reply *control.RoomsReply) []heldRoom {
	return each(reply.GetRooms(), func(h *control.HeldRoom) heldRoom {
		return heldRoom{
			Room: h.GetRoom(), Node: reply.GetNode(), Boot: reply.GetBoot(), Epoch: h.GetPin().GetFence().GetEpoch(),
			PacketsForwarded: h.GetPacketsForwarded(), PacketsDropped: h.GetPacketsDropped(), PacketsLate: h.GetPacketsLate(), EgressBitsPerSecond: h.GetEgressBitsPerSecond(),
			owner: h.GetOwner(), Members: membersOf(h.GetBranches()), fill: h.GetFill(),
			Changes: each(h.GetChanges(), func(c *control.SpreadChange) change {
				return change{At: c.GetAtUnixMs(), What: c.GetWhat(), Node: c.GetNode(), To: c.GetTo(), People: c.GetPeople(), Why: c.GetWhy()}
			}),
			Standby: standbyOf(h.GetStandby()),
			Peers: each(h.GetPeers(), func(p *control.HeldPeer) heldPeer {
				return heldPeer{
					Peer: p.GetId(), Identity: p.GetIdentity(), Attached: p.GetAttached(), Connected: p.GetConnected(), Offers: p.GetOffers(),
					Signaling: p.GetSignaling(), Transport: p.GetTransport(), RoundTripMs: p.GetRoundTripMs(), LostPermille: p.GetLostPermille(),
					Media: mediaOf(p.GetMedia()),
				}
			}),
		}
	})
}
