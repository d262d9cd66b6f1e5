package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/pion/stun/v4"

	"github.com/holdfast-rtc/holdfast/sfu/egress"
)

const (
	// dialEvery is the pause between checks of a node that has not yet answered.
	dialEvery = 50 * time.Millisecond
	// keepEvery is the pause between checks of a node that has answered. The watch makes it up to 250 ms longer.
	keepEvery = time.Second
	// silentAfter is at least two lost checks.
	silentAfter = 3 * time.Second
	// deadAfter ends a keyed connection. A new one takes a round trip.
	deadAfter = 10 * time.Second

	// keyedStreams is four times the layers that a link of the largest room may carry. An SSRC counts until the
	// connection is closed.
	keyedStreams = 4096
	// keyedReplay lets packets that were repeated after a NACK come late.
	keyedReplay = 2048
)

var (
	errNotKeyed = errors.New("the connection has no keys to dial a media node with")
	errNobody   = errors.New("a media node is dialled without its credentials")
)

// keyed is what a connection to another media node has in place of DTLS.
type keyed struct {
	// answered is closed at the first authentic answer.
	answered chan struct{}
	// dialled is the address that control named; guarded by Transport.mu.
	dialled egress.Address

	// check is repeated until it is answered; guarded by Conn.mu.
	check checkBack
	// checked is the time of the last check; guarded by Conn.mu.
	checked time.Time
}

// openKeyed opens SRTP. The other node may send as soon as it has an answer to its first check, which may be before Dial.
func (c *Conn) openKeyed(keys Keys) error {
	c.keyed = &keyed{answered: make(chan struct{})}
	if err := c.out.open(keys.srtp()); err != nil {
		return err
	}
	return c.open(keys.srtp())
}

// Dial checks the other media node at its media socket until that node has answered. The connection is up when Dial
// returns nil, and is kept up without Dial. Dial returns an error when ctx ends or the connection is closed before, and
// may then be called again, by one goroutine at a time. The other node may dial earlier or later.
func (c *Conn) Dial(ctx context.Context, to netip.AddrPort, theirs Credentials) error {
	switch {
	case c.keyed == nil:
		return errNotKeyed
	case theirs.Ufrag == "" || theirs.Password == "":
		return errNobody
	}
	at := egress.UDP(netip.AddrPortFrom(to.Addr().Unmap(), to.Port()))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !c.transport.claim(c, at) || !c.dials(at, theirs, cancel) {
		return net.ErrClosed
	}
	again := time.NewTicker(dialEvery)
	defer again.Stop()
	for {
		c.checkOther(time.Now())
		select {
		case <-c.keyed.answered:
			return nil
		case <-ctx.Done():
			return c.gaveUp(fmt.Errorf("dial media node at %v: %w", to, ctx.Err()))
		case <-again.C:
		}
	}
}

func (c *Conn) dials(at egress.Address, theirs Credentials, cancel context.CancelFunc) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	if !c.up {
		c.cancel, c.remote = cancel, user{ufrag: theirs.Ufrag, password: theirs.Password}
		c.keyed.check = checkBack{to: at, id: stun.NewTransactionID()}
	}
	return true
}

// gaveUp has late answers ignored, so that a connection whose Dial failed does not come up afterwards.
func (c *Conn) gaveUp(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return net.ErrClosed
	case c.up:
		return nil
	}
	c.keyed.check, c.wanted, c.remote = checkBack{}, checkBack{}, user{}
	return err
}

// keep checks the other node when that is due, so that each side hears that the other lives. A client is nominated.
func (c *Conn) keep(now time.Time) {
	if c.keyed == nil {
		c.nominate(now)
		return
	}
	if c.present(now) == Failed {
		return
	}
	c.mu.Lock()
	due := c.up && now.Sub(c.keyed.checked) >= keepEvery
	c.mu.Unlock()
	if due {
		c.checkOther(now)
	}
}

func (c *Conn) checkOther(now time.Time) {
	c.mu.Lock()
	c.keyed.checked = now
	check, ours := c.keyed.check, c.users[len(c.users)-1].ufrag
	check.remote = c.remote
	c.mu.Unlock()
	k := c.transport.checks.Get().(*checker) //nolint:forcetypeassert // that is what the pool makes
	c.transport.checkBack(check, ours, k)
	c.transport.checks.Put(k)
}

// otherChecked is checked for a keyed connection. An authentic check may be a copy that somebody sends from elsewhere, so
// media goes only to an address that answers. The node checks one back from which the other node comes while the address
// in use, or the one that control named, is silent. It needs mu.
func (c *Conn) otherChecked(from egress.Address, at time.Time) (back checkBack, wanted bool) {
	if c.remote == (user{}) || from == c.keyed.check.to || c.up && !c.abandoned(at) {
		return checkBack{}, false
	}
	return c.checkThere(from, at)
}

// otherAnswered is answered for a keyed connection: an answer to a check under way proves that the other node lives, and
// that it receives at that address.
func (c *Conn) otherAnswered(from egress.Address, now time.Time, id [stun.TransactionIDSize]byte, authentic func(password string) bool) {
	c.mu.Lock()
	k := c.keyed
	asked := from == k.check.to && id == k.check.id || from == c.wanted.to && id == c.wanted.id
	if c.closed || !asked || !authentic(c.remote.password) {
		c.mu.Unlock()
		return
	}
	moved := c.up && *c.selected.Load() != from
	c.use(from, now)
	k.check, c.wanted = checkBack{to: from, id: stun.NewTransactionID()}, checkBack{}
	if !c.up {
		c.up = true
		close(k.answered)
		c.running.Go(func() { c.transport.on(c, time.Now(), (*Conn).settle) })
	}
	c.mu.Unlock()
	if moved {
		c.cfg.Handler.Moved()
	}
}
