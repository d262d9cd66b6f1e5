package egress

import (
	"encoding/binary"
	"errors"
	"net"
	"runtime"
	"sync"
	"testing"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
)

// arrivals are what the readers of a Conn took.
type arrivals struct {
	conn *Conn
	at   Address

	mu      sync.Mutex // guards the fields below
	packets int
	bytes   int
	readers map[Address]map[int]bool // of each sender
	newest  map[Address]uint32       // number of each sender
	late    int                      // packets that were overtaken
}

// readAll binds sockets to one address and reads them until the test ends.
func readAll(t *testing.T, sockets int) *arrivals {
	t.Helper()
	bound, err := Listen(&net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}, sockets)
	if err != nil {
		t.Fatal(err)
	}
	a := &arrivals{conn: New(Options{Gather: true}, bound...), at: to(bound[0]), readers: map[Address]map[int]bool{}, newest: map[Address]uint32{}}
	var reading sync.WaitGroup
	for reader := range a.conn.Readers() {
		reading.Go(func() {
			err := a.conn.Receive(reader, func(b []byte, from Address) { a.take(reader, b, from) }, nil)
			if !errors.Is(err, net.ErrClosed) {
				t.Errorf("reader %d ended with %v", reader, err)
			}
		})
	}
	t.Cleanup(func() {
		if err := a.conn.Close(); err != nil {
			t.Error(err)
		}
		reading.Wait()
	})
	return a
}

func (a *arrivals) take(reader int, b []byte, from Address) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.packets++
	a.bytes += len(b)
	if a.readers[from] == nil {
		a.readers[from] = map[int]bool{}
	}
	a.readers[from][reader] = true
	n := binary.BigEndian.Uint32(b)
	if n <= a.newest[from] {
		a.late++
	}
	a.newest[from] = n
}

func (a *arrivals) await(t *testing.T, packets int) {
	t.Helper()
	testkit.Eventually(t, "all packets are taken", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.packets == packets
	})
}

// TestWhatOneAddressSendsComesToOneReader in order, and many addresses to all readers.
func TestWhatOneAddressSendsComesToOneReader(t *testing.T) {
	const sockets, senders, packets = 4, 100, 20
	a := readAll(t, sockets)
	var from []*net.UDPConn
	for range senders {
		from = append(from, listen(t, "udp4"))
	}
	for n := range uint32(packets) {
		for _, sender := range from {
			if _, err := sender.WriteToUDPAddrPort(binary.BigEndian.AppendUint32(nil, n+1), a.at.AddrPort); err != nil {
				t.Fatal(err)
			}
		}
		a.await(t, int(n+1)*senders) // The kernel drops nothing.
	}
	used := map[int]bool{}
	for sender, readers := range a.readers {
		if len(readers) != 1 {
			t.Errorf("what %v sent came to %d readers", sender, len(readers))
		}
		for reader := range readers {
			used[reader] = true
		}
	}
	if len(a.readers) != senders || a.late != 0 {
		t.Errorf("packets of %d senders, want %d; %d were late", len(a.readers), senders, a.late)
	}
	if runtime.GOOS == "linux" && len(used) != sockets {
		t.Errorf("%d readers got packets, want %d", len(used), sockets)
	}
}

// TestEverySocketSendsFromTheAddress: a client takes nothing from another one.
func TestEverySocketSendsFromTheAddress(t *testing.T) {
	a, r := readAll(t, 3), listen(t, "udp4")
	for i := range 6 {
		b := a.conn.NewBatch()
		b.Begin()
		if _, err := put(b, []byte{byte(i)}, to(r)); err != nil {
			t.Fatal(err)
		}
		b.End()
		got := make([]byte, 10)
		if n, from, err := r.ReadFromUDPAddrPort(got); n != 1 || got[0] != byte(i) || from != a.at.AddrPort || err != nil {
			t.Fatalf("%d bytes from %v (%v), want packet %d from %v", n, from, err, i, a.at)
		}
	}
}

// TestPacketsThatTheKernelJoinedAreTakenApart: it joins them as the sender gave them to it, in one message.
func TestPacketsThatTheKernelJoinedAreTakenApart(t *testing.T) {
	a := readAll(t, 1)
	sender := New(Options{Gather: true, Segment: true}, listen(t, "udp4"))
	b := sender.NewBatch()
	sizes := []int{1200, 1200, 1200, 1200, 700, 1200, 40, 40, 39}
	b.Begin()
	total := 0
	for i, size := range sizes {
		packet := make([]byte, size)
		binary.BigEndian.PutUint32(packet, uint32(i+1))
		if _, err := put(b, packet, a.at); err != nil {
			t.Fatal(err)
		}
		total += size
	}
	b.End()
	a.await(t, len(sizes))
	if a.bytes != total || a.late != 0 {
		t.Errorf("%d bytes, want %d; %d packets were late", a.bytes, total, a.late)
	}
}

// TestAnAddressThatIsTakenIsRefused, also when its holder shares it among sockets of its own.
func TestAnAddressThatIsTakenIsRefused(t *testing.T) {
	a := readAll(t, 2)
	if more, err := Listen(net.UDPAddrFromAddrPort(a.at.AddrPort), 2); err == nil {
		for _, socket := range more {
			socket.Close()
		}
		t.Error("two nodes got one address")
	}
}

// TestReadingAllocatesNothing for a packet.
func TestReadingAllocatesNothing(t *testing.T) {
	bound, err := Listen(&net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}, 1)
	if err != nil {
		t.Fatal(err)
	}
	c, sender := New(Options{}, bound...), listen(t, "udp4")
	taken := make(chan Address)
	ended := make(chan error, 1)
	go func() { ended <- c.Receive(0, func(_ []byte, from Address) { taken <- from }, nil) }()
	at, packet := to(bound[0]), make([]byte, 100)
	if n := testing.AllocsPerRun(100, func() {
		_, _ = sender.WriteToUDPAddrPort(packet, at.AddrPort)
		<-taken
	}); n > 0.5 {
		t.Errorf("%v allocations a packet", n)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	<-ended
}
