package connection

import (
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/holdfast-rtc/holdfast/control"
)

// TestOffersBesideNewStreams: a client negotiates anew while packets come that have no stream yet. Neither waits for the other for ever.
func TestOffersBesideNewStreams(t *testing.T) {
	o := read(t, publishing)
	c := open(t, o)
	message := &control.Offer{Id: "1", Sdp: publishing, Senders: []*control.Sender{{Mid: "0", Source: control.Source_SOURCE_CAMERA, Ssrc: 1}}}
	if _, err := c.Answer(message, o); err != nil {
		t.Fatal(err)
	}
	header := rtp.Header{Version: 2, SSRC: 1, PayloadType: 5} // of no codec, so each packet looks for its stream
	packet, err := (&rtp.Packet{Header: header, Payload: make([]byte, 40)}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	const rounds = 5000
	ended := make(chan struct{}, 2)
	// It panics beside the test, whose cleanups could not end what is locked.
	const limit = time.Minute
	stuck := time.AfterFunc(limit, func() { panic("an offer and a packet wait for each other") })
	go func() {
		for range rounds {
			c.RTP(&header, packet, time.Now())
			stuck.Reset(limit)
		}
		ended <- struct{}{}
	}()
	go func() {
		for range rounds {
			if _, err := c.Answer(message, o); err != nil {
				t.Error(err)
				break
			}
			stuck.Reset(limit)
		}
		ended <- struct{}{}
	}()
	for range 2 {
		<-ended
	}
	stuck.Stop()
}
