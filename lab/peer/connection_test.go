package peer

import (
	"encoding/binary"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pion/dtls/v3"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/lab/portrait"
	"github.com/holdfast-rtc/holdfast/sfu/egress"
	"github.com/holdfast-rtc/holdfast/sfu/offer"
	"github.com/holdfast-rtc/holdfast/sfu/transport"
)

// node is a media node's transport with one connection.
type node struct {
	*transport.Writer

	place *place
	conn  *transport.Conn
	codec portrait.Codec

	mu      sync.Mutex // guards the fields below
	packets map[uint32][]uint16
	repairs []uint16 // the numbers of the packets that came again
	level   []byte   // of the last sound
	reports int
}

func (n *node) RTP(header *rtp.Header, packet []byte, _ time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if header.PayloadType == videoTypes(n.codec).repair {
		n.repairs = append(n.repairs, binary.BigEndian.Uint16(packet[header.MarshalSize():]))
		return
	}
	if header.PayloadType == opusType {
		n.level = slices.Clone(header.GetExtension(levelID))
	}
	n.packets[header.SSRC] = append(n.packets[header.SSRC], header.SequenceNumber)
}

func (n *node) RTCP([]byte, time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.reports++
}

func (n *node) Tick(time.Time)               {}
func (n *node) StateChanged(transport.State) {}
func (n *node) Moved()                       {}

// place is where a media node listens.
type place struct {
	*transport.Transport

	media *egress.Conn
	at    netip.AddrPort
}

func listen(t *testing.T) *place {
	t.Helper()
	listening, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	media := egress.New(egress.Options{}, listening)
	transports := transport.New(media, panics.New(), slog.New(slog.DiscardHandler))
	ended := make(chan error, 1)
	go func() { ended <- transports.Run(t.Context()) }()
	t.Cleanup(func() { _ = listening.Close(); <-ended })
	return &place{transports, media, listening.LocalAddr().(*net.UDPAddr).AddrPort()}
}

// node makes the other end of a connection of the place.
func (p *place) node(codec portrait.Codec) *node {
	return &node{place: p, codec: codec, packets: map[uint32][]uint16{}}
}

// has gives the node its connection.
func (n *node) has(t *testing.T, conn *transport.Conn) {
	t.Helper()
	t.Cleanup(conn.Close)
	n.conn, n.Writer = conn, conn.Writer(n.place.media.NewBatch(), true)
}

// dial answers a peer's offer with slots of the SSRCs 100 and 200, the latter repaired by 201.
func dial(t *testing.T, opts Options, c *connection, heard func(arrival)) *node {
	t.Helper()
	up := make(chan Step, 2)
	n := listen(t).dial(t, opts, c, heard, func(s Step, _ int) { up <- s })
	for range 2 { // ICE and DTLS, in any order: the callbacks are of two goroutines.
		<-up
	}
	return n
}

// dial names standbys in the answer.
func (p *place) dial(t *testing.T, opts Options, c *connection, heard func(arrival), reached func(Step, int), standby ...netip.AddrPort) *node {
	t.Helper()
	o, err := offer.Read(c.offer(opts).SDP, offer.Limits{SlotsPerPeer: 2, SDPBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	readsLayers(t, o, c)
	n := p.node(opts.Stack.codec)
	conn, err := p.Open(transport.Config{
		Handler: n, Owner: "peer", Ufrag: o.Ufrag, Password: o.Password, Fingerprint: transport.Fingerprint(o.Fingerprint),
		Profiles: []dtls.SRTPProtectionProfile{dtls.SRTP_AEAD_AES_128_GCM}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	n.has(t, conn)
	known := conn.Credentials()
	answer := o.Answer(&offer.Answer{
		Ufrag: known.Ufrag, Password: known.Password, Fingerprint: known.Fingerprint, Setup: "active", Candidates: []netip.AddrPort{p.at}, Standby: standby,
		CanPublish: true, CanSubscribe: true, Slots: map[string]offer.Slot{"2": {SSRC: 100}, "3": {SSRC: 200, RTXSSRC: 201}},
	})
	if err := c.answer(t.Context(), answer, heard, reached); err != nil {
		t.Fatal(err)
	}
	return n
}

// readsLayers wants the media node to find in the offer what is sent and received.
func readsLayers(t *testing.T, o *offer.Offer, c *connection) {
	t.Helper()
	if len(o.Sections) != 4 {
		t.Fatalf("%d m-lines, want 4", len(o.Sections))
	}
	for i, s := range o.Sections {
		if s.Publishes != (i < 2) || s.Receives != (i >= 2) || s.Rejected || len(s.Codecs) == 0 {
			t.Errorf("m-line %d is read as %+v", i, s)
		}
	}
	rids, repairs := o.Sections[1].RIDs, o.Sections[1].Repairs
	if c.stack.simulcast() && !slices.Equal(rids, []string{"q", "h", "f"}) || !c.stack.simulcast() && repairs[c.camera[0].rtxSSRC] != c.camera[0].ssrc {
		t.Errorf("the layers %q, and %v", rids, repairs)
	}
}

// until waits for what n has counted.
func (n *node) until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	testkit.Eventually(t, what, func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return holds()
	})
}

// TestMediaBothWays: a connection to a media node's own transport carries media, reports and what is sent again.
func TestMediaBothWays(t *testing.T) {
	for _, video := range []Video{VideoLight, VideoSimulcast} {
		for _, codec := range []portrait.Codec{portrait.VP8, portrait.VP9} {
			t.Run(string(video)+" "+string(codec), func(t *testing.T) {
				t.Parallel()
				bothWays(t, video, codec)
			})
		}
	}
}

// connectionOf makes one that ends with the test.
func connectionOf(t *testing.T, stack *Stack) (Options, *connection) {
	t.Helper()
	opts := Options{Stack: stack, AudioSlots: 1, VideoSlots: 1, Seed: 1}
	send, err := newSender(opts)
	if err != nil {
		t.Fatal(err)
	}
	c, err := newConnection("1", send, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return opts, c
}

func bothWays(t *testing.T, video Video, codec portrait.Codec) {
	stack, err := NewStackOf(video, codec)
	if err != nil {
		t.Fatal(err)
	}
	opts, c := connectionOf(t, stack)
	heard := make(chan arrival, 16)
	n := dial(t, opts, c, func(a arrival) { heard <- a })
	if c.coming() || c.stuck() {
		t.Error("it is up, and counts as coming or stuck")
	}
	for _, s := range c.sends() {
		n.until(t, "what is sent arrives", func() bool { // The node's side of DTLS may end later.
			return s.write(0, true, 0, []byte("frame")) && len(n.packets[s.ssrc]) > 0
		})
	}
	for _, level := range []uint8{levelSilent, levelSpeaking, levelSilent} {
		n.until(t, "the audio level arrives", func() bool {
			return c.microphone.write(0, false, level, silence(nil, 1, audioFrameBytes)) && len(n.level) == 1 && n.level[0] == level
		})
	}
	n.until(t, "the reports arrive", func() bool { return n.reports > 0 })
	camera := c.camera[0]
	last := camera.number - 1
	if err := n.WriteRTCP([]rtcp.Packet{
		&rtcp.TransportLayerNack{MediaSSRC: camera.ssrc, Nacks: rtcp.NackPairsFromSequenceNumbers([]uint16{last, last - 200})},
		&rtcp.PictureLossIndication{MediaSSRC: camera.ssrc},
	}); err != nil {
		t.Fatal(err)
	}
	n.until(t, "what was asked for comes again", func() bool { return len(n.repairs) == 1 && n.repairs[0] == last })
	n.until(t, "a keyframe is asked for", camera.wantKeyframe.Load)

	for _, number := range []uint16{1, 3} {
		if _, err := n.WriteRTP(&rtp.Header{Version: 2, SSRC: 200, PayloadType: videoTypes(codec).media, SequenceNumber: number}, []byte("frame")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := n.WriteRTP(&rtp.Header{Version: 2, SSRC: 201, PayloadType: videoTypes(codec).repair, SequenceNumber: 9}, []byte("\x00\x02frame")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []arrival{{number: 1}, {number: 3}, {number: 2, retransmitted: true}} {
		got := <-heard
		if got.mid != "3" || got.number != want.number || got.retransmitted != want.retransmitted || !got.media {
			t.Errorf("%+v arrived, want number %d, sent again %t", got, want.number, want.retransmitted)
		}
	}
}
