package sfu

import (
	"encoding/binary"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/pion/dtls/v3"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/bandwidth"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
	"github.com/holdfast-rtc/holdfast/sfu/offer"
	"github.com/holdfast-rtc/holdfast/sfu/transport"
)

var errConnectionClosed = errors.New("the connection is closed")

const (
	// browsers use one or two digits
	maxMidBytes = 16
	maxSources  = 32
)

type connectionConfig struct {
	room         *forward.Room
	batch        transport.Batch // the room's loop's
	shard        int
	owner        string // unique on the node
	peer         forward.PeerID
	gone         func() bool // see forward.RemovePeer
	canPublish   bool
	publishable  uint32 // as in control.Attach
	canSubscribe bool
	compatible   bool // offer all SRTP profiles
	candidates   []netip.AddrPort
	mediaTCP     uint16 // 0: none
	pathStart    uint64 // bits per second of the client's path; 0: unlimited
	onPath       func() // must not block
	onBroken     func() // a packet of the client's panicked; must not block
	// onState hears each change in order, and must not call the connection.
	onState func(*connection, control.TransportState)
	log     *slog.Logger
}

// connection is one RTCPeerConnection.
type connection struct {
	connectionConfig

	conn    *transport.Conn
	path    *bandwidth.Path
	uplink  *uplink
	session uint64

	feedback feedbackReader

	budgets  sync.Mutex // held while a budget is told: none after retire
	replaced bool       // guarded by budgets

	// arranging is held while the room is told of slots, which may wait: each is added before close ends it, and none later.
	// The socket's reader takes mu alone.
	arranging sync.Mutex

	mu        sync.Mutex // guards the fields below; taken after uplink.mu and arranging
	origin    string     // as in offer.Offer
	ufrag     string     // of the client's ICE
	lines     []offer.Section
	version   uint64
	sources   map[string]forward.Source
	sent      map[forward.Source]bool        // SSRCs named by the last offer
	slots     map[string]*slot               // by mid
	bySSRC    map[uint32]*slot               // by media and RTX SSRC; nil: a former slot's
	named     []uint32                       // video SSRCs from before this connection
	unused    map[string]*control.UnusedSlot // by mid, of the last offer
	upAt      time.Time
	forgetful bool // some former slots' SSRCs are not in bySSRC
	up        bool // DTLS is up
	dead      bool // failed or closed: only a new connection helps
	closed    bool
}

func connect(t *transport.Transport, o *offer.Offer, cfg connectionConfig) (*connection, error) {
	c := &connection{
		connectionConfig: cfg, origin: o.Origin, ufrag: o.Ufrag, session: rand.Uint64N(1 << 62),
		sources: map[string]forward.Source{}, sent: map[forward.Source]bool{}, slots: map[string]*slot{}, bySSRC: map[uint32]*slot{},
	}
	c.path = bandwidth.NewPath(cfg.pathStart, c.budget)
	c.uplink = newUplink(c)
	var err error
	c.conn, err = t.Open(transport.Config{
		Handler: c, Owner: cfg.owner, Ufrag: o.Ufrag, Password: o.Password, Fingerprint: transport.Fingerprint(o.Fingerprint), Profiles: srtpProfiles(cfg.compatible), Log: cfg.log,
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// libwebrtc prefers AES128_CM_HMAC_SHA1_80, six times as costly as AES-128-GCM (RFC 7714): it is offered only after a
// failed handshake.
func srtpProfiles(compatible bool) []dtls.SRTPProtectionProfile {
	if compatible {
		return []dtls.SRTPProtectionProfile{dtls.SRTP_AEAD_AES_128_GCM, dtls.SRTP_AEAD_AES_256_GCM, dtls.SRTP_AES128_CM_HMAC_SHA1_80}
	}
	return []dtls.SRTPProtectionProfile{dtls.SRTP_AEAD_AES_128_GCM}
}

func (c *connection) accepts(o *offer.Offer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.dead && !c.closed && c.origin == o.Origin
}

func (c *connection) needsCompatible() bool { return c.compatible || c.conn.HandshakeFailed() }

// alive reports whether the client may still use this connection.
func (c *connection) alive() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.dead && !c.closed
}

// answer runs once at a time. A live connection survives an offer that cannot be answered.
func (c *connection) answer(message *control.Offer, o *offer.Offer) (string, error) {
	restarted, err := c.learn(message, o)
	if err != nil {
		return "", err
	}
	c.uplink.learn(message.GetSenders()) // takes uplink.mu, which comes before mu
	if restarted {
		c.conn.Restart(o.Ufrag, o.Password)
	}
	c.uplink.negotiated(o)
	c.arrange(o)
	credentials := c.conn.Credentials()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
	answer := offer.Answer{
		SessionID: c.session, Version: c.version, Ufrag: credentials.Ufrag, Password: credentials.Password,
		Fingerprint: credentials.Fingerprint, Setup: "active", Candidates: c.candidates, TCPPort: c.mediaTCP, CanPublish: c.canPublish, CanSubscribe: c.canSubscribe,
		Slots: make(map[string]offer.Slot, len(c.slots)),
	}
	for mid, s := range c.slots {
		// The same on every node: a move changes nothing in the page.
		answer.Slots[mid] = offer.Slot{SSRC: s.ssrc, RTXSSRC: s.rtx, Stream: s.stream, Track: "slot-" + mid, CNAME: forward.CNAME}
	}
	return o.Answer(&answer), nil
}

// learn reports whether the offer restarts ICE.
func (c *connection) learn(message *control.Offer, o *offer.Offer) (restarted bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := o.Extends(c.lines); err != nil {
		return false, err
	}
	restarted, c.ufrag, c.lines = c.ufrag != o.Ufrag, o.Ufrag, o.Sections
	c.named = namedVideo(message.GetSenders())
	c.unused = map[string]*control.UnusedSlot{}
	for _, s := range message.GetUnused() {
		c.unused[s.GetMid()] = s
	}
	for _, s := range message.GetSenders() {
		if source, ok := sourceOf(s.GetSource()); ok && len(s.GetMid()) <= maxMidBytes && len(c.sources) < maxSources {
			c.sources[s.GetMid()] = source
			c.sent[source] = c.sent[source] || s.GetSsrc() != 0
		}
	}
	return restarted, nil
}

// giveUp leaves media running; the next offer gets a new connection.
func (c *connection) giveUp() {
	c.mu.Lock()
	c.dead = true
	c.mu.Unlock()
}

func (c *connection) Moved() { c.path.Moved() }

func (c *connection) StateChanged(state transport.State) {
	switch state {
	case transport.Connecting:
	case transport.Connected:
		c.connected()
		c.onState(c, control.TransportState_TRANSPORT_STATE_CONNECTED)
	case transport.Disconnected:
		c.onState(c, control.TransportState_TRANSPORT_STATE_DISCONNECTED)
	case transport.Failed:
		c.giveUp()
		c.onState(c, control.TransportState_TRANSPORT_STATE_FAILED)
	}
}

// connected starts the slots, because earlier keyframes would be lost.
func (c *connection) connected() {
	c.mu.Lock()
	if c.up {
		c.mu.Unlock()
		return
	}
	c.up, c.upAt = true, time.Now()
	named := c.named
	slots := make([]*slot, 0, len(c.slots))
	for _, s := range c.slots {
		slots = append(slots, s)
	}
	c.mu.Unlock()
	if c.canPublish {
		for _, ssrc := range named {
			c.uplink.sendPLI(ssrc)
		}
	}
	for _, s := range slots {
		s.Ready()
	}
}

// budget does not block.
func (c *connection) budget() {
	c.budgets.Lock()
	defer c.budgets.Unlock()
	if c.replaced {
		return
	}
	bitsPerSecond := c.path.Target()
	c.log.Debug("bandwidth estimate", "bits_per_second", bitsPerSecond)
	c.room.SetBudget(c.peer, bitsPerSecond)
	c.onPath()
}

// retire is called when another connection replaces this one.
func (c *connection) retire(by *connection) {
	c.budgets.Lock()
	c.replaced = true
	c.budgets.Unlock()
	by.budget() // this one's may be the last
}

// close must not be called from StateChanged or the room's loop.
func (c *connection) close() {
	c.arranging.Lock()
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	slots := c.takeSlotsBut(nil)
	c.arranging.Unlock()
	c.conn.Close()
	c.uplink.close()
	for _, s := range slots {
		s.Close()
	}
}

// RTCP is part of transport.Handler.
func (c *connection) RTCP(b []byte, arrived time.Time) {
	defer c.blame()
	for range maxRTCPInPackets {
		if len(b) < rtcpHeaderBytes {
			return
		}
		size := rtcpHeaderBytes + 4*int(binary.BigEndian.Uint16(b[2:]))
		if size > len(b) {
			return
		}
		if b[1] == rtcpFeedback && b[0]&0x1F == formatTransport {
			if report, ok := c.feedback.read(b[:size]); ok {
				c.path.Feedback(report)
			}
		} else if packets, err := rtcp.Unmarshal(b[:size]); err == nil {
			for _, packet := range packets {
				c.report(packet, arrived)
			}
		}
		b = b[size:]
	}
}

func (c *connection) report(packet rtcp.Packet, arrived time.Time) {
	switch p := packet.(type) {
	case *rtcp.SenderReport:
		c.uplink.senderReport(p, arrived)
		c.roundTrip(p.Reports, arrived)
	case *rtcp.ReceiverReport:
		c.roundTrip(p.Reports, arrived)
	case *rtcp.TransportLayerNack:
		if s := c.slotOf(p.MediaSSRC); s != nil && s.ssrc == p.MediaSSRC {
			var missing []uint16
			for _, pair := range p.Nacks {
				missing = append(missing, pair.PacketList()...)
			}
			s.NACK(missing)
		}
	case *rtcp.PictureLossIndication:
		c.keyframeRequested(p.MediaSSRC)
	case *rtcp.FullIntraRequest:
		for _, entry := range p.FIR {
			c.keyframeRequested(entry.SSRC)
		}
	}
}

func (c *connection) keyframeRequested(ssrc uint32) {
	if s := c.slotOf(ssrc); s != nil {
		s.KeyframeRequested()
	}
}

// roundTrip uses reports on what we sent (RFC 3550 section 6.4.1).
func (c *connection) roundTrip(reports []rtcp.ReceptionReport, arrived time.Time) {
	for i := range reports {
		r := &reports[i]
		if r.LastSenderReport == 0 || c.slotOf(r.SSRC) == nil {
			continue
		}
		if rtt, ok := c.room.RoundTrip(arrived, r.LastSenderReport, r.Delay); ok {
			c.uplink.roundTrip(rtt)
			c.room.SetRoundTrip(c.peer, rtt)
			return
		}
	}
}

// blame is deferred where an authentic packet is read. The transport recovers, and ends the connection.
func (c *connection) blame() {
	if fault := recover(); fault != nil {
		c.onBroken()
		panic(fault) //nolint:forbidigo // it goes on to the transport
	}
}

// sending returns a source's m-lines, since when the transport is up, and whether the offer named an SSRC: then the
// client had been sending before.
func (c *connection) sending(source forward.Source) (mids []string, upAt time.Time, sent bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for mid, s := range c.sources {
		if s == source {
			mids = append(mids, mid)
		}
	}
	slices.Sort(mids)
	return mids, c.upAt, c.sent[source]
}

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

func (c *connection) RTP(header *rtp.Header, packet []byte, arrived time.Time) {
	defer c.blame()
	u := c.uplink
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return
	}
	defer u.schedule()
	if number := header.GetExtension(u.ssrcs.ids.TransportCC); u.ssrcs.ids.TransportCC != 0 && len(number) >= 2 {
		u.reception.Transport(binary.BigEndian.Uint16(number), header.SSRC, arrived)
	}
	s := u.streams[header.SSRC]
	if s == nil {
		if s = u.place(header); s == nil {
			return
		}
	}
	u.take(s, header, packet, arrived)
}

// Tick is part of transport.Handler.
func (c *connection) Tick(now time.Time) {
	u := c.uplink
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return
	}
	u.tickAt = time.Time{}
	defer u.schedule()
	if u.due = u.reception.Due(now, u.due[:0]); len(u.due) > 0 {
		_ = c.conn.WriteRTCP(u.due) // an error: the transport is down
	}
}

func (c *connection) sourceOf(line *offer.Section) (forward.Source, bool) {
	if !c.canPublish || line == nil {
		return "", false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	source, named := c.sources[line.MID]
	switch {
	case named:
	case line.Audio:
		source = forward.SourceMicrophone
	default:
		source = forward.SourceCamera
	}
	return source, source.Kind() == forwardKind(line) && mayPublish(c.publishable, source)
}

// of the one-byte form (RFC 8285 section 4.2), which forward writes
const maxOneByteID = 14

func transportSequenceID(line *offer.Section) uint8 {
	if id := line.Extensions.TransportCC; id <= maxOneByteID {
		return id
	}
	return 0
}

const (
	rtcpFeedback     = 205 // RFC 4585 section 6.1
	formatTransport  = 15
	rtcpHeaderBytes  = 4
	maxRTCPInPackets = 64 // in one compound
)
