package cascade

import (
	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/holdfast-rtc/holdfast/sfu/forward"
	"github.com/holdfast-rtc/holdfast/sfu/transport"
)

// So many packets can be sent again: some 200 ms of a large picture and a second of sound. Powers of two.
const (
	picturesKept = 128
	soundsKept   = 64
)

// outlet is a layer of this side on the trunk, and the forward.Tap by which its packets go there.
type outlet struct {
	link   *Link
	ssrc   uint32
	layer  *forward.Layer
	writer *transport.Writer
	// header belongs to the room's loop.
	header rtp.Header
	// crosses belongs to the link's Run.
	crosses bool
	// lost is what the other side reported last; guarded by Trunk.mu.
	lost uint32
}

// Packet is part of forward.Tap.
func (o *outlet) Packet(packet []byte, number uint32) {
	n, err := o.header.Unmarshal(packet)
	if err != nil {
		return // the layer has read it already
	}
	o.header.SSRC, o.header.SequenceNumber = o.ssrc, uint16(number)
	o.link.figures.sent.packets.Add(1)
	// A packet that is not written is as one that is lost: it is asked for again.
	_, _ = o.writer.WriteRTP(&o.header, packet[n:])
}

// Report is part of forward.Tap.
func (o *outlet) Report(ntp uint64, rtp uint32) {
	// The next one comes in a second.
	_ = o.writer.WriteRTCP([]rtcp.Packet{&rtcp.SenderReport{SSRC: o.ssrc, NTPTime: ntp, RTPTime: rtp}})
}

// reported needs Trunk.mu. What is repeated in time is not lost, so the count may fall.
func (o *outlet) reported(lost uint32) {
	o.link.figures.sent.lost.Add(uint64(lost) - uint64(o.lost))
	o.lost = lost
}

// Repeat is part of forward.Tap.
func (o *outlet) Repeat(number uint16) { _, _ = o.writer.Repeat(number) }
