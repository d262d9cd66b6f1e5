package relay

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/connlimit"
)

const (
	// inboundBytes is a size that Pion drops.
	inboundBytes = 1600
	// maxFrameBytes is above a packet of media with 1,200 bytes, and the 36 more of a Send indication.
	maxFrameBytes = inboundBytes - 4
	writeBuffer   = 256 << 10
)

var errFrame = errors.New("not a TURN message of at most 1,596 bytes")

const acceptPause = 50 * time.Millisecond

type listener struct {
	net.Listener
	relay *Relay
	pause func() (live bool)
}

// conn passes bounded TURN messages on. A length that overflows Pion's 16 bits would keep its loop busy for ever.
type conn struct {
	net.Conn
	relay   *Relay
	from    *bufio.Reader
	pending *connlimit.Pending
	close   sync.Once
}

// Accept returns an error only at the end, because Pion stops at any error.
func (l *listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	for err != nil {
		if errors.Is(err, net.ErrClosed) || !l.pause() {
			return nil, err
		}
		// The process is out of descriptors, or the connection broke. Either passes.
		if unlogged, ok := l.relay.logs.Next(); ok {
			l.relay.log.Warn("relay accepted no connection", "error", err, "unlogged", unlogged)
		}
		accepted, err = l.Listener.Accept()
	}
	if tcp, ok := accepted.(interface{ SetWriteBuffer(bytes int) error }); ok {
		_ = tcp.SetWriteBuffer(writeBuffer)
	}
	c := &conn{Conn: accepted, relay: l.relay, from: bufio.NewReaderSize(accepted, inboundBytes)}
	c.pending = l.relay.pending.Add(accepted.RemoteAddr(), func() { _ = accepted.Close() })
	err = accepted.SetReadDeadline(time.Now().Add(l.relay.config.PendingLimit))
	l.relay.mu.Lock()
	closed := l.relay.closed
	l.relay.conns[clientAt(c.RemoteAddr())] = c
	l.relay.mu.Unlock()
	if closed || err != nil {
		_ = c.Close()
	}
	return c, nil
}

func (c *conn) name() string { return c.RemoteAddr().String() }

// UDP clients have no connection.
func (r *Relay) admit(at net.Addr, user string) {
	session, _ := sessionOf(user)
	r.mu.Lock()
	r.owners[clientAt(at)] = append(r.owners[clientAt(at)], session)
	r.mu.Unlock()
	if c := r.connOf(at); c != nil {
		c.pending.Done()
		_ = c.SetReadDeadline(time.Time{})
	}
}

func (r *Relay) dismiss(at net.Addr, user string) {
	session, _ := sessionOf(user)
	r.disown(at, session)
	if c := r.connOf(at); c != nil {
		_ = c.Close()
	}
}

// owns checks the owner of an allocation, because Pion accepts any good credential, even from a forged address.
func (r *Relay) owns(at net.Addr, session string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	owners := r.owners[clientAt(at)]
	return len(owners) == 0 || slices.Contains(owners, session)
}

func (r *Relay) allocated(at net.Addr) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.owners[clientAt(at)]) > 0
}

func (r *Relay) disown(at net.Addr, session string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	owners := r.owners[clientAt(at)]
	if i := slices.Index(owners, session); i >= 0 {
		owners = slices.Delete(owners, i, i+1)
	}
	if r.owners[clientAt(at)] = owners; len(owners) == 0 {
		delete(r.owners, clientAt(at))
	}
}

func (r *Relay) connOf(client net.Addr) *conn {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.conns[clientAt(client)]
}

// Read returns the next message that passes, into inboundBytes.
func (c *conn) Read(into []byte) (int, error) {
	for {
		n, err := readFrame(c.from, into)
		if errors.Is(err, errFrame) {
			c.relay.refuse(&c.relay.count.frames, err.Error(), "client", c.name())
		}
		if err != nil || c.relay.passes(into[:n], c.RemoteAddr()) {
			return n, err
		}
	}
}

// RFC 8656, sections 3.6 and 12.5.
func readFrame(from *bufio.Reader, into []byte) (int, error) {
	head, err := from.Peek(4)
	if err != nil {
		return 0, err
	}
	size := int(binary.BigEndian.Uint16(head[2:]))
	switch {
	// This is a STUN message.
	case head[0] < 0x40 && size%4 == 0:
		size += 20
	// This is a message of a channel.
	case head[0] >= 0x40 && head[0] < 0x50:
		size = 4 + (size+3)/4*4
	default:
		return 0, errFrame
	}
	if size > min(maxFrameBytes, len(into)) {
		return 0, errFrame
	}
	return io.ReadFull(from, into[:size])
}

// Write gives a stalled client up.
func (c *conn) Write(packet []byte) (int, error) {
	n := 0
	err := c.SetWriteDeadline(time.Now().Add(c.relay.config.WriteLimit))
	if err == nil {
		n, err = c.Conn.Write(packet)
	}
	if err != nil {
		// Half a message may have been sent.
		_ = c.Close()
	}
	return n, err
}

// Close may be called twice.
func (c *conn) Close() error {
	var err error
	c.close.Do(func() {
		c.pending.Done()
		c.relay.mu.Lock()
		delete(c.relay.conns, clientAt(c.RemoteAddr()))
		c.relay.mu.Unlock()
		err = c.Conn.Close()
	})
	return err
}
