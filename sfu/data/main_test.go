package data

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pion/datachannel"
	"github.com/pion/logging"
	"github.com/pion/sctp"
	"go.uber.org/goleak"

	"github.com/holdfast-rtc/holdfast/internal/panics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

// hall is a room, and what it handed to other nodes.
type hall struct {
	*Room

	t      testing.TB
	tally  *Tally
	mu     sync.Mutex
	passed []Message
	guard  *panics.Guard
}

func newHall(t testing.TB) *hall {
	h := &hall{t: t, tally: &Tally{}, guard: panics.New()}
	h.Room = NewRoom(h.tally, func(m Message) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.passed = append(h.passed, m)
	})
	return h
}

// guest is a client's end, as a browser has it.
type guest struct {
	t           testing.TB
	association *sctp.Association
	// near is the client's end of the cable.
	near *gate
	may  atomic.Bool
	// channels are by kind.
	channels [2]*datachannel.DataChannel
	gone     chan struct{}
}

// gate is a cable's end that can be shut, after which what arrives is not read.
type gate struct {
	net.Conn

	mu   sync.Mutex
	shut bool
}

func (g *gate) Read(b []byte) (int, error) {
	for {
		n, err := g.Conn.Read(b)
		g.mu.Lock()
		shut := g.shut
		g.mu.Unlock()
		if err != nil || !shut {
			return n, err
		}
	}
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
}

// enter connects a client, of which the room knows nothing but what it is told.
func (h *hall) enter(peer string, change ...func(*Client)) *guest {
	h.t.Helper()
	near, far := net.Pipe()
	g := &guest{t: h.t, near: &gate{Conn: near}, gone: make(chan struct{})}
	g.may.Store(true)
	who := Client{
		Sender: Sender{Peer: peer, Identity: peer}, MaySend: g.may.Load, Log: slog.New(slog.DiscardHandler), Panics: h.guard,
	}
	for _, changed := range change {
		changed(&who)
	}
	go func() {
		defer close(g.gone)
		h.Serve(far, who)
	}()
	association, err := sctp.ClientWithOptions(
		sctp.WithNetConn(g.near), sctp.WithEnableZeroChecksum(true),
		sctp.WithLoggerFactory(&logging.DefaultLoggerFactory{Writer: io.Discard, DefaultLogLevel: logging.LogLevelDisabled}),
	)
	if err != nil {
		h.t.Fatal(err)
	}
	g.association = association
	h.t.Cleanup(func() {
		_ = association.Close()
		<-g.gone
	})
	g.open(who)
	eventually(h.t, "the channels are open", func() bool {
		h.Room.mu.RLock()
		defer h.Room.mu.RUnlock()
		c := h.clients[peer]
		return c != nil && c.channels[Reliable].Load() != nil && c.channels[Lossy].Load() != nil
	})
	return g
}

func (g *guest) open(who Client) {
	g.t.Helper()
	reliable := &datachannel.Config{Label: labelReliable, ChannelType: datachannel.ChannelTypeReliable, Negotiated: who.Streams[Reliable] != 0}
	lossy := &datachannel.Config{Label: labelLossy, ChannelType: datachannel.ChannelTypePartialReliableRexmitUnordered, Negotiated: who.Streams[Lossy] != 0}
	ids := [2]uint16{1, 3}
	if who.Streams != (Streams{}) {
		ids = who.Streams
	}
	for kind, config := range []*datachannel.Config{Reliable: reliable, Lossy: lossy} {
		config.LoggerFactory = logging.NewDefaultLoggerFactory()
		channel, err := datachannel.Dial(g.association, ids[kind], config)
		if err != nil {
			g.t.Fatal(err)
		}
		g.channels[kind] = channel
	}
}

func (g *guest) say(kind Kind, message []byte) {
	g.t.Helper()
	if _, err := g.channels[kind].WriteDataChannel(message, false); err != nil {
		g.t.Fatal(err)
	}
}

// hear returns the next message, or nothing when the client's association has ended.
func (g *guest) hear(kind Kind) []byte {
	g.t.Helper()
	b := make([]byte, 64<<10)
	_ = g.channels[kind].SetReadDeadline(time.Now().Add(patience))
	defer func() { _ = g.channels[kind].SetReadDeadline(time.Time{}) }()
	n, err := g.channels[kind].Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		g.t.Fatal(err)
	}
	return b[:n]
}

// user is a DataPacket with a payload, and what else a client puts into it.
func user(payload string, more ...[]byte) []byte {
	inner := appendBytes(nil, 2, []byte(payload))
	for _, m := range more {
		inner = append(inner, m...)
	}
	return appendBytes(nil, packetUser, inner)
}

func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	limit := time.After(patience)
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for !holds() {
		select {
		case <-look.C:
		case <-limit:
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// content is what a receiver reads of a DataPacket.
type content struct{ payload, identity, sid, innerIdentity, innerSID string }

func read(t testing.TB, message []byte) content {
	t.Helper()
	var c content
	err := walk(message, func(f field) error {
		switch f.number {
		case packetIdentity:
			c.identity = string(f.value)
		case packetSID:
			c.sid = string(f.value)
		case packetSequence:
			t.Error("the message has a sequence number")
		case packetUser:
			return walk(f.value, func(f field) error {
				switch f.number {
				case userSID:
					c.innerSID = string(f.value)
				case userIdentity:
					c.innerIdentity = string(f.value)
				case 2:
					c.payload = string(f.value)
				}
				return nil
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
