// Package sfulink is one peer's Attach stream to its room's media node.
//
// Messages under a lower fence than the pin's are dropped. Sending never blocks. A link closed without Leave leaves the peer and
// its media with the node.
package sfulink

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/fault"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// Errors of a link.
var (
	// ErrUnreachable proves nothing about the node.
	ErrUnreachable = fault.Coded(wire.CodeNodeUnreachable, "the room's node does not answer")
	// ErrStuck means that messages for the node piled up.
	ErrStuck = fault.Coded(wire.CodeNodeUnreachable, "the room's node takes no messages")
	// ErrStruck refuses an identity whose messages broke a server twice: this signaling node, or the media node.
	ErrStruck = fault.New(wire.CodeNotAllowed, "what this identity sent has broken the server twice", "Try again in ten minutes, with another client.")
	errClosed = errors.New("link is closed")
)

// Place is a media node that has people of a room: the node of the pin, or a branch of the room. Places may be compared with ==.
type Place struct {
	Node    ring.NodeID
	Boot    pin.BootID
	Control string
}

// Owner is the place that a pin names.
func Owner(p pin.Pin) Place { return Place{Node: p.Node, Boot: p.Boot, Control: p.Control} }

// PlaceOf reads a place. It is zero unless a pin could name it.
func PlaceOf(x *control.Place) Place {
	p := pin.Pin{Fence: pin.Fence{Epoch: 1}, Node: ring.NodeID(x.GetNode()), Boot: pin.BootID(x.GetBoot()), Control: x.GetControl()}
	if p.Validate() != nil {
		return Place{}
	}
	return Owner(p)
}

// RefusedError is a node's refusal.
type RefusedError struct {
	Code      control.Refusal
	Message   string
	Current   pin.Fence // with REFUSAL_FENCED
	Ended     bool      // with REFUSAL_REMOVED: for everybody
	Elsewhere Place     // with REFUSAL_ELSEWHERE: where to attach; zero: at the owner
}

func (e *RefusedError) Error() string { return fmt.Sprintf("refused with %v: %s", e.Code, e.Message) }

// Fault returns what a client hears of the refusal. The media node's own words stay in the log.
func (e *RefusedError) Fault() *fault.Fault {
	if e.Code == control.Refusal_REFUSAL_BROKE {
		return ErrStruck
	}
	if e.Ended {
		return fault.Coded(wire.CodeCallEnded, e.Error())
	}
	return fault.Coded(codeOf(e.Code), e.Error())
}

func codeOf(refusal control.Refusal) wire.Code {
	switch refusal {
	case control.Refusal_REFUSAL_ROOM_FULL:
		return wire.CodeRoomFull
	case control.Refusal_REFUSAL_STALE_GENERATION:
		return wire.CodeSuperseded
	case control.Refusal_REFUSAL_REMOVED:
		return wire.CodeKicked
	case control.Refusal_REFUSAL_NO_HEADROOM, control.Refusal_REFUSAL_DRAINING:
		return wire.CodeNoCapacity
	case control.Refusal_REFUSAL_FENCED, control.Refusal_REFUSAL_WRONG_BOOT, control.Refusal_REFUSAL_UNCONFIRMED,
		control.Refusal_REFUSAL_NOT_HERE:
		return wire.CodeStoreUnavailable
	case control.Refusal_REFUSAL_ELSEWHERE:
		return wire.CodeNodeUnreachable
	default:
		return wire.CodeInternal
	}
}

const (
	// A queue this long means a frozen node.
	outboundMessages = 64
	// Beyond, flow control holds the node back.
	inboundEvents = 64
	leavePatience = time.Second
)

// Opening says how to attach.
type Opening struct {
	Pin          pin.Pin
	At           Place // zero: at the pin's node
	Room         ring.RoomID
	Peer         *control.Peer
	Generation   uint64
	CanPublish   bool
	Sources      uint32
	CanSubscribe bool
	Expected     []*control.Peer
	Known        uint64        // control.RosterDigest of the client's roster; 0: none
	Expect       headroom.Room // if it opens the room
	Path         uint64        // bits per second; 0: unlimited
	Signaling    ring.NodeID   // who attaches
	CanChat      bool          // for applications, who are told of it
	CanRename    bool          // likewise
	Settings     string        // of the room's door; empty: not known
	OnlyIfHere   bool          // refused with REFUSAL_NOT_HERE unless the node knows the peer
	KnowsPlaces  bool          // the client may be sent to a branch of the room
	ServedBy     pin.BootID    // the media node that had the client last; empty: none
}

func (o Opening) place() Place { return cmp.Or(o.At, Owner(o.Pin)) }

func (o Opening) message() *control.PeerMessage {
	var floor *control.Egress
	if o.Expect.Running {
		floor = control.EgressProto(o.Expect.Floor())
	}
	return &control.PeerMessage{Fence: control.FenceProto(o.Pin.Fence), Message: &control.PeerMessage_Attach{Attach: &control.Attach{
		Pin: control.PinProto(o.Pin), Room: string(o.Room), Peer: o.Peer, Generation: o.Generation,
		CanPublish: o.CanPublish, Sources: o.Sources, CanSubscribe: o.CanSubscribe, Expected: o.Expected,
		ExpectedSize: uint32(min(max(o.Expect.People, 0), headroom.MaxPeople)), ExpectedEgress: control.EgressProto(o.Expect.Cost()), Unreserved: o.Expect.Unreserved,
		PathBitsPerSecond: o.Path, KnownRoster: o.Known, ExpectedFloor: floor, KnowsScreenAudio: true, KnowsRosterChanges: true, KnowsAudience: true, OnlyIfHere: o.OnlyIfHere,
		Signaling: string(o.Signaling), KnowsPlaces: o.KnowsPlaces, ServedBy: string(o.ServedBy),
		CanChat: o.CanChat, CanRename: o.CanRename, Settings: o.Settings,
	}}}
}

// Link is an open stream. Only Events needs a single reader.
type Link struct {
	// The pin, the node that has the peer, the node's first word, and its number; constant.
	Pin      pin.Pin
	Place    Place
	Attached *control.Attached
	Seq      uint64

	stream grpc.BidiStreamingClient[control.PeerMessage, control.PeerEvent]
	cancel context.CancelCauseFunc
	done   <-chan struct{}
	in     chan *control.PeerEvent
	ends   sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	out     []*control.PeerMessage
	sending bool
	leaving bool // out takes no more
	err     error
}

// Open attaches until ctx ends or Close, and waits up to patience for the first word. Errors: *RefusedError, ErrUnreachable,
// or the context's.
func Open(ctx context.Context, client control.MediaClient, o Opening, patience time.Duration) (*Link, error) {
	life, cancel := context.WithCancelCause(ctx)
	impatient := time.AfterFunc(patience, func() { cancel(fmt.Errorf("%w within %v", ErrUnreachable, patience)) })
	link, err := open(life, client, o, cancel)
	if !impatient.Stop() && err == nil {
		link.Close()
		err = context.Cause(life)
	}
	if err == nil {
		return link, nil
	}
	if cause := context.Cause(life); cause != nil {
		err = cause // gRPC only says "cancelled"
	}
	cancel(errClosed)
	var refused *RefusedError
	if ctx.Err() == nil && !errors.As(err, &refused) && !errors.Is(err, ErrUnreachable) {
		err = fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	at := o.place()
	return nil, fmt.Errorf("attach to %s (boot %s) at %s: %w", at.Node, at.Boot, at.Control, err)
}

func open(ctx context.Context, client control.MediaClient, o Opening, cancel context.CancelCauseFunc) (*Link, error) {
	stream, err := client.Attach(ctx)
	if err != nil {
		return nil, err
	}
	// Recv has the reason.
	_ = stream.Send(o.message())
	first, err := stream.Recv()
	if err != nil {
		return nil, err
	}
	if refused := first.GetRefused(); refused != nil {
		return nil, refusal(refused)
	}
	attached := first.GetAttached()
	if attached == nil {
		return nil, fmt.Errorf("the node began with %T", first.GetEvent())
	}
	l := &Link{
		Pin: o.Pin, Place: o.place(), Attached: attached, Seq: first.GetSeq(),
		stream: stream, cancel: cancel, done: ctx.Done(),
		in: make(chan *control.PeerEvent, inboundEvents),
	}
	l.ends.Go(l.receive)
	return l, nil
}

func refusal(r *control.Refused) *RefusedError {
	e := &RefusedError{Code: r.GetCode(), Message: r.GetMessage(), Ended: r.GetEnded(), Elsewhere: PlaceOf(r.GetElsewhere())}
	if f, err := r.GetCurrent().Value(); err == nil {
		e.Current = f
	}
	return e
}

// Events is closed when the link ends; then Err says why.
func (l *Link) Events() <-chan *control.PeerEvent { return l.in }

// Err is for after Events.
func (l *Link) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Send does not block: a full queue ends the link with ErrStuck.
func (l *Link) Send(m *control.PeerMessage) error {
	m.Fence = control.FenceProto(l.Pin.Fence)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leaving {
		return errClosed
	}
	select {
	case <-l.done:
		return errClosed
	default:
	}
	if len(l.out) >= outboundMessages {
		l.cancel(ErrStuck)
		return ErrStuck
	}
	l.out = append(l.out, m)
	l.startSending()
	return nil
}

// startSending needs mu.
func (l *Link) startSending() {
	if !l.sending {
		l.sending = true
		l.ends.Go(l.send)
	}
}

// Leave also closes the link.
func (l *Link) Leave(reason string) {
	err := l.Send(&control.PeerMessage{Message: &control.PeerMessage_Leave{Leave: &control.Leave{Reason: reason}}})
	l.mu.Lock()
	if !l.leaving {
		l.leaving = true
		l.startSending()
	}
	l.mu.Unlock()
	if err == nil {
		patience := time.AfterFunc(leavePatience, func() { l.cancel(errClosed) })
		defer patience.Stop()
		for range l.in {
		}
	}
	l.Close()
}

// Close sends no Leave, so the node keeps the peer for its grace time.
func (l *Link) Close() {
	l.mu.Lock()
	l.leaving = true // send is not started any more
	l.cancel(errClosed)
	l.mu.Unlock()
	l.ends.Wait()
}

func (l *Link) send() {
	defer func() {
		if caught := panics.Of(recover()); caught != nil {
			l.end(caught)
		}
	}()
	for {
		m, last := l.next()
		switch {
		case last:
			_ = l.stream.CloseSend()
			return
		case m == nil:
			return
		case l.stream.Send(m) != nil:
			return // sending stays true
		}
	}
}

func (l *Link) next() (m *control.PeerMessage, last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.out) == 0 {
		l.out, l.sending = nil, l.leaving
		return nil, l.leaving
	}
	m, l.out[0] = l.out[0], nil
	l.out = l.out[1:]
	return m, false
}

func (l *Link) receive() {
	defer close(l.in)
	defer func() {
		if caught := panics.Of(recover()); caught != nil {
			l.end(caught)
		}
	}()
	for {
		event, err := l.stream.Recv()
		if err != nil {
			l.end(err)
			return
		}
		if l.stale(event) {
			continue
		}
		select {
		case l.in <- event:
		case <-l.done:
			l.end(errClosed)
			return
		}
	}
}

// Such an event is from before the room moved.
func (l *Link) stale(event *control.PeerEvent) bool {
	fence, err := event.GetFence().Value()
	return err == nil && fence.Less(l.Pin.Fence)
}

func (l *Link) end(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = fmt.Errorf("link to %s: %w", l.Place.Node, err)
	}
	l.cancel(errClosed)
}
