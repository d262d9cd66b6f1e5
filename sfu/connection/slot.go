package connection

import (
	"math/rand/v2"
	"strconv"

	"github.com/holdfast-rtc/holdfast/sfu/forward"
	"github.com/holdfast-rtc/holdfast/sfu/offer"
)

// A slot without RTX repeats lost packets as they were. So many packets are kept for that; of sound they last 0.6 s.
const repeatedSound, repeatedPicture = 32, 256

// maxSSRCs bounds how many SSRCs of slots and of former slots a connection remembers: 32 times what the slots of one offer take.
const maxSSRCs = 4096

// slot is an m-line that the client receives on.
type slot struct {
	*forward.Slot

	// rtx is the SSRC of the retransmissions, 0 for none.
	ssrc, rtx uint32
	audio     bool
	stream    string
	// known says that the client knows the m-line. Pion drops what comes sooner. mu guards it.
	known bool
}

// arrange adds the slots that the offer has more, and ends those that it has no longer.
func (c *Connection) arrange(o *offer.Offer) {
	c.arranging.Lock()
	defer c.arranging.Unlock()
	receives := map[string]bool{}
	for i := range o.Sections {
		if line := &o.Sections[i]; line.Receives && c.cfg.CanSubscribe && len(line.Codecs) > 0 {
			receives[line.MID] = true
			c.addSlot(line)
		}
	}
	for _, s := range c.takeSlotsBut(receives) {
		s.Close()
	}
}

// addSlot adds the slot of an m-line, unless there is one. It needs arranging.
func (c *Connection) addSlot(line *offer.Section) {
	s, cfg := c.newSlot(line)
	if s == nil {
		return
	}
	s.Slot = c.cfg.Room.AddSlot(cfg)
	// Otherwise connected or Show starts the slot later.
	if c.keepSlot(line.MID, s) {
		s.Ready()
	}
}

// newSlot prepares the slot of an m-line. It returns nil for an m-line that has one, and once the connection is closed.
func (c *Connection) newSlot(line *offer.Section) (*slot, forward.SlotConfig) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.slots[line.MID] != nil {
		return nil, forward.SlotConfig{}
	}
	unused := c.unused[line.MID]
	s := &slot{audio: line.Audio, known: !c.offered.GetSlotsWait()}
	known, where := c.continued.slot(line.MID)
	if known != nil {
		s.ssrc, s.stream = known.GetSsrc(), known.GetStream()
	} else {
		s.ssrc, s.stream = c.newSSRC(unused.GetSsrc(), 0), c.newStream(line.Audio)
	}
	writer := c.conn.Writer(c.cfg.Batch, !line.Audio)
	cfg := forward.SlotConfig{
		Peer: c.cfg.Peer, Gone: c.cfg.Owner.Gone, Mid: line.MID, Kind: forwardKind(line), Stream: s.stream, Writer: writer, Shard: c.cfg.Shard, SSRC: s.ssrc, WriteRTCP: writer.WriteRTCP,
		Path: c.path, TransportSequenceID: transportSequenceID(line), Passed: passedExtensions(line), DescriptorID: line.Extensions.DependencyDescriptor,
		Continue: where,
	}
	for _, codec := range line.Codecs {
		cfg.Codecs = append(cfg.Codecs, forwardCodec(codec))
		if codec.NACK() && codec.RTXPayloadType == 0 {
			cfg.Repeat = writer.Repeat
		}
		if known.GetRtxSsrc() != 0 {
			s.rtx = known.GetRtxSsrc()
		} else if codec.RTXPayloadType != 0 && s.rtx == 0 {
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

// keepSlot remembers a slot, and reports whether it may begin.
func (c *Connection) keepSlot(mid string, s *slot) (begins bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slots[mid], c.bySSRC[s.ssrc] = s, s
	if s.rtx != 0 {
		c.bySSRC[s.rtx] = s
	}
	return c.up && s.known
}

// Show says that the client knows the m-lines of slots, if it did not before.
func (c *Connection) Show(mids []string) {
	c.mu.Lock()
	var begin []*slot
	for _, mid := range mids {
		if s := c.slots[mid]; s != nil && !s.known {
			s.known = true
			begin = append(begin, s)
		}
	}
	if !c.up {
		begin = nil // connected starts them
	}
	c.mu.Unlock()
	for _, s := range begin {
		s.Ready()
	}
}

// takeSlotsBut forgets all slots but those of the given mids. The caller closes them without mu, because closing may wait.
func (c *Connection) takeSlotsBut(stay map[string]bool) []*slot {
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

// newStream names the MediaStream of a new slot. The first slot of sound and the first of pictures share one, and so on, because
// browsers play a MediaStream in step, unless the client wants them apart. It needs mu.
func (c *Connection) newStream(audio bool) string {
	taken := map[string]bool{}
	for _, s := range c.slots {
		taken[s.stream] = taken[s.stream] || s.audio == audio || c.apart
	}
	for i := 0; ; i++ {
		if name := "slots-" + strconv.Itoa(i); !taken[name] {
			return name
		}
	}
}

// newSSRC returns the SSRC that the client knows from its former node, or a random one (RFC 3550 section 8) if that was given here
// before. other is the slot's other SSRC. The numbers of a slot begin anew, so that with the SSRC of a former slot two packets would be
// sealed with one nonce. It needs mu.
func (c *Connection) newSSRC(known, other uint32) uint32 {
	if c.forgetful {
		known = 0
	}
	for ssrc := known; ; ssrc = rand.Uint32() {
		if _, given := c.bySSRC[ssrc]; ssrc != 0 && ssrc != other && !given {
			return ssrc
		}
	}
}

// retireSSRC remembers that an SSRC was given. Beyond maxSSRCs it forgets it, and from then on the client gets random ones only,
// which are hardly ever the same. It needs mu.
func (c *Connection) retireSSRC(ssrc uint32) {
	if len(c.bySSRC) < maxSSRCs {
		c.bySSRC[ssrc] = nil
		return
	}
	delete(c.bySSRC, ssrc)
	c.forgetful = true
}

// slotOf returns nil for an SSRC that no slot has.
func (c *Connection) slotOf(ssrc uint32) *slot {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bySSRC[ssrc]
}
