package signaling

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/internal/failpoint"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/people/waitlist"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/endings"
	"github.com/holdfast-rtc/holdfast/signaling/fault"
	"github.com/holdfast-rtc/holdfast/signaling/limits"
	"github.com/holdfast-rtc/holdfast/signaling/reply"
	"github.com/holdfast-rtc/holdfast/signaling/sfulink"
	"github.com/holdfast-rtc/holdfast/signaling/translate"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

const nameless = "Somebody"

// With their pauses they fill most of the budget, which a death and a re-homing fit into.
const joinTries = 10

// beginTraced is begin as a trace. A refusal is told by its code, because its words may name somebody.
func (s *session) beginTraced(ctx context.Context, first wire.Message) error {
	name := "join"
	switch first.(type) {
	case *wire.Join:
	case *wire.Resume:
		name = "resume"
	default:
		return s.begin(ctx, first)
	}
	ctx, span := s.server.parts.Traces.Join(ctx, name)
	err := s.begin(ctx, first)
	span.Set("room", string(s.who.Room)).Set("peer", s.who.Peer).Set("node", string(s.place.Node)).Set("signaling", string(s.server.config.Node))
	switch {
	case err != nil:
		span.End(errors.New(string(reply.Of(err).Code)))
	case s.line.waits():
		span.Set("outcome", "waits in line").End(nil)
	default:
		span.End(nil)
	}
	return err
}

func (s *session) begin(ctx context.Context, first wire.Message) error {
	var err error
	attempt := uint64(1)
	switch m := first.(type) {
	case *wire.Join:
		s.who, err = s.server.admit(m)
		s.line.wanted, s.takesRosterChanges, s.knowsPlaces = m.Wait, m.RosterChanges, m.Places
	case *wire.Resume:
		attempt, s.takesRosterChanges, s.knowsPlaces = m.Attempt, m.RosterChanges, m.Places
		s.who, err = s.server.readmit(m)
		s.resumes, s.line.resumes = true, true
	case *wire.Connect:
		s.who, err = s.server.connect(m)
	default:
		err = errOrder
	}
	if err != nil {
		return err
	}
	if err := s.server.checkLeaving(); err != nil {
		return err
	}
	s.admitted = true
	if ends := endsOf(s.who); !ends.IsZero() {
		s.over = time.After(time.Until(ends))
	}
	s.server.sockets.Add(1)
	s.socket.admit()
	if s.server.panics.Refuses(strikeName(s.who)) {
		return sfulink.ErrStruck
	}
	if !s.server.limits.Attempt(s.person()) {
		return limits.ErrTooOften
	}
	by := s.person()
	if err := s.tellQuota(s.server.limits.Join(by)); err != nil {
		return err
	}
	s.counted = &by
	if s.inNoRoom() {
		s.beginInNoRoom()
		return nil
	}
	if s.server.reach.cut.Load() {
		return errCutOff
	}
	s.log = s.log.With("room", s.who.Room, "peer", s.who.Peer)
	s.line.log = s.log
	if err = s.enterRoom(ctx, attempt); err != nil && s.line.mayWait(ctx, err, s.expect()) {
		return nil
	}
	return err
}

func (s *session) enterRoom(ctx context.Context, attempt uint64) error {
	s.generation.begin(attempt)
	link, err := s.arriveCounted(ctx)
	if err != nil {
		return err
	}
	if s.line.unasked.Load() && !link.Attached.GetResumed() && !link.Attached.GetWasHere() {
		// An older node takes in whoever attaches. It gets no Leave, which would take a place away that the person may have.
		link.Close()
		return orchestrator.ErrStoreUnavailable
	}
	if s.line.unasked.Load() {
		s.line.passed.Store(true) // the media node knows the person
	}
	failpoint.Hit("open.after")
	s.link, s.pin = link, link.Pin
	s.seat.room = s.who.Room
	s.takePlace()
	s.beginRoster()
	s.known.roomState(link.Attached.GetRoomState())
	s.setEgress(link.Attached.GetEgress())
	s.known.slots, s.known.path = link.Attached.GetSlots(), link.Attached.GetPathBitsPerSecond()
	s.known.offered = link.Attached.GetResumed()
	// enter posts a higher pin, so that the client hears of the session before the restart.
	s.server.hub.Enter(&s.seat, link.Pin)
	s.watching.appear(s.who)
	if err := s.greet(s.resumes); err != nil {
		return err
	}
	if s.resumes {
		s.followGrant(s.who.CanModerate) // the token may be from before the latest change
	}
	s.setLimited(link.Attached.GetLimited())
	s.mail.open(s.who, s.resumes)
	if s.unjudged {
		s.judge(ctx)
	}
	s.log.Info("session begins", "identity", s.who.Identity, "node", s.place.Node, "epoch", s.pin.Fence.Epoch,
		"attempt", attempt, "media_alive", link.Attached.GetResumed())
	return nil
}

// arriveCounted charges rooms with nobody else to their quota. Beyond it only rooms that the store knows are joined.
func (s *session) arriveCounted(ctx context.Context) (*sfulink.Link, error) {
	spent := s.tellQuota(s.server.limits.OpenRoom(*s.counted))
	link, err := s.arrive(ctx, spent)
	if spent == nil && (err != nil || len(link.Attached.GetRoster()) > 1 || link.Attached.GetOwn() != nil || link.Attached.GetResumed()) {
		s.server.limits.ReturnRoom(*s.counted)
	}
	return link, err
}

// tellQuota records that a quota of this node is spent, if that is what err says, and returns err. The event does not say whose it is.
func (s *session) tellQuota(err error) error {
	if spent, ok := errors.AsType[*limits.QuotaError](err); ok {
		s.server.parts.Recorder.Reached(events.Event{
			Node: s.server.config.Node, Role: string(cluster.RoleSignaling), Cause: "too many " + spent.What + " of one " + spent.Whose, About: spent.What + " of " + spent.Whose,
		})
	}
	return err
}

func (s *session) greet(resumed bool) error {
	token, err := s.seal()
	if err != nil {
		return err
	}
	if resumed {
		s.socket.send(&wire.Resumed{
			Placement: s.placement(), Seq: s.link.Seq, Roster: s.wireRoster(s.known.roster),
			Slots: translate.Slots(s.known.slots), Resume: token, MediaAlive: s.link.Attached.GetResumed(),
			Silenced: s.known.heedSilenced(s.who.Peer), ICEServers: s.server.config.iceServers(s.who), RoomMetadata: s.known.roomMetadata,
			Audience: s.sayAudience(),
		})
		return nil
	}
	s.socket.send(&wire.Joined{
		Protocol: wire.Version, Room: s.who.Room, Peer: wire.PeerID(s.who.Peer), Identity: s.who.Identity, Name: s.who.Name,
		Resume: token, Placement: s.placement(), Seq: s.link.Seq, Roster: s.wireRoster(s.known.roster),
		ICEServers:  s.server.config.iceServers(s.who),
		Permissions: permissionsOf(s.who), RoomMetadata: s.known.roomMetadata, Audience: s.sayAudience(),
	})
	return nil
}

// seal makes a resume token of the session as it is.
func (s *session) seal() (string, error) {
	sealed := s.who
	sealed.Epoch = s.pin.Fence.Epoch
	token, err := s.server.parts.Keys.Seal(sealed)
	if errors.Is(err, access.ErrUnknownKey) {
		return access.WithdrawnResume, nil // the call goes on: its key's last
	}
	return token, err
}

func (s *session) placement() wire.Placement {
	p := wire.Placement{Node: s.place.Node, Epoch: s.pin.Fence.Epoch}
	if s.link != nil {
		p.ScreenAudio, p.Data = s.link.Attached.GetTakesScreenAudio(), s.link.Attached.GetTakesData()
	}
	return p
}

// arrive places the room and attaches within the budget; running out is retryable. spent is a quota of rooms, or nil.
func (s *session) arrive(ctx context.Context, spent error) (*sfulink.Link, error) {
	life, drop := context.WithCancel(ctx)
	s.drop = drop
	budget := time.AfterFunc(s.server.config.JoinBudget, drop)
	link, err := s.arriveWithin(life, spent)
	if expired := !budget.Stop(); expired && err == nil {
		link.Close()
		err = life.Err()
	}
	if err != nil && errors.Is(err, context.Canceled) && ctx.Err() == nil {
		err = fmt.Errorf("not attached within %v: %w", s.server.config.JoinBudget, sfulink.ErrUnreachable)
	}
	if err != nil {
		drop()
		return nil, err
	}
	return link, nil
}

func (s *session) arriveWithin(ctx context.Context, spent error) (*sfulink.Link, error) {
	s.unreserved = !s.server.limits.Reserve(s.person())
	defer func() { s.unreserved = false }()
	if err := s.mayEnter(ctx, spent); err != nil {
		return nil, err
	}
	opening := s.opening(pin.Pin{})
	verdict := make(chan error, 1)
	if s.resumes { // new sessions cannot be over
		s.work(func() { verdict <- s.server.endings.Ended(ctx, s.who) })
	} else {
		verdict <- nil
	}
	began := time.Now()
	p, err := s.line.enter(ctx, opening.Expect)
	if err != nil {
		return nil, err
	}
	placed := time.Now()
	select {
	case err = <-verdict:
	case <-ctx.Done(): // e.g. asking panicked
		return nil, ctx.Err()
	}
	switch {
	case endings.Over(err):
		return nil, err
	case err != nil:
		s.unjudged = true
		s.log.Debug("session resumed unjudged: the store does not say whether it is over", "error", err)
	}
	if s.server.reach.refuses(p.Boot) {
		return nil, errUnheard
	}
	// From here a place in the room is taken; waiting for the store took none.
	if !s.server.limits.Enter(s.person()) {
		return nil, limits.ErrTooOften
	}
	opening.Expect.Running = opening.Expect.Running || !p.Fence.Fresh() // it moved: people are on their way
	opening.OnlyIfHere, opening.Settings = s.line.unasked.Load(), s.line.settings
	for tries := 0; ; tries++ {
		opening.Pin = p
		link, failure := s.attach(ctx, opening, sfulink.Place{})
		if failure == nil {
			s.countArrival(began, placed)
			return link, nil
		}
		s.log.Debug("not attached", "node", p.Node, "tries", tries+1, "error", failure)
		if final(failure) || tries+1 >= joinTries {
			return nil, failure
		}
		next, err := s.placeAfter(ctx, s.who, p, opening.Expect, failure)
		if err != nil {
			return nil, err
		}
		opening.OnlyIfHere = s.line.unasked.Load()
		// A higher pin is tried at once; the room's other sessions hear of it.
		if p.Fence.Less(next.Fence) {
			p = next
			s.server.hub.Found(s.who.Room, p, pin.Fence{})
			continue
		}
		if !s.server.config.pause(ctx, tries) {
			return nil, failure
		}
	}
}

var errNoRoom = fault.Denied("the room is not open, and the token does not allow opening it (roomCreate)")

// Less than the budget of a join, which goes on without an answer.
const standsLimit = 2 * time.Second

// mayEnter demands a quota of rooms that is not spent and, if so configured, roomCreate where there is no pin.
func (s *session) mayEnter(ctx context.Context, spent error) error {
	create := s.server.config.DemandRoomCreate && !s.who.RoomCreate && !s.server.hub.Has(s.who.Room)
	if spent == nil && !create {
		return nil
	}
	open, err := stands(ctx, s.server.parts.Store, s.who.Room)
	switch {
	case spent != nil && err == nil && !open:
		return spent
	case !create:
		return nil
	case open, err != nil && s.resumes: // running calls need no store
		return nil
	case err != nil:
		return errors.Join(orchestrator.ErrStoreUnavailable, err)
	case s.resumes:
		return errResumeExpired
	default:
		return errNoRoom
	}
}

// stands reports whether the room has a pin.
func stands(ctx context.Context, store Store, room ring.RoomID) (stands bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, standsLimit)
	defer cancel()
	err = store.Pins(ctx, []ring.RoomID{room}, func(pin.Holding) error {
		stands = true
		return nil
	})
	return stands, err
}

func (s *session) beginInNoRoom() {
	s.roomless = &endings.Connection{Who: s.who, End: func(verdict error) bool {
		select {
		case s.verdicts <- verdict:
			return true
		default:
			return false
		}
	}}
	s.server.endings.Watch(s.roomless)
	s.watching.appear(s.who)
	s.socket.send(&wire.Connected{Protocol: wire.Version, Identity: s.who.Identity, Watch: s.who.CanWatch, Message: messageScope(s.who) != ""})
	s.mail.open(s.who, s.resumes)
	s.log.Info("connection in no room begins", "identity", s.who.Identity)
}

// heard enters the room when the line lets the person in.
func (s *session) heard(ctx context.Context, word waitlist.Word) (ending, bool) {
	enter, away := s.line.heard(ctx, word, s.expect())
	if away {
		return s.bye(errTurnedAway)
	}
	if enter {
		if err := s.enterRoom(ctx, 1); err != nil && !s.line.mayWait(ctx, err, s.expect()) {
			return s.refuse(err), true
		}
	}
	return ending{}, false
}
