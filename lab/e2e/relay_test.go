package e2e

import (
	"encoding/binary"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/child"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// relay is a UDP path between a browser and a node. Its way down can be narrow: a queue of queueBytes served at the
// path's rate. It can lose media at random, both ways.
type relay struct {
	front  *net.UDPConn // what the browser takes for the node
	target *net.UDPAddr

	mu       sync.Mutex // guards the fields below
	bits     float64    // a second; 0: as fast as it comes
	changed  chan struct{}
	clients  map[string]*net.UDPConn // by the browser's address
	queued   int                     // bytes
	lost     int                     // packets that found the queue full
	loss     float64                 // share of the packets of media
	dead     bool                    // nothing passes
	late     time.Duration           // by which sound comes down later than the rest
	losses   map[uint32]int          // so many of them were lost, by SSRC
	sent     map[uint32]int          // and so many came, padding not counted
	random   *rand.Rand
	closed   bool
	sessions sync.WaitGroup
}

// queueBytes is half a second at 250 kbit/s: what a cheap router has.
const queueBytes = 16 << 10

// startRelay makes a relay to the node's media address; it ends with the test.
func startRelay(t *testing.T, target string) *relay {
	t.Helper()
	to, err := net.ResolveUDPAddr("udp4", target)
	if err != nil {
		t.Fatal(err)
	}
	front, err := net.ListenUDP("udp4", &net.UDPAddr{IP: to.IP})
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{front: front, target: to, changed: make(chan struct{}), clients: map[string]*net.UDPConn{}, losses: map[uint32]int{}, sent: map[uint32]int{}, random: rand.New(rand.NewPCG(11, 11))}
	r.sessions.Go(r.up)
	t.Cleanup(func() {
		r.mu.Lock()
		r.closed = true
		for _, client := range r.clients {
			client.Close()
		}
		r.mu.Unlock()
		r.limit(0)
		front.Close()
		r.sessions.Wait()
	})
	return r
}

// via is where the browser is to send.
func (r *relay) via() string { return r.front.LocalAddr().String() }

// limit makes the way down that narrow, 0 for as wide as it is.
func (r *relay) limit(bitsPerSecond float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bits = bitsPerSecond
	close(r.changed)
	r.changed = make(chan struct{})
}

// up passes what the browser sends on, from a socket of its own for each address.
func (r *relay) up() {
	buffer := make([]byte, 1<<16)
	for {
		n, from, err := r.front.ReadFromUDP(buffer)
		if err != nil {
			return
		}
		if client := r.client(from); client != nil && !r.loses(buffer[:n]) {
			_, _ = client.Write(buffer[:n]) // A node that is gone is the test's affair.
		}
	}
}

func (r *relay) client(from *net.UDPAddr) *net.UDPConn {
	r.mu.Lock()
	defer r.mu.Unlock()
	client := r.clients[from.String()]
	if client != nil || r.closed || r.dead {
		return client
	}
	client, err := net.DialUDP("udp4", nil, r.target)
	if err != nil {
		return nil
	}
	r.clients[from.String()] = client
	queue := make(chan queuedPacket, 4096) // more than queueBytes of the smallest packets
	late := make(chan queuedPacket, 4096)
	r.sessions.Go(func() { r.down(client, queue, late) })
	r.sessions.Go(func() { r.serveLate(late, from) })
	r.sessions.Go(func() { r.serve(queue, from) })
	return client
}

// retarget leads to another node from now on.
func (r *relay) retarget(t *testing.T, target string) {
	t.Helper()
	to, err := net.ResolveUDPAddr("udp4", target)
	if err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.target = to
	for _, client := range r.clients {
		client.Close()
	}
	clear(r.clients)
}

// opus is the payload type of sound in what Chromium offers.
const opus = 111

// delaySound has sound come down later, and nothing else.
func (r *relay) delaySound(by time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.late = by
}

// lateBy is by how much a packet is to be late.
func (r *relay) lateBy(packet []byte) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(packet) < 12 || packet[0]>>6 != 2 || packet[1]&0x7F != opus {
		return 0
	}
	return r.late
}

// serveLate sends each packet when its time has come.
func (r *relay) serveLate(queue <-chan queuedPacket, to *net.UDPAddr) {
	for packet := range queue {
		<-time.After(time.Until(packet.at))
		_, _ = r.front.WriteToUDP(packet.bytes, to)
	}
}

type queuedPacket struct {
	bytes []byte
	at    time.Time // when it came
}

// down queues what the node sends, and drops what the queue does not hold.
func (r *relay) down(client *net.UDPConn, queue, late chan<- queuedPacket) {
	defer close(queue)
	defer close(late)
	buffer := make([]byte, 1<<16)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		if r.loses(buffer[:n]) {
			continue
		}
		if by := r.lateBy(buffer[:n]); by > 0 {
			late <- queuedPacket{bytes: append([]byte(nil), buffer[:n]...), at: time.Now().Add(by)}
			continue
		}
		r.mu.Lock()
		full := r.bits > 0 && r.queued+n > queueBytes
		if full {
			r.lost++
		} else {
			r.queued += n
		}
		r.mu.Unlock()
		if !full {
			queue <- queuedPacket{bytes: append([]byte(nil), buffer[:n]...), at: time.Now()}
		}
	}
}

// serve sends at the path's rate. A packet begins when the one before it has left, or when it comes, not when this
// goroutine runs: the path must not narrow on a busy machine.
func (r *relay) serve(queue <-chan queuedPacket, to *net.UDPAddr) {
	var free time.Time // when the path has sent all before
	for packet := range queue {
		r.mu.Lock()
		bits, changed := r.bits, r.changed
		r.mu.Unlock()
		if free.Before(packet.at) || bits == 0 {
			free = packet.at
		}
		if bits > 0 {
			free = free.Add(time.Duration(float64((len(packet.bytes)+28)*8) / bits * float64(time.Second)))
			select {
			case <-time.After(time.Until(free)): // the time that the path takes
			case <-changed:
			}
		}
		_, _ = r.front.WriteToUDP(packet.bytes, to)
		r.mu.Lock()
		r.queued -= len(packet.bytes)
		r.mu.Unlock()
	}
}

// cut takes the path away, both ways, and brings it back from other addresses.
func (r *relay) cut(away bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dead = away
	for from, client := range r.clients {
		client.Close()
		delete(r.clients, from)
	}
}

// lose makes the path lose so much of the media.
func (r *relay) lose(share float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.loss = share
}

// loses decides about one packet. RTCP, DTLS and STUN pass (RFC 7983, RFC 5761).
func (r *relay) loses(packet []byte) bool {
	if len(packet) < 12 || packet[0]>>6 != 2 || packet[1] >= 192 && packet[1] <= 223 {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	ssrc := binary.BigEndian.Uint32(packet[8:])
	if packet[0]&0x20 == 0 { // what probes a path is padded
		r.sent[ssrc]++
	}
	if r.random.Float64() >= r.loss {
		return false
	}
	r.losses[ssrc]++
	return true
}

// sentOf is how many packets of an SSRC came, lost ones included and padding not.
func (r *relay) sentOf(ssrc uint32) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sent[ssrc]
}

// lostOf is how many packets of an SSRC the path has lost.
func (r *relay) lostOf(ssrc uint32) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.losses[ssrc]
}

// mediaOf is where a media node takes media.
func mediaOf(t *testing.T, c *devcluster.Cluster, node string) string {
	t.Helper()
	n, err := c.Node(t.Context(), node)
	if err != nil {
		t.Fatal(err)
	}
	return n.Addresses[child.AddressMedia]
}

func (r *relay) dropped() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}
