package reception

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/interceptor/pkg/nack"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"
)

const (
	video        = 7 // SSRC
	tickInterval = 10 * time.Millisecond
)

var begin = time.Unix(1_700_000_000, 0)

// ours is a Receiver that is asked what is due every 10 ms, as a media node does.
type ours struct {
	r      *Receiver
	ticked *time.Time
}

func newOurs() ours {
	r := New(1)
	r.Add(video, 90_000, RTX)
	return ours{r, &time.Time{}}
}

func (o ours) received(sequence uint16, now time.Time) { o.r.Received(video, sequence, 0, now) }
func (o ours) repaired(sequence uint16, now time.Time) { o.r.Repaired(video, sequence, now) }
func (o ours) next() time.Time {
	if o.r.Next().IsZero() {
		return time.Time{}
	}
	return o.ticked.Add(tickInterval)
}
func (o ours) until(time.Time) {}
func (o ours) nacks(now time.Time) []uint16 {
	if now.Sub(*o.ticked) < tickInterval {
		return nil
	}
	*o.ticked = now
	return asked(o.r.Due(now, nil))
}

// asked are the numbers that NACKs name.
func asked(packets []rtcp.Packet) (sequences []uint16) {
	for _, packet := range packets {
		if nack, ok := packet.(*rtcp.TransportLayerNack); ok {
			for _, pair := range nack.Nacks {
				sequences = append(sequences, pair.PacketList()...)
			}
		}
	}
	return sequences
}

// pions is Pion's generator as a receiver without knowledge of RTX has it, ten tries at most, in the clock of a synctest bubble.
type pions struct {
	reader interceptor.RTPReader
	mu     sync.Mutex // guards sent
	sent   []uint16
}

func newPions(t *testing.T) *pions {
	factory, err := nack.NewGeneratorInterceptor(nack.GeneratorMaxNacksPerPacket(maxTries))
	if err != nil {
		t.Fatal(err)
	}
	g, err := factory.NewInterceptor("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	p := &pions{}
	g.BindRTCPWriter(interceptor.RTCPWriterFunc(func(packets []rtcp.Packet, _ interceptor.Attributes) (int, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.sent = append(p.sent, asked(packets)...)
		return 0, nil
	}))
	p.reader = g.BindRemoteStream(
		&interceptor.StreamInfo{SSRC: video, RTCPFeedback: []interceptor.RTCPFeedback{{Type: "nack"}}},
		interceptor.RTPReaderFunc(func(b []byte, a interceptor.Attributes) (int, interceptor.Attributes, error) { return len(b), a, nil }),
	)
	return p
}

func (p *pions) received(sequence uint16, _ time.Time) {
	packet, err := (&rtp.Packet{Header: rtp.Header{Version: 2, SSRC: video, SequenceNumber: sequence}}).Marshal()
	if err == nil {
		_, _, _ = p.reader.Read(packet, nil)
	}
}
func (p *pions) repaired(uint16, time.Time) {}
func (p *pions) next() time.Time            { return time.Time{} }
func (p *pions) until(now time.Time) {
	<-time.After(time.Until(now))
	synctest.Wait()
}

func (p *pions) nacks(time.Time) []uint16 {
	p.mu.Lock()
	defer p.mu.Unlock()
	sent := p.sent
	p.sent = nil
	return sent
}

// TestRetransmissions: what a lost packet costs, and whether it comes in time, beside Pion's generator on the same path.
func TestRetransmissions(t *testing.T) {
	const ms = time.Millisecond
	t.Logf("%-34s %23s %10s %9s %18s %23s", "", "resent for each lost", "asked", "recovered", "after p50 / p95", "Pion: resent, recovered")
	for _, c := range []struct {
		name string
		link link
	}{
		{"2 %, 20 ms", link{roundTrip: 20 * ms, loss: 0.02}},
		{"2 %, 100 ms", link{roundTrip: 100 * ms, loss: 0.02}},
		{"2 %, 300 ms", link{roundTrip: 300 * ms, loss: 0.02}},
		{"10 %, 20 ms", link{roundTrip: 20 * ms, loss: 0.1}},
		{"10 %, 100 ms", link{roundTrip: 100 * ms, loss: 0.1}},
		{"10 %, 300 ms", link{roundTrip: 300 * ms, loss: 0.1}},
		{"2 %, 700 ms", link{roundTrip: 700 * ms, loss: 0.02}},
		{"2 % in runs of 8, 100 ms", link{roundTrip: 100 * ms, loss: 0.02, burst: 8}},
		{"10 % in runs of 20, 100 ms", link{roundTrip: 100 * ms, loss: 0.1, burst: 20}},
		{"2 %, 100 ms, 1 % late by <= 30 ms", link{roundTrip: 100 * ms, loss: 0.02, reordered: 0.01, lateness: 30 * ms}},
		{"2 %, 100 ms, all late by <= 30 ms", link{roundTrip: 100 * ms, loss: 0.02, reordered: 1, lateness: 30 * ms}},
		{"2 %, 20 ms, all late by <= 30 ms", link{roundTrip: 20 * ms, loss: 0.02, reordered: 1, lateness: 30 * ms}},
		{"10 %, 300 ms, all late by <= 30 ms", link{roundTrip: 300 * ms, loss: 0.1, reordered: 1, lateness: 30 * ms}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.link.seed = 11
			const seconds = 30
			o := c.link.run(newOurs(), begin, seconds)
			var p outcome
			synctest.Test(t, func(t *testing.T) { p = c.link.run(newPions(t), time.Now(), seconds) })
			t.Logf("%-34s %23.2f %10.2f %8.1f%% %8v / %7v %13.2f, %6.1f%%", c.name, o.resentPerLost(), o.askedPerLost(), 100*o.recoveredShare(),
				o.wait(0.5).Round(ms), o.wait(0.95).Round(ms), p.resentPerLost(), 100*p.recoveredShare())
			if o.resentPerLost() > 1.5 {
				t.Errorf("%.2f retransmissions for each lost packet, want at most 1.5", o.resentPerLost())
			}
			if o.recoveredShare() < 0.98 {
				t.Errorf("%.1f %% of the lost packets came in the end, want 98 %%", 100*o.recoveredShare())
			}
		})
	}
}
