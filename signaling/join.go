package signaling

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/failpoint"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/limits"
	"github.com/holdfast-rtc/holdfast/signaling/sfulink"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

const nameless = "Somebody"

// With their pauses they fill most of the budget, which a death and a re-homing fit into.
const joinTries = 10

func (s *session) begin(ctx context.Context, first wire.Message) error {
	var err error
	attempt := uint64(1)
	switch m := first.(type) {
	case *wire.Join:
		s.who, err = s.server.admit(m)
		s.queue.wanted = m.Wait
	case *wire.Resume:
		attempt = m.Attempt
		s.who, err = s.server.readmit(m)
		s.resumes = true
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
	s.expire()
	s.server.sockets.Add(1)
	s.socket.admit()
	if s.server.panics.Refuses(s.strikeName()) {
		return errStruck
	}
	if !s.server.limits.Attempt(s.person()) {
		return errTooOften
	}
	if err := s.spend(); err != nil {
		return err
	}
	if s.inNoRoom() {
		s.beginInNoRoom()
		return nil
	}
	if s.server.cut.Load() {
		return errCutOff
	}
	s.log = s.log.With("room", s.who.Room, "peer", s.who.Peer)
	if err = s.enterRoom(ctx, attempt); err != nil && s.mayWait(ctx, err) {
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
	if s.queue.unasked && !link.Attached.GetResumed() && !link.Attached.GetWasHere() {
		// An older node takes in whoever attaches. It gets no Leave, which would take a place away that the person may have.
		link.Close()
		return orchestrator.ErrStoreUnavailable
	}
	s.queue.passed = s.queue.passed || s.queue.unasked // the media node knows the person
	failpoint.Hit("open.after")
	s.link, s.pin, s.told = link, link.Pin, link.Pin.Boot
	s.setRoster(link.Attached.GetRoster())
	s.setEgress(link.Attached.GetEgress())
	s.known.slots, s.known.path = link.Attached.GetSlots(), link.Attached.GetPathBitsPerSecond()
	s.known.offered = link.Attached.GetResumed()
	// enter posts a higher pin, so that the client hears of the session before the restart.
	s.server.hub.enter(s, link.Pin)
	s.appear()
	if err := s.greet(s.resumes); err != nil {
		return err
	}
	if s.resumes {
		s.followGrant(s.who.CanModerate) // the token may be from before the latest change
	}
	s.setLimited(link.Attached.GetLimited())
	s.openMessages()
	if s.unjudged {
		s.judge(ctx)
	}
	s.log.Info("session begins", "identity", s.who.Identity, "node", s.pin.Node, "epoch", s.pin.Fence.Epoch,
		"attempt", attempt, "media_alive", link.Attached.GetResumed())
	return nil
}

// person is whom the node's limits count.
func (s *session) person() limits.Person {
	return limits.Person{Room: s.who.Room, Key: s.who.Key, Identity: s.who.Identity, Address: s.address}
}

// spend counts join and socket.
func (s *session) spend() error {
	by := s.person()
	if err := s.server.limits.Join(by); err != nil {
		return err
	}
	s.counted = &by
	return nil
}

// arriveCounted charges rooms with nobody else to their quota. Beyond it only rooms that the store knows are joined.
func (s *session) arriveCounted(ctx context.Context) (*sfulink.Link, error) {
	spent := s.server.limits.OpenRoom(*s.counted)
	link, err := s.arrive(ctx, spent)
	if spent == nil && (err != nil || len(link.Attached.GetRoster()) > 1 || link.Attached.GetResumed()) {
		s.server.limits.ReturnRoom(*s.counted)
	}
	return link, err
}

func (s *session) greet(resumed bool) error {
	token, err := s.seal()
	if err != nil {
		return err
	}
	if resumed {
		s.socket.send(&wire.Resumed{
			Placement: s.placement(), Seq: s.link.Seq, Roster: wireRoster(s.known.roster),
			Slots: wireSlots(s.known.slots), Resume: token, MediaAlive: s.link.Attached.GetResumed(),
			Silenced: s.heedSilenced(), ICEServers: s.iceServers(),
		})
		return nil
	}
	s.socket.send(&wire.Joined{
		Protocol: wire.Version, Room: s.who.Room, Peer: wire.PeerID(s.who.Peer), Identity: s.who.Identity, Name: s.who.Name,
		Resume: token, Placement: s.placement(), Seq: s.link.Seq, Roster: wireRoster(s.known.roster),
		ICEServers:  s.iceServers(),
		Permissions: permissionsOf(s.who),
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
	return wire.Placement{Node: s.pin.Node, Epoch: s.pin.Fence.Epoch, ScreenAudio: s.link != nil && s.link.Attached.GetTakesScreenAudio()}
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
		Room: room, Peer: newPeerID(), Identity: grant.Identity, Name: name, Metadata: grant.Metadata,
		CanPublish: grant.CanPublish, Sources: grant.Sources, CanSubscribe: grant.CanSubscribe, CanChat: grant.CanPublishData,
		Hidden: grant.Hidden, RoomCreate: grant.RoomCreate, CanRename: grant.CanRename, CanWatch: grant.CanWatch, CanMessage: grant.CanMessage,
		CanModerate: grant.ForRoomAdmin(room) == nil, ExpectedSize: grant.ExpectedSize,
		MaxParticipants: grant.MaxParticipants,
	}, nil
}

func (s *Server) readmit(m *wire.Resume) (access.Session, error) {
	who, err := s.parts.Keys.Open(m.Resume)
	if errors.Is(err, access.ErrExpired) {
		return access.Session{}, errResumeExpired
	}
	if errors.Is(err, access.ErrUnknownKey) {
		return access.Session{}, errWithdrawn
	}
	if err != nil {
		return access.Session{}, errors.Join(errForgedResume, err)
	}
	// Not m.Epoch: a client could move its room at will.
	if who.Epoch > 0 {
		s.parts.Placer.Observe(who.Room, pin.Fence{Epoch: who.Epoch})
	}
	return who, nil
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
		s.work(func() { verdict <- s.server.ended(ctx, s.who) })
	} else {
		verdict <- nil
	}
	p, err := s.place(ctx, opening.Expect)
	if err != nil {
		return nil, err
	}
	select {
	case err = <-verdict:
	case <-ctx.Done(): // e.g. asking panicked
		return nil, ctx.Err()
	}
	switch {
	case over(err):
		return nil, err
	case err != nil:
		s.unjudged = true
		s.log.Debug("session resumed unjudged: the store does not say whether it is over", "error", err)
	}
	if s.server.refuses(p.Boot) {
		return nil, errUnheard
	}
	// From here a place in the room is taken; waiting for the store took none.
	if !s.server.limits.Enter(s.person()) {
		return nil, errTooOften
	}
	opening.Expect.Running = opening.Expect.Running || !p.Fence.Fresh() // it moved: people are on their way
	opening.OnlyIfHere = s.queue.unasked
	for tries := 0; ; tries++ {
		opening.Pin = p
		link, failure := s.attach(ctx, opening)
		if failure == nil {
			return link, nil
		}
		s.log.Debug("not attached", "node", p.Node, "tries", tries+1, "error", failure)
		if final(failure) || tries+1 >= joinTries {
			return nil, failure
		}
		next, err := s.placeAfter(ctx, p, opening.Expect, failure)
		if err != nil {
			return nil, err
		}
		opening.OnlyIfHere = s.queue.unasked
		// A higher pin is tried at once; the room's other sessions hear of it.
		if p.Fence.Less(next.Fence) {
			p = next
			s.server.hub.found(s.who.Room, p, pin.Fence{})
			continue
		}
		if !s.pause(ctx, tries) {
			return nil, failure
		}
	}
}
