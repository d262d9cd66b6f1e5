package relay

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pion/stun/v4"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// hand sends single messages.
type hand struct {
	t     testing.TB
	conn  net.Conn
	nonce string
}

func (s *stage) hand(transport string) *hand {
	s.t.Helper()
	server := s.udp
	if transport == "tcp" {
		server = s.tcp
	}
	conn, err := net.Dial(transport, server)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	return &hand{t: s.t, conn: conn}
}

func (h *hand) send(method stun.Method, attributes ...stun.Setter) {
	h.t.Helper()
	m, err := stun.Build(append([]stun.Setter{stun.TransactionID, stun.NewType(method, stun.ClassRequest)}, attributes...)...)
	if err == nil {
		_, err = h.conn.Write(m.Raw)
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *hand) answer() *stun.Message {
	h.t.Helper()
	buffer := make([]byte, 2000)
	_ = h.conn.SetReadDeadline(time.Now().Add(patience))
	n, err := h.conn.Read(buffer)
	if err != nil {
		h.t.Fatal(err)
	}
	m := &stun.Message{Raw: buffer[:n]}
	if err := m.Decode(); err != nil {
		h.t.Fatal(err)
	}
	var nonce stun.Nonce
	if nonce.GetFrom(m) == nil {
		h.nonce = nonce.String()
	}
	return m
}

// asks returns whether it was granted.
func (h *hand) asks(as wire.ICEServer, method stun.Method, attributes ...stun.Setter) bool {
	h.t.Helper()
	if h.nonce == "" {
		h.send(stun.MethodAllocate)
		h.answer()
	}
	h.send(method, append(attributes, proof(as, h.nonce)...)...)
	return h.answer().Type.Class == stun.ClassSuccessResponse
}

func proof(as wire.ICEServer, nonce string) []stun.Setter {
	return []stun.Setter{
		stun.NewUsername(as.Username), stun.NewRealm(realm), stun.NewNonce(nonce), stun.NewLongTermIntegrity(as.Username, realm, as.Credential),
	}
}

var (
	overUDP = stun.RawAttribute{Type: stun.AttrRequestedTransport, Value: []byte{17, 0, 0, 0}}
	overTCP = stun.RawAttribute{Type: stun.AttrRequestedTransport, Value: []byte{6, 0, 0, 0}}
	ends    = stun.RawAttribute{Type: stun.AttrLifetime, Value: []byte{0, 0, 0, 0}}
)

// TestAnAllocationIsOneSessions: who forges a client's address ends nothing with a credential of its own.
func TestAnAllocationIsOneSessions(t *testing.T) {
	s := newStage(t, nil)
	issuer := &Issuer{Secrets: secrets, Life: time.Hour}
	now := time.Now()
	ada, again, eve := issuer.Server("p-ada", time.Time{}, now), issuer.Server("p-ada", time.Time{}, now.Add(time.Minute)), issuer.Server("p-eve", time.Time{}, now)
	for _, transport := range []string{"udp", "tcp"} {
		h := s.hand(transport)
		if !h.asks(ada, stun.MethodAllocate, overUDP) {
			t.Fatal("no allocation")
		}
		before := s.relay.Counters().RefusedCredentials
		if h.asks(eve, stun.MethodRefresh, ends) || h.asks(eve, stun.MethodCreatePermission) {
			t.Error("another session has the allocation")
		}
		if c := s.relay.Counters(); c.Allocations != 1 || c.RefusedCredentials != before+2 {
			t.Errorf("counted %+v", c)
		}
		if !h.asks(again, stun.MethodRefresh) {
			t.Error("a renewed credential of the same session does not prolong")
		}
		h.send(stun.MethodRefresh, append([]stun.Setter{ends}, proof(ada, h.nonce)...)...) // A connection ends with it.
		s.until("the allocation has ended", func(c Counters) bool { return c.Allocations == 0 })
	}
	if n := len(s.relay.owners); n != 0 {
		t.Errorf("%d ended allocations have owners", n)
	}
}

// TestAnAllocationOutlivesItsKey: a browser goes on with the credential that it allocated with.
func TestAnAllocationOutlivesItsKey(t *testing.T) {
	next := []byte("the next secret, of 32 bytes and more")
	var current atomic.Pointer[[][]byte]
	current.Store(&[][]byte{next, secret})
	s := newStage(t, func(c *Config) { c.Secrets = func() [][]byte { return *current.Load() } })
	issuer := &Issuer{Secrets: secrets, Life: time.Hour}
	old := issuer.Server("p-ada", time.Time{}, time.Now())
	h := s.hand("udp")
	if !h.asks(old, stun.MethodAllocate, overUDP) {
		t.Fatal("no allocation")
	}
	current.Store(&[][]byte{next})
	if !h.asks(old, stun.MethodRefresh) {
		t.Error("the allocation is not renewed once its key is dropped")
	}
	if s.hand("udp").asks(old, stun.MethodAllocate, overUDP) {
		t.Error("a dropped key allocates")
	}
	forged := issuer.Server("p-ada", time.Time{}, time.Now())
	forged.Credential = password(next, forged.Username)
	if h.asks(forged, stun.MethodRefresh) {
		t.Error("the allocation is renewed without its password")
	}
}

func TestNoTCPIsRelayed(t *testing.T) {
	s := newStage(t, nil)
	given := (&Issuer{Secrets: secrets, Life: time.Hour}).Server("p-eve", time.Time{}, time.Now())
	h := s.hand("tcp")
	if h.asks(given, stun.MethodAllocate, overTCP) {
		t.Error("an allocation of TCP was made")
	}
	if !h.asks(given, stun.MethodAllocate, overUDP) {
		t.Error("no allocation")
	}
	h.send(stun.MethodConnect, proof(given, h.nonce)...) // That is not answered, and what follows is.
	if !h.asks(given, stun.MethodRefresh) {
		t.Error("the allocation was lost")
	}
}

// TestAMessageThatBreaksItsReadingIsDropped: nobody else is harmed.
func TestAMessageThatBreaksItsReadingIsDropped(t *testing.T) {
	poison := []byte("poison")
	s := newStage(t, func(c *Config) {
		c.read = func(message []byte) bool {
			if bytes.Contains(message, poison) {
				panic(errNoSuch)
			}
			return readable(message)
		}
	})
	ada := s.allocate(s.sessionClient("udp", "p-ada"))
	s.comesBack(ada)
	for i, transport := range []string{"udp", "tcp"} {
		h := s.hand(transport)
		h.send(stun.MethodBinding, stun.RawAttribute{Type: stun.AttrSoftware, Value: poison})
		h.send(stun.MethodBinding)
		if h.answer().Type.Class != stun.ClassSuccessResponse {
			t.Error("what followed was not answered")
		}
		if n := s.relay.config.Panics.Count(); n != uint64(i+1) {
			t.Errorf("%d panics were counted, want %d", n, i+1)
		}
	}
	s.comesBack(ada)
}

// oneClient is a UDP socket with a client who sends what a test wants.
type oneClient struct {
	net.PacketConn
	messages chan []byte
	taken    chan struct{} // by Pion, which has handled the message before
	answers  chan []byte
	ended    chan struct{}
	close    sync.Once
}

var theClient = &net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 5000}

func (c *oneClient) ReadFrom(into []byte) (int, net.Addr, error) {
	select {
	case c.taken <- struct{}{}:
	case <-c.ended:
		return 0, nil, net.ErrClosed
	}
	select {
	case message := <-c.messages:
		return copy(into, message), theClient, nil
	case <-c.ended:
		return 0, nil, net.ErrClosed
	}
}

func (c *oneClient) WriteTo(message []byte, _ net.Addr) (int, error) {
	select {
	case c.answers <- bytes.Clone(message):
	default:
	}
	return len(message), nil
}

func (c *oneClient) LocalAddr() net.Addr { return &net.UDPAddr{IP: net.IPv4(192, 0, 2, 2), Port: 3478} }

func (c *oneClient) Close() error {
	c.close.Do(func() { close(c.ended) })
	return nil
}

// handle returns when the message has been handled.
func (c *oneClient) handle(message []byte) {
	c.messages <- message
	<-c.taken
}

// FuzzMessages has Pion's server handle messages of a client with a credential and an allocation. A panic there ends the process.
func FuzzMessages(f *testing.F) {
	config := DefaultConfig()
	config.Address, config.Secrets, config.Panics = netip.MustParseAddr("127.0.0.1"), secrets, panics.New()
	config.MaxAge, config.BytesPerSecond = time.Hour, 1<<30
	config.Media = NewGossiped(views{&cluster.View{Nodes: map[ring.NodeID]cluster.Node{"sfu-1": {Media: "127.0.0.1:9"}}}})
	relay, err := New(config, slog.New(slog.DiscardHandler))
	if err != nil {
		f.Fatal(err)
	}
	conn := &oneClient{messages: make(chan []byte), taken: make(chan struct{}), answers: make(chan []byte, 1), ended: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- relay.Run(ctx, Listeners{UDP: conn}) }()
	f.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			f.Error(err)
		}
	})
	<-conn.taken
	given := (&Issuer{Secrets: secrets, Life: time.Hour}).Server("p-eve", time.Time{}, time.Now())
	nonce := ""
	ask := func(method uint16, class byte, attributes []byte) {
		m := stun.New()
		m.Type = stun.NewType(stun.Method(method), stun.MessageClass(class%4))
		m.TransactionID = [stun.TransactionIDSize]byte{1}
		m.Raw = append(m.Raw, attributes...)
		m.Length = uint32(len(attributes))
		m.WriteHeader()
		for _, attribute := range proof(given, nonce) {
			_ = attribute.AddTo(m)
		}
		conn.handle(m.Raw)
	}
	fresh := func() {
		select {
		case <-conn.answers:
		default:
		}
		ask(uint16(stun.MethodAllocate), 0, []byte{0, 25, 0, 4, 17, 0, 0, 0})
		select {
		case text := <-conn.answers:
			var told stun.Nonce
			if m := (&stun.Message{Raw: text}); m.Decode() == nil && told.GetFrom(m) == nil {
				nonce = told.String()
				ask(uint16(stun.MethodAllocate), 0, []byte{0, 25, 0, 4, 17, 0, 0, 0})
			}
		default:
		}
	}
	peer := "\x00\x12\x00\x08\x00\x01\x21\x1b\x5e\x12\xa4\x43" // 127.0.0.1:9
	for method, attributes := range map[stun.Method]string{
		stun.MethodAllocate: "\x00\x19\x00\x04\x11\x00\x00\x00\x00\x18\x00\x01\x80\x00\x00\x00", stun.MethodRefresh: "\x00\x0d\x00\x04\x00\x00\x00\x00",
		stun.MethodCreatePermission: peer, stun.MethodChannelBind: peer + "\x00\x0c\x00\x04\x40\x00\x00\x00", stun.MethodSend: peer + "\x00\x13\x00\x04psst", stun.MethodBinding: "",
	} {
		f.Add(uint16(method), byte(0), []byte(attributes))
		f.Add(uint16(method), byte(1), []byte(attributes))
	}
	f.Add(uint16(0xffff), byte(0), []byte("\x40\x00\x00\x04psst"))
	f.Fuzz(func(t *testing.T, method uint16, class byte, attributes []byte) {
		if len(attributes) > 1200 {
			return
		}
		fresh()
		ask(method, class, attributes)
		conn.handle(attributes)
	})
}

// TestAnswersToAddressesWithoutAnAllocationAreBounded: the source address of a datagram may be forged, and the answer, with its
// challenge, is several times as long as the request.
func TestAnswersToAddressesWithoutAnAllocationAreBounded(t *testing.T) {
	const burst, sent = 20, 200
	s := newStage(t, func(c *Config) { c.RequestsPerSecond, c.RequestBurst = 0.001, burst })
	caller := s.allocate(s.sessionClient("udp", "p-caller"))
	victim := udp(t)
	server, err := net.ResolveUDPAddr("udp", s.udp)
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan struct{}, sent)
	go func() {
		buffer := make([]byte, 2000)
		for {
			if _, err := victim.Read(buffer); err != nil {
				return
			}
			answered <- struct{}{}
		}
	}()
	for range sent {
		request, err := stun.Build(stun.TransactionID, stun.NewType(stun.MethodAllocate, stun.ClassRequest))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := victim.WriteTo(request.Raw, server); err != nil {
			t.Fatal(err)
		}
	}
	s.until("all but the burst are dropped", func(c Counters) bool { return c.DroppedRequests >= sent-burst })
	s.comesBack(caller) // It has an allocation, so its requests are answered.
	if n := len(answered); n == 0 || n > burst {
		t.Errorf("%d of %d requests were answered, want %d at most", n, sent, burst)
	}
}
