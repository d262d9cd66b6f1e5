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
	trunk  *Trunk
	ssrc   uint32
	layer  *forward.Layer
	writer *transport.Writer
	// header belongs to the room's loop.
	header rtp.Header
}

// Packet is part of forward.Tap.
func (o *outlet) Packet(packet []byte, number uint32) {
	n, err := o.header.Unmarshal(packet)
	if err != nil {
		return // the layer has read it already
	}
	o.header.SSRC, o.header.SequenceNumber = o.ssrc, uint16(number)
	// A packet that is not written is as one that is lost: it is asked for again.
	_, _ = o.writer.WriteRTP(&o.header, packet[n:])
}

// Report is part of forward.Tap.
func (o *outlet) Report(ntp uint64, rtp uint32) {
	// The next one comes in a second.
	_ = o.writer.WriteRTCP([]rtcp.Packet{&rtcp.SenderReport{SSRC: o.ssrc, NTPTime: ntp, RTPTime: rtp}})
}

// Repeat is part of forward.Tap.
func (o *outlet) Repeat(number uint16) { _, _ = o.writer.Repeat(number) }
