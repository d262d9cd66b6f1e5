package egress

import (
	"encoding/binary"
	"sync"
	"time"
)

const (
	blockBytes = 16 << 10
	// No picture begins while so much waits, or something for so long: late pictures are useless.
	pictureBytes = 512 << 10
	pictureAge   = 500 * time.Millisecond
	// A begun picture, and other packets, may fill so much.
	startedBytes = 896 << 10
	backlogBytes = 1 << 20
)

// block is packets, each behind its length.
type block struct {
	since   time.Time
	packets int
	bytes   []byte
}

func newBlocks() *sync.Pool {
	return &sync.Pool{New: func() any { return &block{bytes: make([]byte, 0, blockBytes)} }}
}

// backlog needs a lock around it.
type backlog struct {
	spare   *sync.Pool
	blocks  []*block // oldest first
	taken   bool
	waiting int  // bytes
	behind  bool // no pictures until all is written
	frames  map[uint32]newestFrame
	dropped uint64
}

type newestFrame struct {
	frame Frame
	out   bool
}

// put is false for a packet that must be kept and has no room.
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

// leavesOut decides on the frame's first packet, unless room ends amid it.
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

// take leaves the block in the backlog until done; nil: none.
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
