package egress

import (
	"encoding/binary"
	"sync"
	"time"
)

const (
	// blockBytes is what is written to a TCP connection in one call.
	blockBytes = 16 << 10
	// No picture begins while so much waits, or something has waited for so long: what is late is of no use, and the estimate of the path
	// has asked for less by then.
	pictureBytes = 512 << 10
	pictureAge   = 500 * time.Millisecond
	// A picture that has begun, and what is no picture, may fill the backlog up to these.
	startedBytes = 896 << 10
	backlogBytes = 1 << 20
)

// block is packets as they are written, each behind its length.
type block struct {
	since   time.Time // when the first was put in
	packets int
	bytes   []byte
}

// newBlocks keeps blocks that nobody uses.
func newBlocks() *sync.Pool {
	return &sync.Pool{New: func() any { return &block{bytes: make([]byte, 0, blockBytes)} }}
}

// backlog is what waits for one TCP connection. It leaves out whole frames of pictures first. It needs a lock around it.
type backlog struct {
	spare   *sync.Pool
	blocks  []*block // the oldest first
	taken   bool     // the oldest is being written
	waiting int      // bytes
	behind  bool     // pictures are left out until all has been written
	frames  map[uint32]newestFrame
	dropped uint64 // packets
}

// newestFrame is what was decided of a stream's newest frame.
type newestFrame struct {
	frame Frame
	out   bool
}

// put takes a packet in. It reports false for one that had to be kept and has no room.
func (b *backlog) put(frame Frame, packet []byte, now time.Time) bool {
	size := headerBytes + len(packet)
	switch {
	case frame != 0 && b.leavesOut(frame, size, now):
		b.dropped++
		return true
	case b.waiting+size > backlogBytes:
		b.dropped++
		return false
	}
	at := len(b.blocks) - 1
	if at < 0 || at == 0 && b.taken || len(b.blocks[at].bytes)+size > blockBytes {
		fresh := b.spare.Get().(*block) //nolint:forcetypeassert // that is what newBlocks makes
		fresh.since, fresh.packets, fresh.bytes = now, 0, fresh.bytes[:0]
		b.blocks = append(b.blocks, fresh)
		at++
	}
	last := b.blocks[at]
	last.packets++
	last.bytes = append(binary.BigEndian.AppendUint16(last.bytes, uint16(len(packet))), packet...)
	b.waiting += size
	return true
}

// leavesOut decides on a packet of a picture: as on the first of its frame, unless the room ends amid the frame.
func (b *backlog) leavesOut(frame Frame, size int, now time.Time) bool {
	if b.frames == nil {
		b.frames = map[uint32]newestFrame{}
	}
	newest := b.frames[frame.stream()]
	if newest.frame != frame {
		newest = newestFrame{frame: frame, out: b.late(now)}
	}
	newest.out = newest.out || b.waiting+size > startedBytes
	b.frames[frame.stream()] = newest
	return newest.out
}

func (b *backlog) late(now time.Time) bool {
	b.behind = len(b.blocks) > 0 && (b.behind || b.waiting > pictureBytes || now.Sub(b.blocks[0].since) > pictureAge)
	return b.behind
}

// take gives the oldest block, nil while there is none. It stays in the backlog until done.
func (b *backlog) take() *block {
	if len(b.blocks) == 0 {
		return nil
	}
	b.taken = true
	return b.blocks[0]
}

// done says that what was taken has been written.
func (b *backlog) done() {
	written := b.blocks[0]
	n := copy(b.blocks, b.blocks[1:])
	b.blocks[n] = nil
	b.blocks, b.taken = b.blocks[:n], false
	b.waiting -= len(written.bytes)
	b.spare.Put(written)
}
