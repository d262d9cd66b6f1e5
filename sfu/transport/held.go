package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/pion/stun/v4"
	"golang.org/x/time/rate"

	"github.com/holdfast-rtc/holdfast/sfu/egress"
)

const (
	// heldSilence is longer than the 2.5 s in which Chromium checks an address that is not in use. Firefox stops checking
	// such an address, so that this node checks it.
	heldSilence = 5 * time.Second
	// orderEvery is how often a client is ordered here until it has answered, and orders how many times.
	// calledEvery is how often a client is checked that has not checked this node.
	calledEvery = time.Second
	orderEvery  = 50 * time.Millisecond
	orders      = 10
)

var (
	errNotSeen = errors.New("the client has not shown its password here")
	errTaken   = errors.New("the connection has been taken over already")
)

// Secrets are what another node needs to go on with a connection: who has them can listen and speak. They
// never print themselves.
type Secrets struct {
	Keys         Keys
	Ours, Theirs Credentials
	Numbers      Numbers
	// At is where the client is. It is zero without an address in use, and over TCP.
	At netip.AddrPort
}

func (s Secrets) String() string { return "secrets of a connection (hidden)" }

// GoString hides the secrets.
func (s Secrets) GoString() string { return s.String() }

// LogValue hides the secrets.
func (s Secrets) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Secrets returns the present ones. Before DTLS is up there are no keys, and also if the client has another SRTP profile than
// AES-128-GCM. Only Bound makes it safe to give the keys away.
func (c *Conn) Secrets() Secrets {
	ours := c.Credentials()
	c.mu.Lock()
	s := Secrets{Keys: c.keys, Ours: ours, Theirs: Credentials{Ufrag: c.remote.ufrag, Password: c.remote.password}}
	c.mu.Unlock()
	if used := c.selected.Load(); used != nil && used.Stream == nil {
		s.At = used.AddrPort
	}
	s.Numbers = c.Numbers()
	return s
}

// Held is a client of another node, for which this node stands by: it hears the client's checks, and answers them when it
// may, so that both know that they reach each other. It is safe for concurrent use.
type Held struct {
	transport *Transport
	ours      user
	remote    user
	stranger  *rate.Limiter

	mu sync.Mutex // guards the fields below
	// answers says that the client follows the other node's nominations: it does not come here by itself.
	answers bool
	taken   bool
	// there is where the other node has the client. A client that does not check this node is checked there, and may learn this node's address from that,
	// as one of this priority.
	there    egress.Address
	priority uint32
	// at is from where the client last checked.
	at      egress.Address
	heard   time.Time
	checked time.Time
}

// Hold stands by for a client of another node. It is false if this node knows the credentials already.
func (t *Transport) Hold(ours, theirs Credentials) (*Held, bool) {
	h := &Held{
		transport: t, ours: user{ours.Ufrag, ours.Password}, remote: user{theirs.Ufrag, theirs.Password},
		stranger: rate.NewLimiter(checksPerSecond, checksBurst),
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byUser[ours.Ufrag] != nil || t.held[ours.Ufrag] != nil {
		return nil, false
	}
	t.held[ours.Ufrag] = h
	return h, true
}

// Answer says whether the client's checks may be answered.
func (h *Held) Answer(reversed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answers = reversed
}

// Find has the client checked at the address at, so that it learns this node's address as one of this priority (RFC 8445 section 7.3.1.3). A zero
// address leaves it to the client.
func (h *Held) Find(at netip.AddrPort, priority uint32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.there, h.priority = egress.UDP(at), priority
}

// Seen reports whether the client can be ordered here: it has checked this node, and follows nominations.
func (h *Held) Seen() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.answers && h.at.IsValid()
}

// Release ends it.
func (h *Held) Release() {
	t := h.transport
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held[h.ours.ufrag] == h {
		delete(t.held, h.ours.ufrag)
	}
}

func (t *Transport) heldBy(user string) *Held {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.held[user]
}

func (t *Transport) listHeld() []*Held {
	t.mu.RLock()
	defer t.mu.RUnlock()
	list := make([]*Held, 0, len(t.held))
	for _, h := range t.held {
		list = append(list, h)
	}
	return list
}

func (h *Held) check(b []byte, from egress.Address, now time.Time, k *checker) {
	if from.Stream != nil || !h.stranger.AllowN(now, 1) {
		return
	}
	k.request.Reset()
	if _, err := k.request.Write(b); err != nil {
		return
	}
	integrity := stun.NewShortTermIntegrity(h.ours.password)
	if integrity.Check(&k.request) != nil {
		return
	}
	h.mu.Lock()
	h.at, h.heard = from, now
	answers := h.answers
	h.mu.Unlock()
	if answers {
		h.transport.respond(from, integrity, k)
	}
}

// keep checks a client that does not check this node.
func (h *Held) keep(now time.Time) {
	h.mu.Lock()
	at, silence := h.at, heldSilence
	if !at.IsValid() {
		at, silence = h.there, calledEvery
	}
	due := h.answers && at.IsValid() && now.Sub(h.heard) >= silence && now.Sub(h.checked) >= silence
	if due {
		h.checked = now
	}
	priority := h.priority
	h.mu.Unlock()
	if !due {
		return
	}
	k := h.transport.checks.Get().(*checker) //nolint:forcetypeassert // that is what the pool makes
	h.transport.checkBack(checkBack{to: at, id: stun.NewTransactionID(), remote: h.remote, role: controlling, priority: priority}, h.ours.ufrag, k)
	h.transport.checks.Put(k)
}

// take ends the standing by, and returns where the client is.
func (h *Held) take() (egress.Address, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.taken:
		return egress.Address{}, errTaken
	case !h.answers || !h.at.IsValid():
		return egress.Address{}, errNotSeen
	}
	h.taken = true
	return h.at, nil
}

// Continue makes a connection of a held client, with the secrets that its node told. It sends nothing before Begin. cfg has
// no credentials, fingerprint, profiles and keys.
func (t *Transport) Continue(cfg Config, s Secrets, from *Held) (*Conn, error) {
	if s.Keys.IsZero() {
		return nil, errNoKeys
	}
	at, err := from.take()
	if err != nil {
		return nil, err
	}
	from.Release()
	c := t.newConn(cfg)
	c.fingerprint, c.remote, c.users = s.Ours.Fingerprint, from.remote, []user{from.ours}
	c.nominated, c.begun, c.reversal = true, true, reversal{wanted: true}
	c.keys, c.priority = s.Keys, from.priority
	if err := openBoth(c, s.Keys.srtp(), s.Numbers); err != nil {
		return nil, fmt.Errorf("go on with a connection: %w", err)
	}
	c.selected.Store(&at)
	t.serve(from.ours.ufrag, c)
	if !t.admit(c, at, time.Now()) {
		c.Close()
		return nil, errTaken
	}
	return c, nil
}

// Begin orders a continued client here, until it has answered, and begins to send.
func (c *Conn) Begin() {
	c.heardFrom(*c.selected.Load(), time.Now())
	ctx, cancel := context.WithCancel(context.Background())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		cancel()
		return
	}
	c.up, c.cancel = true, cancel
	c.running.Go(func() {
		defer cancel()
		c.transport.on(c, time.Now(), (*Conn).settle)
		c.order(ctx)
	})
}

func (c *Conn) order(ctx context.Context) {
	again := time.NewTicker(orderEvery)
	defer again.Stop()
	for range orders {
		c.mu.Lock()
		answered := c.reversal.answers > 0
		c.reversal.at = time.Time{}
		c.mu.Unlock()
		if answered {
			return
		}
		c.nominate(time.Now())
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}
