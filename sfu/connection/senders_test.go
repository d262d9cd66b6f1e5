package connection

import (
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/holdfast-rtc/holdfast/control"
)

// counting counts the reports of senders.
type counting struct {
	nobody

	reports int
}

func (c *counting) SendersChanged() { c.reports++ }

// TestSendersAreReportedToWhoAsks: a client's SSRC and the one of its retransmissions, as they come.
func TestSendersAreReportedToWhoAsks(t *testing.T) {
	for _, asks := range []bool{false, true} {
		o := read(t, publishing)
		c := open(t, o)
		owner := &counting{}
		c.cfg.Owner = owner
		if _, err := c.Answer(&control.Offer{Id: "1", Sdp: publishing, ReportSenders: asks}, o); err != nil {
			t.Fatal(err)
		}
		for _, sent := range []rtp.Header{{Version: 2, SSRC: 1, PayloadType: 96}, {Version: 2, SSRC: 1, SequenceNumber: 1, PayloadType: 96}, {Version: 2, SSRC: 2, PayloadType: 97}} {
			packet, err := (&rtp.Packet{Header: sent, Payload: make([]byte, 40)}).Marshal()
			if err != nil {
				t.Fatal(err)
			}
			c.RTP(&sent, packet, time.Now())
		}
		if want := map[bool]int{true: 2}[asks]; owner.reports != want {
			t.Errorf("asked %t: %d reports, want %d", asks, owner.reports, want)
		}
		var sums control.Sender
		for _, s := range c.Senders() {
			if s.GetMid() != "0" {
				t.Errorf("sends on %q", s.GetMid())
			}
			sums.Ssrc += s.GetSsrc()
			sums.RtxSsrc += s.GetRtxSsrc()
		}
		if len(c.Senders()) != 2 || sums.Ssrc != 1 || sums.RtxSsrc != 2 {
			t.Errorf("sends %v", c.Senders())
		}
	}
}
