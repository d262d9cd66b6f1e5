package cascade

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
	"github.com/holdfast-rtc/holdfast/sfu/reception"
	"github.com/holdfast-rtc/holdfast/sfu/sources"
	"github.com/holdfast-rtc/holdfast/sfu/transport"
)

// statesEvery is how often the other side is told how its remote layers are.
const statesEvery = 250 * time.Millisecond

// LinkConfig describes this side of a link.
type LinkConfig struct {
	Room  *forward.Room
	Trunk *Trunk
	// Batch is filled by the room's loop alone.
	Batch transport.Batch
	// PassesOn is for the room's owner, which announces the layers of its other links, too. A branch announces its own people's alone.
	PassesOn bool
	Log      *slog.Logger
}

// Link joins the two halves of a room, at this node and at another one. It is safe for concurrent use.
type Link struct {
	room     *forward.Room
	trunk    *Trunk
	batch    transport.Batch
	passesOn bool
	log      *slog.Logger
	figures  figures

	// trunk.mu guards reception.
	reception *reception.Receiver

	mu sync.Mutex // guards the fields below
	// news are what the room's loop told, in order. wake has a token while there are some.
	news []news
	wake chan struct{}

	// Run owns the fields below.
	outlets map[*forward.Layer]*outlet
	taps    map[uint32]*outlet
	told    map[uint32]forward.RemoteState
	inlets  map[uint32]*inlet
	// waiting are layers that the room was too busy to take.
	waiting []*control.LinkLayer
}

// news is one of: a layer of this side began or ended, a layer of the other side is wanted or no more, a message came, or somebody began or
// ceased to speak.
type news struct {
	layer *forward.Layer
	ended bool

	ssrc   uint32
	wanted bool

	message *control.LinkMessage

	spoke bool
}

// NewLink returns the link of a room, which needs Run.
func NewLink(cfg LinkConfig) *Link {
	return &Link{
		room: cfg.Room, trunk: cfg.Trunk, batch: cfg.Batch, passesOn: cfg.PassesOn, log: cfg.Log,
		reception: reception.New(rand.Uint32()), wake: make(chan struct{}, 1),
		outlets: map[*forward.Layer]*outlet{}, taps: map[uint32]*outlet{}, told: map[uint32]forward.RemoteState{}, inlets: map[uint32]*inlet{},
	}
}

// Take takes a message of the other side, in the order in which they were said. It does not block.
func (l *Link) Take(message *control.LinkMessage) { l.post(news{message: message}) }

// Added is part of forward.Watcher.
func (l *Link) Added(layer *forward.Layer) {
	if l.crosses(layer) {
		l.post(news{layer: layer})
	}
}

// Dropped is part of forward.Watcher.
func (l *Link) Dropped(layer *forward.Layer) {
	if l.crosses(layer) {
		l.post(news{layer: layer, ended: true})
	}
}

// Spoke is part of forward.Watcher.
func (l *Link) Spoke() { l.post(news{spoke: true}) }

// crosses reports whether the other side is told of a layer. None goes back where it came from, and only the owner, the middle of the star,
// passes layers on, so that none comes to a node on two ways.
func (l *Link) crosses(layer *forward.Layer) bool {
	return !layer.Remote() || l.passesOn && layer.Config().Via != any(l)
}

func (l *Link) want(ssrc uint32, wanted bool) { l.post(news{ssrc: ssrc, wanted: wanted}) }

func (l *Link) post(n news) {
	l.mu.Lock()
	l.news = append(l.news, n)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// ErrTrunkEnded means that the other node is silent, or that a newer trunk joins the two nodes: Trunks.With has it.
var ErrTrunkEnded = errors.New("the trunk has ended")

// Run joins the halves until ctx ends. It returns ErrTrunkEnded when the trunk is done, and the error of say if that fails. say sends a message
// to the other side, in order.
func (l *Link) Run(ctx context.Context, say func(*control.LinkMessage) error) error {
	l.trunk.begin()
	defer l.trunk.leave()
	defer l.end()
	l.room.Watch(l)
	defer l.room.Unwatch(l)
	states := time.NewTicker(statesEvery)
	defer states.Stop()
	for {
		var messages []*control.LinkMessage
		select {
		case <-ctx.Done():
			return nil
		case <-l.trunk.Done():
			return ErrTrunkEnded
		case <-l.wake:
			messages = l.handle()
		case <-states.C:
			waiting := l.waiting
			l.waiting = nil
			l.openAll(waiting)
			messages = l.states()
		}
		l.count()
		for _, m := range messages {
			if err := say(m); err != nil {
				return err
			}
		}
	}
}

// handle works off what happened, and returns what the other side is to be told.
func (l *Link) handle() (messages []*control.LinkMessage) {
	l.mu.Lock()
	all := l.news
	l.news = nil
	l.mu.Unlock()
	layers, wants, changed := &control.LinkLayers{}, &control.LinkWants{}, false
	for _, n := range all {
		switch {
		case n.spoke:
			changed = true
		case n.message != nil:
			l.take(n.message)
		case n.layer != nil && n.ended:
			if o := l.outlets[n.layer]; o != nil {
				l.endOutlet(o)
				layers.Ended = append(layers.Ended, o.ssrc)
			}
		case n.layer != nil:
			if told := l.announce(n.layer); told != nil {
				layers.Added = append(layers.Added, told)
			}
		case l.inlets[n.ssrc] == nil:
		case n.wanted:
			l.inlets[n.ssrc].listen(true)
			wants.Wanted, wants.Unwanted = append(wants.Wanted, n.ssrc), without(wants.GetUnwanted(), n.ssrc)
		default:
			l.inlets[n.ssrc].listen(false)
			wants.Unwanted, wants.Wanted = append(wants.Unwanted, n.ssrc), without(wants.GetWanted(), n.ssrc)
		}
	}
	if len(layers.Added)+len(layers.Ended) > 0 {
		messages = append(messages, &control.LinkMessage{Message: &control.LinkMessage_Layers{Layers: layers}})
		changed = true
	}
	if changed {
		messages = append(messages, l.states()...)
	}
	if len(wants.Wanted)+len(wants.Unwanted) > 0 {
		messages = append(messages, &control.LinkMessage{Message: &control.LinkMessage_Wants{Wants: wants}})
	}
	return messages
}

func without(list []uint32, one uint32) []uint32 {
	return slices.DeleteFunc(list, func(n uint32) bool { return n == one })
}

// announce returns what the other side is told of a layer of this side.
func (l *Link) announce(layer *forward.Layer) *control.LinkLayer {
	o, err := l.trunk.send(l, layer)
	if err != nil {
		l.log.Warn("a layer does not cross to the room's other node", "error", err)
		return nil
	}
	l.outlets[layer], l.taps[o.ssrc] = o, o
	cfg := layer.Config()
	told := &control.LinkLayer{
		Ssrc: o.ssrc, Peer: string(cfg.Peer), Source: sources.Proto(cfg.Source), Rid: cfg.RID,
		MimeType: cfg.Codec.MimeType, Fmtp: cfg.Codec.Fmtp, ClockRate: cfg.Codec.ClockRate, PayloadType: uint32(cfg.Codec.PayloadType),
		RedPayloadType: uint32(cfg.REDPayloadType), AudioLevelId: uint32(cfg.AudioLevelExtensionID), DescriptorId: uint32(cfg.DescriptorID),
	}
	for _, id := range cfg.Passed {
		told.PassedIds = append(told.PassedIds, uint32(id))
	}
	return told
}

func (l *Link) take(message *control.LinkMessage) {
	switch m := message.GetMessage().(type) {
	case *control.LinkMessage_Layers:
		for _, ssrc := range m.Layers.GetEnded() {
			if i := l.inlets[ssrc]; i != nil {
				l.endInlet(i)
			}
			l.waiting = slices.DeleteFunc(l.waiting, func(told *control.LinkLayer) bool { return told.GetSsrc() == ssrc })
		}
		l.openAll(m.Layers.GetAdded())
	case *control.LinkMessage_States:
		for _, s := range m.States.GetStates() {
			if i := l.inlets[s.GetSsrc()]; i != nil {
				i.layer.Tell(forward.RemoteState{Alive: s.GetAlive(), Height: int(min(s.GetHeight(), maxHeight)), BitsPerSecond: s.GetBitsPerSecond(), Speaks: s.GetSpeaks()})
			}
		}
	case *control.LinkMessage_Wants:
		for _, ssrc := range m.Wants.GetUnwanted() {
			if o := l.taps[ssrc]; o != nil {
				o.crosses = false
				o.layer.Untap(o)
			}
		}
		for _, ssrc := range m.Wants.GetWanted() {
			if o := l.taps[ssrc]; o != nil {
				o.crosses = true
				l.trunk.countAnew(o)
				o.layer.Tap(o)
			}
		}
	}
}

// openAll begins remote layers, and keeps for later what the room is too busy for.
func (l *Link) openAll(layers []*control.LinkLayer) {
	for _, told := range layers {
		if l.inlets[told.GetSsrc()] != nil {
			continue
		}
		i, err := l.open(told)
		switch {
		case errors.Is(err, errBusy):
			l.waiting = append(l.waiting, told)
		case err != nil:
			l.log.Warn("a layer of the room's other node is left out", "peer", told.GetPeer(), "source", told.GetSource().String(), "error", err)
		default:
			l.inlets[i.ssrc] = i
		}
	}
}

// maxHeight bounds what is believed of a picture, in lines.
const maxHeight = 1 << 14

// states returns what changed of this side's layers. Rates change always, so they are told when they differ by a quarter.
func (l *Link) states() []*control.LinkMessage {
	if len(l.outlets) == 0 {
		return nil
	}
	states, layers := &control.LinkStates{}, slices.Collect(maps.Keys(l.outlets))
	all, _ := l.room.RemoteStates(layers)
	for i, state := range all {
		ssrc := l.outlets[layers[i]].ssrc
		if before, known := l.told[ssrc]; known && !differs(before, state) {
			continue
		}
		l.told[ssrc] = state
		states.States = append(states.States, &control.LinkState{
			Ssrc: ssrc, Alive: state.Alive, Height: uint32(max(state.Height, 0)), BitsPerSecond: state.BitsPerSecond, Speaks: state.Speaks,
		})
	}
	if len(states.GetStates()) == 0 {
		return nil
	}
	return []*control.LinkMessage{{Message: &control.LinkMessage_States{States: states}}}
}

func differs(a, b forward.RemoteState) bool {
	apart := max(a.BitsPerSecond, b.BitsPerSecond) - min(a.BitsPerSecond, b.BitsPerSecond)
	return a.Alive != b.Alive || a.Height != b.Height || a.Speaks != b.Speaks || apart > a.BitsPerSecond/4
}

func (l *Link) endOutlet(o *outlet) {
	o.layer.Untap(o)
	l.trunk.forget(o)
	delete(l.outlets, o.layer)
	delete(l.taps, o.ssrc)
	delete(l.told, o.ssrc)
}

func (l *Link) endInlet(i *inlet) {
	l.trunk.ignore(i)
	i.layer.Close()
	delete(l.inlets, i.ssrc)
}

// end takes the other side's layers out of the room, and stops this side's.
func (l *Link) end() {
	for _, o := range l.outlets {
		l.endOutlet(o)
	}
	for _, i := range l.inlets {
		l.endInlet(i)
	}
	l.count()
}
