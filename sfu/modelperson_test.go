package sfu

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/pin"
)

// person is a client with its signaling node, which follows the room.
type person struct {
	world *world
	id    string

	mu         sync.Mutex // guards the fields below
	generation uint64
	wants      bool
	lost       bool // refused for good
	stop       context.CancelFunc
	stream     *near[*control.PeerMessage, *control.PeerEvent]
	fence      *control.Fence
	served     pin.BootID
	name       string
	known      map[string]*control.Peer
	lines      []string
}

func (p *person) inside() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wants && !p.lost
}

func (p *person) roster() map[string]*control.Peer {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.known)
}

func (p *person) heard() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.lines)
}

// join has the person come, if it is not there.
func (p *person) join() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wants {
		return
	}
	p.world.note("%s joins", p.id)
	ctx, stop := context.WithCancel(context.Background())
	p.wants, p.lost, p.stop = true, false, stop
	p.lines, p.served = nil, ""
	go p.run(ctx)
}

// leave says so.
func (p *person) leave() {
	p.say(&control.PeerMessage{Message: &control.PeerMessage_Leave{Leave: &control.Leave{}}})
	synctest.Wait()
	p.mu.Lock()
	if p.wants {
		p.world.note("%s leaves", p.id)
	}
	p.mu.Unlock()
	p.disconnect()
}

// disconnect is a client that says nothing more.
func (p *person) disconnect() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stop != nil {
		p.stop()
	}
	p.wants, p.stop = false, nil
}

// reconnect has a client lose its signaling node, and come back by another one.
func (p *person) reconnect(after time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stream != nil && p.wants {
		p.world.note("%s loses its signaling node", p.id)
		time.AfterFunc(after, p.follow)
		p.stream.cut()
	}
}

// follow attaches again.
func (p *person) follow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stream != nil {
		p.stream.cut()
	}
}

func (p *person) say(m *control.PeerMessage) {
	p.mu.Lock()
	stream, fence := p.stream, p.fence
	p.mu.Unlock()
	if stream != nil {
		m.Fence = fence
		_ = stream.Send(m)
	}
}

// run keeps the person attached, as a session does.
func (p *person) run(ctx context.Context) {
	var to *control.Place
	for hops := 0; ctx.Err() == nil; hops++ {
		next, wait := p.attach(ctx, to)
		to = next
		if wait || hops > 3 {
			hops = 0
			pause := time.NewTimer(50 * time.Millisecond)
			select {
			case <-pause.C:
			case <-ctx.Done():
			}
		}
	}
}

// attach attaches once, and stays until the stream ends. It returns where to attach next, nil for the owner, and whether to wait before.
func (p *person) attach(ctx context.Context, to *control.Place) (next *control.Place, wait bool) {
	w := p.world
	at := w.pin()
	node := cmp.Or(to.GetNode(), string(at.Node))
	process := w.reach(node)
	if process == nil {
		return nil, true
	}
	line := newWire[*control.PeerMessage, *control.PeerEvent](ctx)
	defer line.cut()
	w.lay(line.cut, process, nil)
	process.ended.Go(func() {
		defer close(line.answered)
		_ = (&service{node: process.node}).Attach(far[*control.PeerMessage, *control.PeerEvent]{wire: line})
	})
	stream := near[*control.PeerMessage, *control.PeerEvent]{wire: line}
	p.mu.Lock()
	p.generation++
	p.fence = control.FenceProto(at.Fence)
	first := &control.PeerMessage{Fence: p.fence, Message: &control.PeerMessage_Attach{Attach: &control.Attach{
		Pin: control.PinProto(at), Room: modelRoom, Peer: &control.Peer{Id: p.id, Identity: p.id, Name: cmp.Or(p.name, p.id)}, Generation: p.generation,
		CanPublish: true, CanSubscribe: true, KnowsPlaces: true, KnowsRosterChanges: true, ServedBy: string(p.served),
	}}}
	for _, entry := range p.known {
		first.GetAttach().Expected = append(first.GetAttach().Expected, entry)
	}
	p.mu.Unlock()
	if stream.Send(first) != nil {
		return nil, true
	}
	for {
		event, err := stream.Recv()
		if err != nil {
			p.mu.Lock()
			p.stream = nil
			p.mu.Unlock()
			return nil, true
		}
		if next, ends, wait := p.heed(event, &stream, process); ends {
			p.mu.Lock()
			p.stream = nil
			p.mu.Unlock()
			return next, wait
		}
	}
}

// heed takes an event in. ends says that the stream is of no more use.
func (p *person) heed(event *control.PeerEvent, stream *near[*control.PeerMessage, *control.PeerEvent], at *process) (next *control.Place, ends, wait bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.GetEvent().(type) {
	case *control.PeerEvent_Attached:
		p.world.note("%s attached at %s gen %d", p.id, at.node.cfg.Node, p.generation)
		p.stream, p.served = stream, at.node.cfg.Boot
		p.replace(e.Attached.GetRoster())
	case *control.PeerEvent_Roster:
		p.replace(e.Roster.GetPeers())
	case *control.PeerEvent_RosterChange:
		p.change(e.RosterChange)
	case *control.PeerEvent_RosterChanges:
		changes, err := control.DecodeRosterChanges(e.RosterChanges)
		if err != nil {
			p.world.t.Error(err)
		}
		for _, change := range changes {
			p.change(change)
		}
	case *control.PeerEvent_Chat:
		p.world.note("%s hears %s (seq %d) at %s", p.id, e.Chat.GetId(), e.Chat.GetSeq(), at.node.cfg.Node)
		// A person who attaches again is told the last lines again.
		if !slices.Contains(p.lines, e.Chat.GetId()) {
			p.lines = append(p.lines, e.Chat.GetId())
		}
	case *control.PeerEvent_Elsewhere:
		return e.Elsewhere.GetPlace(), true, false
	case *control.PeerEvent_Fenced, *control.PeerEvent_Closed:
		return nil, true, true
	case *control.PeerEvent_Refused:
		switch e.Refused.GetCode() {
		case control.Refusal_REFUSAL_ELSEWHERE:
			return e.Refused.GetElsewhere(), true, e.Refused.GetElsewhere() == nil
		case control.Refusal_REFUSAL_ROOM_FULL, control.Refusal_REFUSAL_REMOVED:
			p.world.note("%s is refused: %s", p.id, e.Refused.GetMessage())
			p.lost, p.wants = true, false
			p.stop()
		default:
		}
		return nil, true, true
	}
	return nil, false, false
}

func (p *person) replace(peers []*control.Peer) {
	p.known = map[string]*control.Peer{}
	for _, entry := range peers {
		p.known[entry.GetId()] = entry
	}
	if own := p.known[p.id]; own != nil {
		p.name = own.GetName()
	}
}

func (p *person) change(change *control.RosterChange) {
	if left := change.GetLeft(); left != "" {
		delete(p.known, left)
		return
	}
	entry := change.GetJoined()
	if entry == nil {
		entry = change.GetUpdated()
	}
	p.known[entry.GetId()] = entry
	if entry.GetId() == p.id {
		p.name = entry.GetName()
	}
}
