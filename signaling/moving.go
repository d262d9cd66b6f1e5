package signaling

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/loglimit"
	"github.com/holdfast-rtc/holdfast/internal/traces"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/sfulink"
	"github.com/holdfast-rtc/holdfast/signaling/translate"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// A slow network needs at most these; then a new connection is the better bet.
const (
	restartAttempts = 3
	restartAttempt  = 4 * time.Second
)

// The client hears of it once the new node accepts.
func (s *session) moveTo(ctx context.Context, to pin.Pin) {
	if !s.pin.Fence.Less(to.Fence) {
		return
	}
	live := s.server.hub.CameLive(s.who.Room, to.Fence)
	if live {
		s.keepFormer()
	}
	s.dropLink()
	s.migrations.client = s.server.parts.Traces.Client(s.who.Room, s.pin.Boot)
	s.pin, s.cameLive = to, live
	s.reach(s.migrations.client.In(ctx), sfulink.Place{})
}

func (s *session) restart(reason string) {
	order := &wire.Restart{
		Placement: s.placement(), Reason: reason,
		Attempts: restartAttempts, AttemptMs: int(restartAttempt.Milliseconds()),
	}
	if s.cameLive {
		order.Live, order.OverlapMs = true, int(liveOverlap.Milliseconds())
	}
	s.socket.send(order)
	s.migrations.client.Event("client told to restart")
}

func (s *session) takeOver(ctx context.Context, r reached) (ending, bool) {
	if r.number != s.expected {
		if r.link != nil {
			r.link.Close()
		}
		return ending{}, false
	}
	switch {
	case r.err != nil && !final(r.err):
		return ending{}, false // the hub's word comes, or the session ends
	case r.err != nil:
		s.log.Info("session ended by its node", "error", r.err)
		how, done := s.bye(r.err)
		refused, ok := errors.AsType[*sfulink.RefusedError](r.err)
		how.removed = ok && refused.Code == control.Refusal_REFUSAL_REMOVED
		return how, done
	}
	alive, moderated := r.link.Attached.GetResumed(), s.known.ownEntry(s.who.Peer).GetModerator()
	s.link = r.link
	moved := s.place.Boot != r.link.Place.Boot // else the same process, and media flows
	continues := moved && r.link.Attached.GetContinues()
	s.takePlace()
	switch {
	case continues:
		s.goesOn(ctx)
	case moved:
		s.known.unanswered, s.known.offered = nil, false
		s.restart("moved")
		s.judge(ctx) // the old node may have known of a removal
	}
	if !s.onBranch() {
		s.server.hub.Introduce(s.who.Room, r.link.Pin)
	}
	s.continueRoster()
	s.setAudience(r.link.Attached.GetAudience())
	s.setEgress(r.link.Attached.GetEgress())
	s.known.path = r.link.Attached.GetPathBitsPerSecond()
	s.setLimited(r.link.Attached.GetLimited())
	s.roomChanged(r.link.Attached.GetRoomState())
	if alive {
		s.known.slots = r.link.Attached.GetSlots()
		s.tellPlace()
	}
	s.followGrant(moderated)
	for _, source := range s.known.heedSilenced(s.who.Peer) {
		s.silenced(source, "")
	}
	clear(s.known.unsaid)
	s.repeat()
	s.known.hand = nil
	if !alive && !continues && s.known.offered && s.known.unanswered == nil {
		// The same node lost this peer's connection and certificate.
		s.known.offered = false
		if err := s.greet(true); err != nil {
			s.log.Error("client not told that its media ended", "error", err)
		}
	}
	s.log.Debug("attached again", "node", s.place.Node, "epoch", s.pin.Fence.Epoch, "media_alive", alive)
	return ending{}, false
}

// goesOn is a move of which the client learns the epoch and the node only: its media connection goes on at the new node. What it asked
// of the old one is asked of the new one.
func (s *session) goesOn(ctx context.Context) {
	s.server.hub.Arrived(&s.seat, s.pin.Boot)
	s.tellPlace()
	s.migrations.client.Event("media goes on")
	s.migrations.client = traces.Client{}
	s.log.Debug("media goes on without a word to the client", "node", s.place.Node, "epoch", s.pin.Fence.Epoch)
	s.judge(ctx) // the old node may have known of a removal
}

// tellPlace tells the client under which pin and at which node its media goes on as it is.
func (s *session) tellPlace() {
	at := s.placement()
	s.socket.send(&wire.Slots{Slots: translate.Slots(s.known.slots), Lacks: translate.Lacks(s.known.lacks), Node: at.Node, Epoch: at.Epoch})
}

// samePeople spares a move a large room's roster for each client.
func samePeople(told, now []*control.Peer) bool {
	if len(told) != len(now) {
		return false
	}
	known := make(map[string]*control.Peer, len(told))
	for _, p := range told {
		known[p.GetId()] = p
	}
	return !slices.ContainsFunc(now, func(p *control.Peer) bool {
		return known[p.GetId()] == nil || !reflect.DeepEqual(translate.Peer(known[p.GetId()]), translate.Peer(p))
	})
}

func (s *session) repeat() {
	for source, muted := range s.known.muted {
		s.say(translate.Mute(source, muted))
	}
	if own := s.known.ownEntry(s.who.Peer); own != nil && own.GetName() != s.who.Name {
		s.say(translate.Rename(s.who.Name))
	}
	if s.known.hand != nil {
		s.say(translate.Hand(s.known.hand))
	}
	if s.known.view != nil {
		s.say(translate.View(s.known.view))
	}
	if s.known.unanswered != nil {
		s.say(translate.Offer(s.known.unanswered, s.known.slots))
	}
}

// Less than the former node goes on; more than the new one needs to report all arrivals.
const liveOverlap = 10 * time.Second

// handedOver follows a node's last word, without the store if that names the new pin.
func (s *session) handedOver(ctx context.Context, said *control.Fenced) {
	to, err := said.GetPin().Value()
	if err != nil || !s.pin.Fence.Less(to.Fence) {
		s.fenced(ctx, said.GetCurrent())
		return
	}
	s.server.parts.Placer.Observe(s.who.Room, to.Fence)
	if said.GetLive() {
		s.server.hub.MovedLive(ctx, s.who.Room, to)
	} else {
		s.server.hub.Moved(ctx, s.who.Room, to)
	}
}

// formerLink is the link to the former node of a live move, until it ends: chat lines that the node took are still on their way.
type formerLink struct {
	link *sfulink.Link // nil without a live move
	drop context.CancelFunc
}

// keepFormer makes the present link, if there is one, the former one of a live move.
func (s *session) keepFormer() {
	if s.link == nil {
		return
	}
	s.former.end()
	s.former = formerLink{link: s.link, drop: s.drop}
	s.link, s.drop = nil, func() {}
}

func (f *formerLink) end() {
	if f.link != nil {
		f.drop()
		f.link.Close()
		f.link = nil
	}
}

// tellLate tells what the former node of a live move still says: of the chat only, since the new node says all else.
func (s *session) tellLate(event *control.PeerEvent, ok bool) {
	if !ok {
		s.former.end()
		return
	}
	line := event.GetChat()
	if line == nil {
		return
	}
	s.socket.send(translate.Chat(line, s.told))
}

// migrated also tells the node of a live move: the former one serves until all came.
func (s *session) migrated(m *wire.Migrated) {
	if m.Epoch != s.pin.Fence.Epoch {
		return
	}
	s.server.hub.Arrived(&s.seat, s.pin.Boot)
	gap := time.Duration(m.GapMs) * time.Millisecond
	s.server.parts.Metrics.Gap(m.How, gap)
	s.server.gaps.Report(s.who.Room, s.pin.Fence, gap, s.server.hub.People(s.who.Room))
	s.migrations.client.Back(m.How, int(m.Attempt), gap)
	s.migrations.client = traces.Client{}
	s.migrations.log(s.log, s.server.pathLogs, m, s.place.Node)
	node := s.server.parts.Views.View().Nodes[s.place.Node]
	knows := node.Boot == s.place.Boot && node.Can(control.CapabilityLiveMove) // an older node ends the stream over it
	if knows && (m.How == wire.HowLive || s.cameLive) {
		s.say(&control.PeerMessage{Message: &control.PeerMessage_Arrived{Arrived: &control.Arrived{}}})
	}
}

const (
	migratedLogs = 3 // of a session and epoch; more are bounded with those of others
	lostLogged   = 3
)

// migrations are those of an epoch that were told. client is the trace of the client's way back from a death, until the first is told.
type migrations struct {
	epoch  uint64
	told   int
	client traces.Client
}

func (n *migrations) log(log *slog.Logger, limit *loglimit.Limiter, m *wire.Migrated, node ring.NodeID) {
	if n.epoch != m.Epoch {
		n.epoch, n.told = m.Epoch, 0
	}
	n.told++
	unlogged, ok := 0, true
	if n.told > migratedLogs {
		unlogged, ok = limit.Next()
	}
	if !ok {
		return
	}
	if len(m.Lost) > 0 {
		log = log.With("first_lost", m.Lost[:min(len(m.Lost), lostLogged)])
	}
	log.Info("client migrated", "how", m.How, "attempt", m.Attempt, "gap_ms", m.GapMs, "lost", len(m.Lost), "epoch", m.Epoch, "node", node, "unlogged", unlogged)
}
