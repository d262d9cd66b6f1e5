package peer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// An error ends the socket.
func (p *Peer) handle(ctx context.Context, socket *websocket.Conn, message wire.Message) error {
	switch m := message.(type) {
	case *wire.Joined:
		p.resume, p.self = m.Resume, m.Peer
		p.placed(m.Placement)
		p.note(func(s *Stats) { s.joined(m) })
		return errors.Join(p.sayMuted(ctx, socket), p.offer(ctx, socket, "joined"))
	case *wire.Resumed:
		return errors.Join(p.resumed(ctx, socket, m), p.sayMuted(ctx, socket))
	case *wire.Connected:
		p.note(func(s *Stats) { s.Attached = true })
	case *wire.Restart:
		return p.restart(ctx, socket, m)
	case *wire.Settled:
		if m.Epoch == p.epoch {
			p.leaveBehind()
		}
	case *wire.Answer:
		if p.conn == nil || p.conn.offerID != m.ID || m.Epoch < p.epoch {
			return nil
		}
		p.due = nil
		p.observe(Moment{At: time.Now(), Step: StepAnswer, Connection: p.count(), Epoch: p.epoch})
		return p.answered(ctx, m)
	case *wire.OfferRejected:
		p.note(func(s *Stats) { s.OffersRejected++ })
		if p.due != nil && p.due.ID == m.ID {
			p.due = nil
			p.nextTry.Reset(min(firstAgain<<min(p.tries-1, 10), lastAgain))
		}
	case *wire.Slots:
		if m.Epoch >= p.epoch {
			p.goesOn(m)
			p.show(m.Slots)
		}
	case *wire.Waiting:
		p.observe(Moment{At: time.Now(), Step: StepWaiting})
	case *wire.Error:
		return p.refused(m)
	case *wire.Bye:
		return &RefusedError{Code: m.Code, Message: m.Message}
	default:
	}
	return nil
}

func (p *Peer) answered(ctx context.Context, m *wire.Answer) error {
	number, epoch := p.count(), p.epoch
	arrived := func(a arrival) {
		a.connection = number
		p.arrived(a)
	}
	reached := func(step Step, hop int) {
		p.observe(Moment{At: time.Now(), Step: step, Connection: number, Hop: hop, Epoch: epoch})
	}
	if err := p.conn.answer(ctx, m.SDP, arrived, reached); err != nil {
		return fmt.Errorf("apply the answer: %w", err)
	}
	return nil
}

// resumed repeats a pending offer, or makes a new one if the media is gone or the room elsewhere.
func (p *Peer) resumed(ctx context.Context, socket *websocket.Conn, m *wire.Resumed) error {
	onItsWay := p.knows(m.Placement) && p.conn != nil && p.conn.coming()
	p.resume = m.Resume
	p.placed(m.Placement)
	p.note(func(s *Stats) { s.Resumes, s.Attached = s.Resumes+1, true })
	if m.MediaAlive {
		p.show(m.Slots)
	}
	switch {
	case !m.MediaAlive && !onItsWay:
		return p.offer(ctx, socket, "resumed without media")
	case p.due != nil:
		return p.write(ctx, socket, p.due)
	}
	return nil
}

// New nodes do not know that the camera is muted.
func (p *Peer) sayMuted(ctx context.Context, socket *websocket.Conn) error {
	if !p.opts.CameraOff || p.opts.ListenOnly {
		return nil
	}
	return p.write(ctx, socket, &wire.Mute{Source: wire.SourceCamera, Muted: true})
}

func (s *Stats) joined(m *wire.Joined) {
	s.Peer, s.Attached = m.Peer, true
	if s.Joined {
		return
	}
	s.Joined, s.JoinedAt = true, time.Now()
	s.FoundThere = len(m.Roster)
	for _, there := range m.Roster {
		if there.Peer == m.Peer {
			s.FoundThere--
		}
	}
}

func (p *Peer) restart(ctx context.Context, socket *websocket.Conn, m *wire.Restart) error {
	if m.Epoch < p.epoch || p.knows(m.Placement) {
		return nil // from a stale signaling node
	}
	p.observe(Moment{At: time.Now(), Step: StepRestart, Connection: p.count(), Epoch: m.Epoch})
	p.placed(m.Placement)
	p.note(func(s *Stats) { s.Restarts = append(s.Restarts, m.Placement) })
	p.mu.Lock()
	p.moving = true
	p.mu.Unlock()
	p.tries = 0
	p.leaveBehind()
	if m.Live && p.conn != nil && !p.conn.stuck() {
		p.leaving, p.conn = p.conn, nil
		p.overlap.Reset(time.Duration(m.OverlapMs) * time.Millisecond)
		p.leaves()
	}
	return p.offer(ctx, socket, m.Reason)
}

func (p *Peer) leaveBehind() {
	if p.leaving != nil {
		p.leaving.close()
		p.leaving = nil
	}
	p.mu.Lock()
	p.live = nil
	p.mu.Unlock()
}

// refused returns the error that ends the socket: *RefusedError if a retry cannot help.
func (p *Peer) refused(m *wire.Error) error {
	p.note(func(s *Stats) { s.Codes[m.Code]++ })
	if m.Retryable {
		after := time.Duration(m.RetryAfterMs) * time.Millisecond
		return &laterError{why: fmt.Sprintf("%s: %s", m.Code, m.Message), after: cmp.Or(after, lastRetry)}
	}
	if m.Code == wire.CodeResumeExpired {
		p.resume = ""
		return fmt.Errorf("resume: %s", m.Message)
	}
	return &RefusedError{Code: m.Code, Message: m.Message}
}

// knows reports whether the server has named this place last.
func (p *Peer) knows(at wire.Placement) bool { return at.Epoch == p.epoch && at.Node == p.node }

func (p *Peer) placed(at wire.Placement) {
	p.epoch, p.node = at.Epoch, at.Node
	p.note(func(s *Stats) { s.Node, s.Epoch = at.Node, at.Epoch })
}

// goesOn takes the pin and the node at which the media goes on as it is.
func (p *Peer) goesOn(m *wire.Slots) {
	if m.Epoch > p.epoch && m.Node != "" && m.Node != p.node {
		p.observe(Moment{At: time.Now(), Step: StepContinued, Connection: p.count(), Epoch: m.Epoch})
	}
	p.placed(wire.Placement{Node: cmp.Or(m.Node, p.node), Epoch: m.Epoch})
}

func (p *Peer) offer(ctx context.Context, socket *websocket.Conn, why string) error {
	if p.opts.Stack.video == VideoNone {
		return nil
	}
	if p.conn != nil {
		p.conn.close()
	}
	number := p.nextConnection()
	p.tries++
	p.log.Debug("offer", "why", why, "count", number)
	conn, err := newConnection(strconv.Itoa(number), p.send, p.opts)
	if err != nil {
		return fmt.Errorf("make a connection: %w", err)
	}
	p.conn = conn
	message := conn.offer(p.opts)
	message.Slots = p.table()
	p.due = message
	p.nextTry.Reset(offerLimit)
	p.observe(Moment{At: time.Now(), Step: StepOffer, Connection: number, Epoch: p.epoch})
	return p.write(ctx, socket, message)
}
