package sfu

import (
	"math/rand/v2"
	"strconv"

	"github.com/holdfast-rtc/holdfast/sfu/forward"
	"github.com/holdfast-rtc/holdfast/sfu/offer"
)

// Packets kept for slots without RTX: 0.6 s of sound.
const repeatedSound, repeatedPicture = 32, 256

// maxSSRCs bounds what a connection remembers of slots and former ones: 32 times what the slots of one offer take.
const maxSSRCs = 4096

type slot struct {
	*forward.Slot

	ssrc, rtx uint32
	audio     bool
	stream    string
}

func (c *connection) arrange(o *offer.Offer) {
	c.arranging.Lock()
	defer c.arranging.Unlock()
	receives := map[string]bool{}
	for i := range o.Sections {
		if line := &o.Sections[i]; line.Receives && c.canSubscribe && len(line.Codecs) > 0 {
			receives[line.MID] = true
			c.addSlot(line)
		}
	}
	for _, s := range c.takeSlotsBut(receives) {
		s.Close()
	}
}

// addSlot needs arranging.
func (c *connection) addSlot(line *offer.Section) {
	s, cfg := c.newSlot(line)
	if s == nil {
		return
	}
	s.Slot = c.room.AddSlot(cfg)
	if up := c.keepSlot(line.MID, s); up { // else connected does it
		s.Ready()
	}
}

// newSlot is nil for an m-line that has a slot, and once c is closed.
func (c *connection) newSlot(line *offer.Section) (*slot, forward.SlotConfig) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.slots[line.MID] != nil {
		return nil, forward.SlotConfig{}
	}
	unused := c.unused[line.MID]
	s := &slot{ssrc: c.newSSRC(unused.GetSsrc(), 0), audio: line.Audio, stream: c.newStream(line.Audio)}
	writer := c.conn.Writer(c.batch, !line.Audio)
	cfg := forward.SlotConfig{
		Peer: c.peer, Gone: c.gone, Mid: line.MID, Kind: forwardKind(line), Stream: s.stream, Writer: writer, Shard: c.shard, SSRC: s.ssrc, WriteRTCP: writer.WriteRTCP,
		Path: c.path, TransportSequenceID: transportSequenceID(line), Passed: passedExtensions(line), DescriptorID: line.Extensions.DependencyDescriptor,
	}
	for _, codec := range line.Codecs {
		cfg.Codecs = append(cfg.Codecs, forwardCodec(codec))
		if codec.NACK() && codec.RTXPayloadType == 0 {
			cfg.Repeat = writer.Repeat
		}
		if codec.RTXPayloadType != 0 && s.rtx == 0 {
			s.rtx = c.newSSRC(unused.GetRtxSsrc(), s.ssrc)
		}
	}
	cfg.RTXSSRC = s.rtx
	switch {
	case cfg.Repeat == nil:
	case line.Audio:
		writer.Keep(s.ssrc, repeatedSound)
	default:
		writer.Keep(s.ssrc, repeatedPicture)
	}
	return s, cfg
}

func (c *connection) keepSlot(mid string, s *slot) (up bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slots[mid], c.bySSRC[s.ssrc] = s, s
	if s.rtx != 0 {
		c.bySSRC[s.rtx] = s
	}
	return c.up
}

func (c *connection) takeSlotsBut(stay map[string]bool) []*slot {
	c.mu.Lock()
	defer c.mu.Unlock()
	var taken []*slot
	for mid, s := range c.slots {
		if !stay[mid] {
			taken = append(taken, s)
			delete(c.slots, mid)
			c.retireSSRC(s.ssrc)
			c.retireSSRC(s.rtx)
		}
	}
	return taken
}

// newStream pairs the first sound with the first picture, and so on: browsers play a MediaStream in step. It needs mu.
func (c *connection) newStream(audio bool) string {
	taken := map[string]bool{}
	for _, s := range c.slots {
		taken[s.stream] = taken[s.stream] || s.audio == audio
	}
	for i := 0; ; i++ {
		if name := "slots-" + strconv.Itoa(i); !taken[name] {
			return name
		}
	}
}

// newSSRC is the one that the client knows, else random (RFC 3550 section 8): never given here, and not the slot's other one. A slot's
// numbers begin anew: with the SSRC of a former one it would seal two packets with one nonce. It needs mu.
func (c *connection) newSSRC(known, other uint32) uint32 {
	if c.forgetful {
		known = 0
	}
	for ssrc := known; ; ssrc = rand.Uint32() {
		if _, given := c.bySSRC[ssrc]; ssrc != 0 && ssrc != other && !given {
			return ssrc
		}
	}
}

// retireSSRC remembers an SSRC, or that one was forgotten: a random one is hardly ever the same. It needs mu.
func (c *connection) retireSSRC(ssrc uint32) {
	if len(c.bySSRC) < maxSSRCs {
		c.bySSRC[ssrc] = nil
		return
	}
	delete(c.bySSRC, ssrc)
	c.forgetful = true
}

func (c *connection) slotOf(ssrc uint32) *slot {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bySSRC[ssrc]
}
