package egress

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func listen(tb testing.TB, network string) *net.UDPConn {
	tb.Helper()
	conn, err := net.ListenUDP(network, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { conn.Close() })
	return conn
}

func to(conn *net.UDPConn) Address {
	address, ok := conn.LocalAddr().(*net.UDPAddr)
	if !ok {
		return Address{}
	}
	return UDP(netip.AddrPortFrom(address.AddrPort().Addr().Unmap(), uint16(address.Port)))
}

// read gives the next packet, or nil when none comes for the time given.
func read(tb testing.TB, conn *net.UDPConn, limit time.Duration) []byte {
	tb.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(limit)); err != nil {
		tb.Fatal(err)
	}
	b := make([]byte, 1<<16)
	n, err := conn.Read(b)
	if err != nil {
		return nil
	}
	return b[:n]
}

// put writes a packet as the transports do.
func put(b *Batch, payload []byte, to Address) (int, error) {
	n := copy(b.Space(len(payload)), payload)
	return n, b.Put(n, to, 0)
}

func options() map[string]Options {
	return map[string]Options{
		"plain":     {},
		"gathered":  {Gather: true},
		"segmented": {Gather: true, Segment: true},
	}
}

// TestEveryPacketArrivesInOrder writes a mix of sizes to several destinations.
func TestEveryPacketArrivesInOrder(t *testing.T) {
	for name, o := range options() {
		t.Run(name, func(t *testing.T) {
			c := New(o, listen(t, "udp4"))
			receivers := []*net.UDPConn{listen(t, "udp4"), listen(t, "udp4"), listen(t, "udp4")}
			sizes := []int{1200, 1200, 1200, 900, 1200, 1, 500, 1300, 1300, 1199, 1200}
			sizes = append(sizes, slices.Repeat([]int{40}, 150)...) // more than the kernel cuts in one go
			for _, r := range receivers {
				if err := r.SetReadBuffer(1 << 20); err != nil {
					t.Fatal(err)
				}
			}
			var bytesWritten, packets uint64
			batch := c.NewBatch()
			for round := range 5 {
				batch.Begin()
				for i, size := range sizes {
					for _, r := range receivers {
						n, err := put(batch, bytes.Repeat([]byte{byte(round*len(sizes) + i)}, size), to(r))
						if n != size || err != nil {
							t.Fatal(n, err)
						}
						bytesWritten += uint64(size)
						packets++
					}
				}
				if o.Gather && c.Stats().Packets == packets {
					t.Fatal("all was sent before End")
				}
				batch.End()
				for _, r := range receivers {
					for i, size := range sizes {
						want := bytes.Repeat([]byte{byte(round*len(sizes) + i)}, size)
						if got := read(t, r, 10*time.Second); !bytes.Equal(got, want) {
							t.Fatalf("round %d packet %d: %d bytes, want %d", round, i, len(got), size)
						}
					}
				}
			}
			s := c.Stats()
			if s.Packets != packets || s.Bytes != bytesWritten || s.Errors != 0 {
				t.Fatal(s)
			}
			// One call a full batch. A message that the kernel refuses costs several.
			if o.Gather && runtime.GOOS == "linux" && s.Calls > 4*5 {
				t.Fatalf("%d calls for %d packets", s.Calls, packets)
			}
		})
	}
}

// TestOutsideOfAGatherNothingWaits: also after one, nor for another's End.
func TestOutsideOfAGatherNothingWaits(t *testing.T) {
	c := New(Options{Gather: true, Segment: true}, listen(t, "udp4"))
	r := listen(t, "udp4")
	one, other := c.NewBatch(), c.NewBatch()
	write := func(b *Batch, text string) {
		if _, err := put(b, []byte(text), to(r)); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(text string) {
		t.Helper()
		if got := read(t, r, 10*time.Second); string(got) != text {
			t.Fatalf("%q, want %q", got, text)
		}
	}
	write(one, "alone")
	expect("alone")
	one.Begin()
	write(one, "later")
	other.Begin()
	write(other, "one")
	other.End()
	expect("one")
	if _, err := c.Write([]byte("unbatched"), to(r)); err != nil {
		t.Fatal(err)
	}
	expect("unbatched")
	one.End()
	expect("later")
	write(one, "three")
	expect("three")
}

// TestAFullBatchIsSent: more is written before End than it holds, in packets and in bytes.
func TestAFullBatchIsSent(t *testing.T) {
	for size, fits := range map[int]int{1: batchPackets, 2000: batchBytes / 2000} {
		c := New(Options{Gather: true, Segment: true}, listen(t, "udp4"))
		r := listen(t, "udp4")
		b := c.NewBatch()
		b.Begin()
		for range fits + 1 {
			if _, err := put(b, make([]byte, size), to(r)); err != nil {
				t.Fatal(err)
			}
		}
		if n := c.Stats().Packets; n != uint64(fits) {
			t.Errorf("%d packets of %d bytes sent, want %d", n, size, fits)
		}
		b.End()
		if n := c.Stats().Packets; n != uint64(fits)+1 {
			t.Errorf("%d packets of %d bytes sent after End, want one more than %d", n, size, fits)
		}
	}
}

// TestAPacketThatNoBatchHolds gets less space than was asked for.
func TestAPacketThatNoBatchHolds(t *testing.T) {
	c := New(Options{Gather: true}, listen(t, "udp4"))
	if n := len(c.NewBatch().Space(1 << 30)); n != batchBytes {
		t.Errorf("a space of %d bytes, want %d", n, batchBytes)
	}
}

// TestAClosedSocketRefuses what was gathered, and counts it.
func TestAClosedSocketRefuses(t *testing.T) {
	socket := listen(t, "udp4")
	c := New(Options{Gather: true, Segment: true}, socket)
	b := c.NewBatch()
	b.Begin()
	for i := range 3 {
		if _, err := put(b, make([]byte, 100+i), to(socket)); err != nil {
			t.Fatal(err)
		}
	}
	socket.Close()
	b.End()
	if s := c.Stats(); s.Refused != 3 || s.Errors != 3 || s.Packets != 0 {
		t.Fatal(s)
	}
}

// TestOneRefusalCostsOneDestination: the kernel refuses one message in the
// middle of a batch.
func TestOneRefusalCostsOneDestination(t *testing.T) {
	for name, o := range options() {
		t.Run(name, func(t *testing.T) {
			c := New(o, listen(t, "udp4"))
			a, z := listen(t, "udp4"), listen(t, "udp4")
			nobody := UDP(netip.MustParseAddrPort("[2001:db8::1]:9")) // not in this socket's family
			batch := c.NewBatch()
			batch.Begin()
			for i := range 3 {
				for _, to := range []Address{to(a), nobody, to(z)} {
					_, _ = put(batch, []byte{byte(i)}, to) // gathered or not, an error is counted
				}
			}
			batch.End()
			for _, r := range []*net.UDPConn{a, z} {
				for i := range 3 {
					if got := read(t, r, 10*time.Second); !bytes.Equal(got, []byte{byte(i)}) {
						t.Fatal(got)
					}
				}
			}
			gathered := uint64(0)
			if o.Gather {
				gathered = 3
			}
			if s := c.Stats(); s.Errors != 3 || s.Packets != 6 || s.Refused != gathered {
				t.Fatal(s)
			}
		})
	}
}

// TestRoomsGatherAtTheSameTime: every writer's packets arrive, in its order.
func TestRoomsGatherAtTheSameTime(t *testing.T) {
	const rooms, rounds, burst = 4, 50, 3
	for name, o := range options() {
		t.Run(name, func(t *testing.T) {
			c := New(o, listen(t, "udp4"))
			var receivers [rooms]*net.UDPConn
			for i := range receivers {
				receivers[i] = listen(t, "udp4")
				if err := receivers[i].SetReadBuffer(1 << 20); err != nil {
					t.Fatal(err)
				}
			}
			var group sync.WaitGroup
			failures := make(chan error, rooms)
			for _, r := range receivers {
				group.Go(func() {
					batch, b := c.NewBatch(), make([]byte, 100)
					for round := range uint32(rounds) {
						batch.Begin()
						for i := range uint32(burst) {
							binary.BigEndian.PutUint32(b, round*burst+i)
							if _, err := put(batch, b, to(r)); err != nil {
								failures <- fmt.Errorf("write: %w", err)
							}
						}
						batch.End()
					}
				})
			}
			group.Wait()
			close(failures)
			for err := range failures {
				t.Fatal(err)
			}
			for _, r := range receivers {
				for i := range uint32(rounds * burst) {
					got := read(t, r, 10*time.Second)
					if len(got) != 100 || binary.BigEndian.Uint32(got) != i {
						t.Fatalf("packet %d missing or out of order", i)
					}
				}
			}
		})
	}
}

// TestDualStackSocket: an IPv6 socket that also serves IPv4, as a node's is.
func TestDualStackSocket(t *testing.T) {
	socket, err := net.ListenUDP("udp", &net.UDPAddr{})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	c := New(Options{Gather: true, Segment: true}, socket)
	r := listen(t, "udp4")
	mapped := UDP(netip.AddrPortFrom(netip.AddrFrom16(to(r).Addr().As16()), to(r).Port()))
	b := c.NewBatch()
	b.Begin()
	for _, address := range []Address{to(r), mapped, mapped} {
		if _, err := put(b, []byte("x"), address); err != nil {
			t.Fatal(err)
		}
	}
	b.End()
	for range 3 {
		if got := read(t, r, 10*time.Second); string(got) != "x" {
			t.Fatal(got, c.Stats())
		}
	}
}

func TestGatherAllocatesNothing(t *testing.T) {
	c := New(Options{Gather: true, Segment: true}, listen(t, "udp4"))
	destinations := []Address{to(listen(t, "udp4")), to(listen(t, "udp4"))}
	batch, b := c.NewBatch(), make([]byte, 1200)
	once := func() {
		batch.Begin()
		for range 3 {
			for _, d := range destinations {
				_, _ = put(batch, b, d)
			}
		}
		batch.End()
	}
	once()
	if n := testing.AllocsPerRun(100, once); n > 0.5 {
		t.Fatalf("%v allocations a gather", n)
	}
	alone := func() { _, _ = put(batch, b, destinations[0]) }
	alone()
	if n := testing.AllocsPerRun(100, alone); n > 0.5 {
		t.Fatalf("%v allocations for a packet that is sent at once", n)
	}
}
