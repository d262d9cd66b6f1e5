package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"sync"
)

// tap keeps what a node forwards, in the clear of the transport: the node's own view of the media.
type tap struct {
	mu       sync.Mutex
	payloads [2][][]byte // video, audio
}

const (
	tapped = 160 // packets of each kind
	// sealedHeader is what a sealed frame has ahead of its ciphertext at most: web/static/page/sealed-frame.js.
	coverOfKeyframe, coverOfDelta, coverOfSound = 10, 3, 2
	sealedHeaderLeast                           = 1 + 8 + 1
	tapWindow                                   = 16 // bytes of each packet that are looked at
)

func (c *tap) hear(audio bool, payload []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kind := &c.payloads[index(audio)]
	if len(*kind) < tapped {
		*kind = append(*kind, bytes.Clone(payload))
	}
}

func index(audio bool) int {
	if audio {
		return 1
	}
	return 0
}

func (c *tap) enough() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, kind := range c.payloads {
		if len(kind) < tapped {
			return fmt.Errorf("%d packets of kind %d", len(kind), i)
		}
	}
	return nil
}

// noise fails where a packet that begins a frame differs from cover, header and noise. Noise has nearly 8 bits a byte over
// the first bytes of the ciphertext of many frames, where a codec's own headers repeat themselves.
func (c *tap) noise(audio bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var sample []byte
	for _, payload := range c.payloads[index(audio)] {
		frame, cover := payload, coverOfSound
		if !audio {
			var begins bool
			if frame, begins = vp8Frame(payload); !begins {
				continue
			}
			cover = coverOfDelta
			if len(frame) > 0 && frame[0]&1 == 0 {
				cover = coverOfKeyframe
			}
		}
		if len(frame) < cover+1 {
			return errors.New("a frame is too short")
		}
		header := frame[cover:]
		counter := int(header[0] & 0x0F)
		begins := cover + sealedHeaderLeast - 1 + counter
		switch {
		case audio && !bytes.Equal(frame[:cover], []byte{0xFF, 0}):
			return fmt.Errorf("sound begins with %x", frame[:cover])
		case !audio && (frame[0]|1 != 0xF1 || frame[1] != 0xFF || frame[2] != 0xFF):
			return fmt.Errorf("a picture begins with %x", frame[:3])
		case header[0]>>4 != 1 || counter < 1 || counter > 8 || len(frame) < begins+tapWindow:
			return fmt.Errorf("the header begins with %x", header[0])
		}
		sample = append(sample, frame[begins:begins+tapWindow]...)
	}
	if bits := entropy(sample); bits < idealEntropy(len(sample)) {
		return fmt.Errorf("%.3f bits of entropy a byte in %d bytes", bits, len(sample))
	}
	return nil
}

// vp8Frame is what follows the payload descriptor (RFC 7741 section 4.2), and whether a frame begins there.
func vp8Frame(b []byte) ([]byte, bool) {
	at := 1
	if len(b) > 1 && b[0]&0x80 != 0 {
		bits := b[1]
		at = 2
		if bits&0x80 != 0 && len(b) > at {
			at += 1 + int(b[at]>>7)
		}
		if bits&0x40 != 0 {
			at++
		}
		if bits&0x30 != 0 {
			at++
		}
	}
	if len(b) < at {
		return nil, false
	}
	return b[at:], b[0]&0x10 != 0 && b[0]&7 == 0
}

func entropy(b []byte) float64 {
	var count [256]float64
	for _, v := range b {
		count[v]++
	}
	bits := 0.0
	for _, n := range count {
		if n > 0 {
			bits -= n / float64(len(b)) * math.Log2(n/float64(len(b)))
		}
	}
	return bits
}

// idealEntropy is what n bytes of noise have at least: a sample falls short of 8 bits by 255/(2 n ln 2), give or take little.
func idealEntropy(n int) float64 { return 8 - 2*255/(2*float64(n)*math.Ln2) }
