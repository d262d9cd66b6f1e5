package hosts

import (
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Beyond these a frame is dropped. 32 MB at 200 ms are 1.3 Gbit/s.
const (
	maxHeldFrames = 16384
	maxHeldBytes  = 32 << 20
)

// 64 KB unsegmented, with headers
const maxFrameBytes = 66 << 10

type relay struct {
	from  io.Reader // one frame each Read
	to    io.Writer
	delay time.Duration
	held  chan frame
	bytes atomic.Int64

	passed, dropped atomic.Uint64
}

type frame struct {
	due     time.Time
	content []byte
}

func newRelay(from io.Reader, to io.Writer, delay time.Duration) *relay {
	return &relay{from: from, to: to, delay: delay, held: make(chan frame, maxHeldFrames)}
}

// After from ends or hurry is closed, held frames are sent at once. Close hurry when from ends.
func (r *relay) run(hurry <-chan struct{}) {
	var sending sync.WaitGroup
	sending.Go(func() { r.send(hurry) })
	r.read()
	close(r.held)
	sending.Wait()
}

func (r *relay) read() {
	buffer := make([]byte, maxFrameBytes)
	for {
		count, err := r.from.Read(buffer)
		if errors.Is(err, os.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) {
			return
		}
		if err != nil || count == 0 { // an interface that went down says so once
			r.dropped.Add(1)
			continue
		}
		if r.bytes.Load()+int64(count) > maxHeldBytes {
			r.dropped.Add(1)
			continue
		}
		f := frame{due: time.Now().Add(r.delay), content: append([]byte(nil), buffer[:count]...)}
		select {
		case r.held <- f:
			r.bytes.Add(int64(count))
		default:
			r.dropped.Add(1)
		}
	}
}

func (r *relay) send(hurry <-chan struct{}) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for f := range r.held {
		timer.Reset(time.Until(f.due))
		select {
		case <-timer.C:
		case <-hurry:
		}
		r.bytes.Add(-int64(len(f.content)))
		if _, err := r.to.Write(f.content); err != nil {
			r.dropped.Add(1)
			continue
		}
		r.passed.Add(1)
	}
}
