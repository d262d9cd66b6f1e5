package peer

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

const (
	dialLimit    = 5 * time.Second
	writeLimit   = 5 * time.Second
	messageBytes = wire.MaxServerBytes
	// the protocol's attemptMs
	offerLimit = 4 * time.Second
	// after a rejected offer; doubles up to lastAgain
	firstAgain = 500 * time.Millisecond
	lastAgain  = 10 * time.Second
	leaveLimit = time.Second
)

func (p *Peer) session(ctx context.Context) error {
	socket, err := p.dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = socket.CloseNow() }()
	defer p.opts.Messages.lost()
	if err := p.hello(ctx, socket); err != nil {
		return err
	}
	frames, ended := make(chan []byte), make(chan error, 1)
	// ctx would close the socket before the goodbye.
	reading, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	go func() { ended <- p.readFrames(reading, socket, frames) }()
	p.nextTry.Reset(offerLimit) // without a socket no offer can be answered
	var view <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			p.leave(reading, socket, frames, ended)
			return ctx.Err()
		case err := <-ended:
			return err
		case frame := <-frames:
			message, err := wire.DecodeServer(frame)
			if err != nil {
				return fmt.Errorf("decode: %w", err)
			}
			if err := p.handle(ctx, socket, message); err != nil {
				return err
			}
			p.opts.Messages.heard(message)
			if p.hears(message) && view == nil && p.opts.Stack.video == VideoSimulcast {
				view = time.After(viewPause)
			}
		case <-view:
			view = nil
			if err := p.write(ctx, socket, p.others.view(p.opts.VideoSlots)); err != nil {
				return err
			}
		case <-p.opts.Messages.ringing():
			if err := p.sayMessages(ctx, socket); err != nil {
				return err
			}
		case <-p.overlap.C:
			p.leaveBehind()
		case migrated := <-p.moved:
			migrated.Epoch, migrated.Attempt = p.epoch, max(p.tries, 1)
			if err := p.write(ctx, socket, migrated); err != nil {
				return err
			}
		case <-p.nextTry.C:
			p.nextTry.Reset(offerLimit)
			if p.conn != nil && p.conn.stuck() {
				if err := p.offer(ctx, socket, "the last offer led nowhere"); err != nil {
					return err
				}
			}
		}
	}
}

func (p *Peer) dial(ctx context.Context) (*websocket.Conn, error) {
	address, err := socketURL(p.opts.URL)
	if err != nil {
		return nil, err
	}
	dial, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	socket, response, err := websocket.Dial(dial, address, &websocket.DialOptions{Subprotocols: []string{wire.Subprotocol}})
	if response != nil && response.Body != nil {
		_ = response.Body.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", address, err)
	}
	socket.SetReadLimit(messageBytes)
	return socket, nil
}

func (p *Peer) readFrames(ctx context.Context, socket *websocket.Conn, frames chan<- []byte) error {
	for {
		_, frame, err := socket.Read(ctx)
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		if p.unread(wire.KindOf(frame)) {
			continue
		}
		select {
		case frames <- frame:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// hears reports whether others came or left.
func (p *Peer) hears(message wire.Message) bool {
	changed := p.others.heard(message, p.self)
	if changed {
		p.note(func(s *Stats) { s.Others = len(p.others) })
	}
	return changed
}

// Only a view needs the roster, and who counts it.
func (p *Peer) unread(kind wire.Type) bool {
	switch kind {
	case "speakers", "chat":
		return true
	case "roster", "roster-changes", "peer-joined", "peer-updated", "peer-left":
		return p.opts.Stack.video != VideoSimulcast && !p.opts.CountOthers
	default:
		return false
	}
}

func (p *Peer) hello(ctx context.Context, socket *websocket.Conn) error {
	if p.opts.Room == "" {
		return p.write(ctx, socket, &wire.Connect{Token: p.opts.Token})
	}
	if p.resume == "" {
		p.attempt = 1
		return p.write(ctx, socket, &wire.Join{Token: p.opts.Token, Room: p.opts.Room, Wait: p.opts.Wait, RosterChanges: true, Places: true})
	}
	p.attempt++
	return p.write(ctx, socket, &wire.Resume{Resume: p.resume, Attempt: p.attempt, Epoch: p.epoch, RosterChanges: true, Places: true})
}

// leave says goodbye and waits up to leaveLimit for the server to close.
func (p *Peer) leave(ctx context.Context, socket *websocket.Conn, frames <-chan []byte, ended <-chan error) {
	ctx, cancel := context.WithTimeout(ctx, leaveLimit)
	defer cancel()
	if p.write(ctx, socket, &wire.Leave{}) != nil {
		return
	}
	for {
		select {
		case <-frames:
		case <-ended: //nolint:errcheck // however it closed, it is closed
			return
		case <-ctx.Done():
			return
		}
	}
}

func (p *Peer) write(ctx context.Context, socket *websocket.Conn, message wire.Message) error {
	frame, err := wire.Encode(message)
	if err != nil {
		return err
	}
	// The end of ctx would close the socket before the goodbye.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeLimit)
	defer cancel()
	if err := socket.Write(ctx, websocket.MessageText, frame); err != nil {
		return fmt.Errorf("write %s: %w", wire.TypeOf(message), err)
	}
	return nil
}

func socketURL(base string) (string, error) {
	u, err := url.Parse(base)
	if err != nil {
		return "", fmt.Errorf("parse the server's address: %w", err)
	}
	u.Scheme = strings.Replace(u.Scheme, "http", "ws", 1)
	u.Path = strings.TrimSuffix(u.Path, "/") + "/ws"
	return u.String(), nil
}
