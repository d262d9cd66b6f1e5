package signaling

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"google.golang.org/grpc"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// node is one media node: it keeps rosters and generations as the real one does,
// and answers offers with a word.
type node struct {
	control.UnimplementedMediaServer

	id      ring.NodeID
	boot    pin.BootID
	control string
	stop    func()

	mu        sync.Mutex // guards the fields below
	refuse    func(*control.Attach) *control.Refused
	attaches  []*control.Attach
	heard     []string // what the signaling nodes said, by peer name
	peers     map[string]*fakePeer
	gone      map[string]bool // peers whose media was lost
	silent    bool            // offers are not answered
	older     bool            // from before the sound of screens, and takes in whoever attaches
	expects   map[string]bool // peers that others expect there
	holds     bool            // it has every room open
	run       uint64          // as in control.Attached
	branch    bool            // it takes the people of rooms whose pins name other nodes
	size      *control.RoomSize
	egress    uint64
	owner     string // of the room of which this node has a branch
	branches  []*control.Member
	spreads   []*control.SpreadRequest
	spreadErr error
	drain     fakeDrain
	outranked []*control.OutrankRequest
	removals  []string // the peers that were to be removed
	moderated error    // what acts are answered
}

type fakePeer struct {
	entry      *control.Peer
	generation uint64
	stream     grpc.BidiStreamingServer[control.PeerMessage, control.PeerEvent]
	end        context.CancelFunc
	offered    bool
}

func (r *rig) node(id ring.NodeID) *node {
	r.t.Helper()
	lis := listen(r.t)
	n := &node{
		id: id, boot: pin.BootID(fmt.Sprintf("%013d-%s", firstEpoch, id)), control: lis.Addr().String(),
		peers: map[string]*fakePeer{}, gone: map[string]bool{},
	}
	n.stop = r.serve(func(ctx context.Context) error {
		return control.NewServer(r.key, panics.New(), r.log).Serve(ctx, lis, func(s *grpc.Server) { control.RegisterMediaServer(s, n) })
	})
	r.views.add(cluster.Node{ID: id, Boot: n.boot, Role: cluster.RoleSFU, Control: n.control})
	return n
}

// pin is a pin of the node.
func (n *node) pin(epoch uint64) pin.Pin {
	return pin.Pin{Fence: pin.Fence{Epoch: epoch, Nonce: 7}, Node: n.id, Boot: n.boot, Control: n.control}
}

func (n *node) Attach(stream grpc.BidiStreamingServer[control.PeerMessage, control.PeerEvent]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	a := first.GetAttach()
	ctx, end := context.WithCancel(stream.Context())
	defer end()
	p, refused := n.accept(a, stream, end)
	if refused != nil {
		return stream.Send(&control.PeerEvent{Fence: first.GetFence(), Event: &control.PeerEvent_Refused{Refused: refused}})
	}
	said := make(chan *control.PeerMessage)
	go func() {
		defer close(said)
		for {
			m, err := stream.Recv()
			if err != nil {
				return
			}
			select {
			case said <- m:
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		select {
		case m, ok := <-said:
			if !ok || n.hear(p, m) {
				return nil
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// accept attaches a peer. The first word is sent under the lock, so it is the first.
func (n *node) accept(a *control.Attach, stream grpc.BidiStreamingServer[control.PeerMessage, control.PeerEvent], end context.CancelFunc) (*fakePeer, *control.Refused) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.attaches = append(n.attaches, a)
	if n.refuse != nil {
		if refused := n.refuse(a); refused != nil {
			return nil, refused
		}
	}
	if a.GetPin().GetBoot() != string(n.boot) && !n.branch {
		return nil, &control.Refused{Code: control.Refusal_REFUSAL_WRONG_BOOT}
	}
	id := a.GetPeer().GetId()
	p := n.peers[id]
	resumed, here := p != nil && p.offered && !n.gone[id], p != nil || n.expects[id]
	switch {
	case p != nil && a.GetGeneration() <= p.generation:
		return nil, &control.Refused{Code: control.Refusal_REFUSAL_STALE_GENERATION}
	case p == nil && a.GetOnlyIfHere() && !n.older && !n.expects[id]:
		return nil, &control.Refused{Code: control.Refusal_REFUSAL_NOT_HERE}
	case p != nil:
		n.send(p, a.GetPin().GetFence(), &control.PeerEvent{Event: &control.PeerEvent_Closed{Closed: &control.Closed{Reason: "superseded"}}})
		p.end()
	default:
		p = &fakePeer{entry: a.GetPeer()}
		n.peers[id] = p
		for _, other := range n.peers {
			if other != p {
				n.send(other, a.GetPin().GetFence(), &control.PeerEvent{Seq: 2, Event: &control.PeerEvent_RosterChange{
					RosterChange: &control.RosterChange{Change: &control.RosterChange_Joined{Joined: p.entry}},
				}})
			}
		}
	}
	p.generation, p.stream, p.end = a.GetGeneration(), stream, end
	attached := &control.Attached{Run: n.run, Peer: id, Resumed: resumed, ChargedInReport: 3, TakesScreenAudio: !n.older, WasHere: here && !n.older}
	for _, other := range n.peers {
		attached.Roster = append(attached.Roster, other.entry)
	}
	for _, expected := range a.GetExpected() {
		if n.peers[expected.GetId()] == nil {
			attached.Roster = append(attached.Roster, expected)
		}
	}
	n.send(p, a.GetPin().GetFence(), &control.PeerEvent{Seq: 1, Event: &control.PeerEvent_Attached{Attached: attached}})
	return p, nil
}

// send says something to a peer's signaling node. The caller holds n.mu.
func (n *node) send(p *fakePeer, fence *control.Fence, event *control.PeerEvent) {
	event.Fence = fence
	_ = p.stream.Send(event) // A stream that is gone is what many tests are about.
}

// say sends an event to the peer of that name, under a fence.
func (n *node) say(name string, fence pin.Fence, event *control.PeerEvent) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.peers {
		if p.entry.GetName() == name {
			n.send(p, control.FenceProto(fence), event)
		}
	}
}

// breakLinks ends every stream without a word.
func (n *node) breakLinks() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.peers {
		p.end()
	}
}

// hear reports whether the peer left.
func (n *node) hear(p *fakePeer, m *control.PeerMessage) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	name := p.entry.GetName()
	switch e := m.GetMessage().(type) {
	case *control.PeerMessage_Offer:
		n.heard = append(n.heard, fmt.Sprintf("%s offers %s fresh=%t slots=%d", name, e.Offer.GetId(), e.Offer.GetFresh(), len(e.Offer.GetSlots())))
		p.offered, n.gone[p.entry.GetId()] = true, false
		if n.silent {
			return false
		}
		n.send(p, m.GetFence(), &control.PeerEvent{Event: &control.PeerEvent_Answer{Answer: &control.Answer{
			OfferId: e.Offer.GetId(), Sdp: "answer of " + string(n.id) + " to " + e.Offer.GetSdp(),
		}}})
	case *control.PeerMessage_View:
		n.heard = append(n.heard, fmt.Sprintf("%s views %d", name, len(e.View.GetWants())))
	case *control.PeerMessage_Arrived:
		n.heard = append(n.heard, name+" arrived")
	case *control.PeerMessage_Rename:
		n.heard = append(n.heard, name+" renames "+e.Rename.GetName())
	case *control.PeerMessage_Mute:
		n.heard = append(n.heard, fmt.Sprintf("%s mutes %v %t", name, e.Mute.GetSource(), e.Mute.GetMuted()))
	case *control.PeerMessage_Refresh:
		n.heard = append(n.heard, fmt.Sprintf("%s refreshes %v", name, e.Refresh.GetMids()))
	case *control.PeerMessage_Say:
		n.heard = append(n.heard, fmt.Sprintf("%s says %q %s", name, e.Say.GetText(), e.Say.GetId()))
	case *control.PeerMessage_Hand:
		n.heard = append(n.heard, fmt.Sprintf("%s hand %t", name, e.Hand.GetRaised()))
	case *control.PeerMessage_React:
		n.heard = append(n.heard, name+" reacts "+e.React.GetEmoji())
	case *control.PeerMessage_Leave:
		n.heard = append(n.heard, name+" leaves")
		delete(n.peers, p.entry.GetId())
		return true
	}
	return false
}

func (n *node) Rooms(context.Context, *control.RoomsRequest) (*control.RoomsReply, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return &control.RoomsReply{Node: string(n.id), Boot: string(n.boot), Rooms: []*control.HeldRoom{{
		Room: "lobby", Pin: control.PinProto(n.pin(firstEpoch)), Peers: []*control.HeldPeer{{Id: "p-1", Identity: "ada"}}, Size: n.size,
		Owner: n.owner, Branches: n.branches, EgressBitsPerSecond: n.egress,
	}}}, nil
}

func (n *node) Spread(_ context.Context, request *control.SpreadRequest) (*control.SpreadReply, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.spreads = append(n.spreads, request)
	return &control.SpreadReply{Held: !n.silent, Branches: n.branches}, n.spreadErr
}

func (n *node) Holds(context.Context, *control.HoldsRequest) (*control.HoldsReply, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	reply := &control.HoldsReply{Node: string(n.id), Boot: string(n.boot)}
	if n.holds {
		reply.Pin = control.PinProto(n.pin(firstEpoch))
	}
	return reply, nil
}

func (n *node) Process(_ context.Context, request *control.ProcessRequest) (*control.ProcessReply, error) {
	held := uint64(1 << 30)
	if request.GetCollect() {
		held = 1 << 20
	}
	return &control.ProcessReply{Node: string(n.id), Boot: string(n.boot), Goroutines: 7, HeapBytes: held}, nil
}

func (n *node) Remove(_ context.Context, request *control.RemoveRequest) (*control.RemoveReply, error) {
	reply := &control.RemoveReply{}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.removals = append(n.removals, request.GetPeer())
	for id, p := range n.peers {
		if !request.GetEverybody() && id != request.GetPeer() && p.entry.GetIdentity() != request.GetIdentity() {
			continue
		}
		removed := &control.Refused{Code: control.Refusal_REFUSAL_REMOVED, Ended: request.GetEverybody()}
		n.send(p, n.attaches[len(n.attaches)-1].GetPin().GetFence(), &control.PeerEvent{Event: &control.PeerEvent_Refused{Refused: removed}})
		delete(n.peers, id)
		former := n.refuse
		n.refuse = func(a *control.Attach) *control.Refused {
			// A room that was closed remembers nobody.
			if a.GetPeer().GetId() == id && !request.GetEverybody() {
				return removed
			}
			if former != nil {
				return former(a)
			}
			return nil
		}
		reply.Removed, reply.Identities = append(reply.Removed, id), append(reply.Identities, p.entry.GetIdentity())
	}
	return reply, nil
}

// Moderate changes nobody: tests say what the node would.
func (n *node) SendData(context.Context, *control.Data) (*control.SendDataReply, error) {
	return &control.SendDataReply{}, nil
}

func (n *node) Moderate(_ context.Context, m *control.ModerateRequest) (*control.ModerateReply, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	reply := &control.ModerateReply{}
	if n.moderated != nil {
		return nil, n.moderated
	}
	for id, p := range n.peers {
		if id == m.GetPeer() || p.entry.GetIdentity() == m.GetIdentity() || m.GetPeer() == "" && m.GetIdentity() == "" && id != m.GetByPeer() {
			reply.Done = append(reply.Done, id)
			n.heard = append(n.heard, fmt.Sprintf("%s: %v %v by %q", p.entry.GetName(), m.GetAct(), m.GetSource(), m.GetBy()))
		}
	}
	if n.silent { // as if all had been asked a moment ago
		reply.Done, reply.TooSoon = nil, reply.Done
	}
	return reply, nil
}

func (n *node) said() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.heard, "\n")
}

func (n *node) attached() []*control.Attach {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]*control.Attach(nil), n.attaches...)
}

func (n *node) set(change func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change()
}
