package egress

import (
	"net/netip"
	"sync"
)

// gather keeps what is written until an End.
type gather struct {
	// sending is held while a batch is taken and sent, so that a later batch
	// cannot overtake it. It is taken before mu, and writers never wait for it
	// unless the batch is full.
	sending sync.Mutex
	sender  *batchSender
	spare   *batch // guarded by sending

	mu    sync.Mutex // guards the fields below
	open  int        // Begins without their End
	batch *batch
}

func newGather(sender *batchSender) *gather {
	return &gather{sender: sender, spare: newBatch(), batch: newBatch()}
}

func (g *gather) begin() {
	g.mu.Lock()
	g.open++
	g.mu.Unlock()
}

func (g *gather) end() { g.flush(1) }

// write keeps a copy of the packet. It returns false when nobody gathers.
func (g *gather) write(b []byte, to netip.AddrPort) bool {
	for {
		g.mu.Lock()
		if g.open == 0 {
			g.mu.Unlock()
			return false
		}
		added := g.batch.add(b, to)
		g.mu.Unlock()
		if added {
			return true
		}
		if len(b) > batchBytes {
			return false
		}
		g.flush(0) // full: what is there goes now
	}
}

// flush sends all there is, whoever wrote it, and closes that many gathers.
func (g *gather) flush(closed int) {
	g.sending.Lock()
	defer g.sending.Unlock()
	g.mu.Lock()
	full := g.batch
	g.batch, g.spare = g.spare, full
	g.open -= closed
	g.mu.Unlock()
	if len(full.packets) > 0 {
		g.sender.send(full)
		full.reset()
	}
}

// The bounds of one batch: the packets of a burst of five for 200 viewers, and
// what they come to at most. A full batch is sent by whoever finds it full.
const (
	batchPackets = 1024
	batchBytes   = batchPackets * 1280
)

// batch is a number of packets, ordered by destination.
type batch struct {
	arena   []byte // the packets' bytes; never grows, so slices of it stay valid
	packets []queued
	flows   []flow
	byTo    map[netip.AddrPort]int // index into flows
}

// flow is the packets for one destination, in the order of writing.
type flow struct {
	to          netip.AddrPort
	first, last int // index into packets
}

type queued struct {
	start, end int // in the arena
	next       int // the flow's next packet, 0 for none: packet 0 is always a first
}

func newBatch() *batch {
	return &batch{
		arena:   make([]byte, 0, batchBytes),
		packets: make([]queued, 0, batchPackets),
		flows:   make([]flow, 0, batchPackets),
		byTo:    make(map[netip.AddrPort]int),
	}
}

// add copies a packet in; false when the batch is full.
func (b *batch) add(payload []byte, to netip.AddrPort) bool {
	if len(b.packets) == batchPackets || len(b.arena)+len(payload) > batchBytes {
		return false
	}
	start := len(b.arena)
	b.arena = append(b.arena, payload...)
	at := len(b.packets)
	b.packets = append(b.packets, queued{start: start, end: len(b.arena)})
	if i, ok := b.byTo[to]; ok {
		b.packets[b.flows[i].last].next = at
		b.flows[i].last = at
		return true
	}
	b.byTo[to] = len(b.flows)
	b.flows = append(b.flows, flow{to: to, first: at, last: at})
	return true
}

func (b *batch) payload(i int) []byte { return b.arena[b.packets[i].start:b.packets[i].end] }

func (b *batch) reset() {
	b.arena, b.packets, b.flows = b.arena[:0], b.packets[:0], b.flows[:0]
	clear(b.byTo)
}
