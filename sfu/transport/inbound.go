package transport

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"
	"github.com/pion/srtp/v3"

	"github.com/holdfast-rtc/holdfast/sfu/egress"
)

const (
	// maxStreams is above the 14 of a client with three layers each of camera and screen, a microphone, and their
	// RTX.
	maxStreams   = 64
	floodStreams = 256
	// replayPackets is how far a packet may be overtaken.
	replayPackets = 128
	// earlyPackets are kept until the keys are known, because clients do not soon repeat their first keyframe.
	earlyPackets = 64
)

type earlyPacket struct {
	bytes   []byte
	from    egress.Address
	arrived time.Time
}

type inbound struct {
	mu sync.Mutex // guards the fields below
	// context is nil before the keys are known.
	context *srtp.Context
	header  rtp.Header
	control rtcp.Header
	// streams are the authenticated SSRCs.
	streams map[uint32]*incoming
	// continued has the highest numbers that another node opened of the SSRCs that have not been heard here.
	continued map[uint32]uint64
	reports   map[uint32]bool
	waiting   bool
	early     []earlyPacket
}

// incoming is one SSRC of the other end.
type incoming struct {
	// heard is false for the SSRCs beyond limits.streams.
	heard   bool
	numbers index
}

func (i *inbound) wait(waiting bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.waiting, i.early = waiting, nil
}

func (c *Conn) open(keys srtp.Config) error {
	i := &c.in
	window := c.limits().replay
	context, err := srtp.CreateContext(keys.Keys.RemoteMasterKey, keys.Keys.RemoteMasterSalt, keys.Profile,
		srtp.SRTPReplayProtection(window), srtp.SRTCPReplayProtection(window))
	if err != nil {
		return fmt.Errorf("open incoming SRTP: %w", err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.context, i.streams, i.reports = context, map[uint32]*incoming{}, map[uint32]bool{}
	for _, p := range i.early {
		c.decrypt(p.bytes, p.from, p.arrived)
	}
	i.waiting, i.early = false, nil
	return nil
}

// media decrypts in place.
func (c *Conn) media(b []byte, from egress.Address, now time.Time) {
	in := &c.in
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case len(b) < 12 || c.broken.Load():
	case in.context != nil:
		c.decrypt(b, from, now)
	case in.waiting && len(in.early) < earlyPackets:
		in.early = append(in.early, earlyPacket{bytes: bytes.Clone(b), from: from, arrived: now})
	}
}

// decrypt needs in.mu.
func (c *Conn) decrypt(b []byte, from egress.Address, now time.Time) {
	in := &c.in
	// RFC 5761 section 4 tells RTCP by these types.
	if b[1] >= 192 && b[1] <= 223 {
		if ssrc := binary.BigEndian.Uint32(b[4:]); in.reports[ssrc] || len(in.reports) < c.limits().streams {
			if packet, err := in.context.DecryptRTCP(b, b, &in.control); err == nil {
				c.heardFrom(from, now)
				in.reports[binary.BigEndian.Uint32(packet[4:])] = true
				c.cfg.Handler.RTCP(packet, now)
			}
		}
		return
	}
	ssrc := binary.BigEndian.Uint32(b[8:])
	stream := in.streams[ssrc]
	if stream != nil && !stream.heard || stream == nil && !in.continues(ssrc, binary.BigEndian.Uint16(b[2:])) {
		return
	}
	packet, err := in.context.DecryptRTP(b, b, &in.header)
	if err != nil {
		return
	}
	c.heardFrom(from, now)
	if stream == nil {
		limits := c.limits()
		stream = in.add(ssrc, len(in.streams) < limits.streams)
		if len(in.streams) > limits.flood {
			c.flooded(limits.flood)
			return
		}
	}
	stream.numbers.extend(in.header.SequenceNumber)
	if stream.heard {
		c.cfg.Handler.RTP(&in.header, packet, now)
	}
}

func (c *Conn) flooded(most int) {
	if c.keyed == nil {
		c.cfg.Log.Warn("client sends from too many SSRCs: connection ended", "ssrcs", most)
	} else {
		c.cfg.Log.Warn("media node sends from too many SSRCs: connection ended", "node", c.cfg.Owner, "ssrcs", most)
	}
	c.fail()
}

func (c *Conn) fail() {
	c.mu.Lock()
	c.failed = true
	c.mu.Unlock()
	c.broken.Store(true)
}
