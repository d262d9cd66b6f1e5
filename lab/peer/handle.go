package peer

import (
	"context"
	"fmt"
	"strconv"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// handle does what one message of the server asks for. An error ends the socket.
func (p *Peer) handle(ctx context.Context, socket *websocket.Conn, message wire.Message) error {
	switch m := message.(type) {
	case *wire.Joined:
		p.resume = m.Resume
		p.placed(m.Placement)
		p.note(func(s *Stats) { s.Peer, s.Joined = m.Peer, true })
		return p.offer(ctx, socket, "joined")
	case *wire.Resumed:
		p.resume = m.Resume
		moved := m.Epoch > p.epoch
		p.placed(m.Placement)
		p.note(func(s *Stats) { s.Resumes++ })
		if !m.MediaAlive || moved {
			return p.offer(ctx, socket, "resumed without media")
		}
	case *wire.Restart:
		if m.Epoch <= p.epoch {
			return nil // said by a stale edge
		}
		p.placed(m.Placement)
		p.note(func(s *Stats) { s.Restarts = append(s.Restarts, m.Placement) })
		return p.offer(ctx, socket, m.Reason)
	case *wire.Answer:
		if p.conn == nil || p.conn.offerID != m.ID || m.Epoch < p.epoch {
			return nil // of an offer that a later one has replaced
		}
		if err := p.conn.answer(m.SDP); err != nil {
			return err
		}
	case *wire.Slots:
		if m.Epoch >= p.epoch {
			p.table.set(m.Slots)
		}
	case *wire.Error:
		return p.refused(m)
	case *wire.Bye:
		return &RefusedError{Code: m.Code, Message: m.Message}
	default: // roster, speakers: a synthetic peer has no page to show them on
	}
	return nil
}

// refused ends the socket, for a retry where the server says that one can help,
// with the session's end where not.
func (p *Peer) refused(m *wire.Error) error {
	p.note(func(s *Stats) { s.Codes[m.Code]++ })
	if m.Retryable {
		return fmt.Errorf("refused for now: %s: %s", m.Code, m.Message)
	}
	if m.Code == wire.CodeResumeExpired {
		p.resume = "" // join again
		return fmt.Errorf("resume: %s", m.Message)
	}
	return &RefusedError{Code: m.Code, Message: m.Message}
}

func (p *Peer) placed(at wire.Placement) {
	p.epoch = at.Epoch
	p.note(func(s *Stats) { s.Node, s.Epoch = at.Node, at.Epoch })
}

// offer makes a new connection and offers it.
func (p *Peer) offer(ctx context.Context, socket *websocket.Conn, why string) error {
	if p.conn != nil {
		p.conn.close()
	}
	p.offers++
	p.log.Debug("offer", "why", why, "count", p.offers)
	conn, err := newConnection(strconv.Itoa(p.offers), p.send, p.opts, p.received)
	if err != nil {
		return fmt.Errorf("make a connection: %w", err)
	}
	p.conn = conn
	p.note(func(s *Stats) { s.Connections++ })
	message, err := conn.offer()
	if err != nil {
		return fmt.Errorf("make an offer: %w", err)
	}
	message.Slots = p.table.get()
	return p.write(ctx, socket, message)
}
