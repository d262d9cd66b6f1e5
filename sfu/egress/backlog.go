package egress

import (
	"encoding/binary"
	"sync"
	"time"
)

const (
	blockBytes = 16 << 10
	// No picture begins while so many bytes wait, or while a packet has waited for so long, because late pictures are
	// useless.
	pictureBytes = 512 << 10
	pictureAge   = 500 * time.Millisecond
	// startedBytes is how much a picture that has begun, and packets of no picture, may fill.
	startedBytes = 896 << 10
	backlogBytes = 1 << 20
)

// block is a list of packets, each after its length.
type block struct {
	since   time.Time
	packets int
	bytes   []byte
}

func newBlocks() *sync.Pool {
	return &sync.Pool{New: func() any { return &block{bytes: make([]byte, 0, blockBytes)} }}
}

// backlog has no lock of its own.
type backlog struct {
	spare *sync.Pool
	// blocks has the oldest first.
	blocks []*block
	taken  bool
	// waiting is in bytes.
	waiting int
	// behind says that no picture begins until all is written.
	behind  bool
	frames  map[uint32]newestFrame
	dropped uint64
}

type newestFrame struct {
	frame Frame
	out   bool
}

// put returns false for a packet that must be kept and for which there is no room.
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

// leavesOut decides on the first packet of a frame for all of them, unless the room ends amid the frame.
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

// take returns the oldest block, which stays in the backlog until done; nil if there is none.
func (b *backlog) take() *block {
	if len(b.blocks) == 0 {
		return nil
	}
	b.taken = true
	return b.blocks[0]
}

func (b *backlog) done() {
	written := b.blocks[0]
	n := copy(b.blocks, b.blocks[1:])
	b.blocks[n] = nil
	b.blocks, b.taken = b.blocks[:n], false
	b.waiting -= len(written.bytes)
	b.spare.Put(written)
}
