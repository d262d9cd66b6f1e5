package connection

import (
	"encoding/binary"
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
	"github.com/holdfast-rtc/holdfast/sfu/sources"
	"github.com/holdfast-rtc/holdfast/sfu/transport"
)

const (
	// browsers use one or two digits
	maxMidBytes = 16
	maxSources  = 32
)

// Config is what a connection is made for, and with.
type Config struct {
	// Room forwards what the client sends, and what others send to the slots of its offers.
	Room *forward.Room
	// Batch takes the packets of the connection's slots. Only the loop of Room's shard Shard fills it.
	Batch transport.Batch
	Shard int

	Owner Owner
	// Key names the client, uniquely on the node.
	Key  string
	Peer forward.PeerID

	CanPublish   bool
	CanSubscribe bool
	// Publishable is the set of sources that the client may publish, as in control.Attach.
	Publishable uint32

	// Compatible has the older SRTP profiles offered too.
	Compatible bool
	// Candidates are the node's addresses for the answers.
	Candidates []netip.AddrPort
	// MediaTCP is the port of media over TCP, 0 for none.
	MediaTCP uint16
	// PathStart is what the client's path was found to carry, in bits per second; 0: unlimited.
	PathStart uint64
	Log       *slog.Logger
}

// Owner is what a connection tells of itself. Its methods are called from the socket's reader and from transport's clocks: they must
// not block, nor call the connection.
type Owner interface {
	// Gone reports whether the peer has been removed from the room: see forward.Room.RemovePeer. The media loop calls it.
	Gone() bool
	// PathChanged says that Path has a new target.
	PathChanged()
	// Broke says that handling one of the client's packets panicked. The connection ends.
	Broke()
	// StateChanged tells each change of the transport's state, in order.
	StateChanged(c *Connection, state control.TransportState)
}

// Connection is one RTCPeerConnection.
type Connection struct {
	cfg Config

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

func Open(t *transport.Transport, o *offer.Offer, cfg Config) (*Connection, error) {
	c := &Connection{
		cfg: cfg, origin: o.Origin, ufrag: o.Ufrag, session: rand.Uint64N(1 << 62),
		sources: map[string]forward.Source{}, sent: map[forward.Source]bool{}, slots: map[string]*slot{}, bySSRC: map[uint32]*slot{},
	}
	c.path = bandwidth.NewPath(cfg.PathStart, c.budget)
	c.uplink = newUplink(c)
	var err error
	c.conn, err = t.Open(transport.Config{
		Handler: c, Owner: cfg.Key, Ufrag: o.Ufrag, Password: o.Password, Fingerprint: transport.Fingerprint(o.Fingerprint), Profiles: srtpProfiles(cfg.Compatible), Log: cfg.Log,
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

func (c *Connection) Accepts(o *offer.Offer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.dead && !c.closed && c.origin == o.Origin
}

func (c *Connection) NeedsCompatible() bool { return c.cfg.Compatible || c.conn.HandshakeFailed() }

// Alive reports whether the client may still use this connection.
func (c *Connection) Alive() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.dead && !c.closed
}

// Left reports whether the client has closed its end.
func (c *Connection) Left() bool { return c.conn.Left() }

// Path is the estimate of what the client's path carries.
func (c *Connection) Path() *bandwidth.Path { return c.path }

// Silence ends the layers of muted sources, a set as in control.Peer: they begin anew when unmuted, and no lost packets are asked for.
// Reception is still reported, because the path is as it is. It may wait for the room's media.
func (c *Connection) Silence(muted uint32) { closeLayers(c.uplink.mute(muted)) }

// Unplaced lists the streams whose packets belong to no m-line.
func (c *Connection) Unplaced() []*control.Stream { return c.uplink.listUnplaced() }

// Answer runs once at a time. A live connection survives an offer that cannot be answered.
func (c *Connection) Answer(message *control.Offer, o *offer.Offer) (string, error) {
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
		Fingerprint: credentials.Fingerprint, Setup: "active", Candidates: c.cfg.Candidates, TCPPort: c.cfg.MediaTCP, CanPublish: c.cfg.CanPublish, CanSubscribe: c.cfg.CanSubscribe,
		Slots: make(map[string]offer.Slot, len(c.slots)),
	}
	for mid, s := range c.slots {
		// The same on every node: a move changes nothing in the page.
		answer.Slots[mid] = offer.Slot{SSRC: s.ssrc, RTXSSRC: s.rtx, Stream: s.stream, Track: "slot-" + mid, CNAME: forward.CNAME}
	}
	return o.Answer(&answer), nil
}

// learn reports whether the offer restarts ICE.
func (c *Connection) learn(message *control.Offer, o *offer.Offer) (restarted bool, err error) {
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
		if source, ok := sources.Of(s.GetSource()); ok && len(s.GetMid()) <= maxMidBytes && len(c.sources) < maxSources {
			c.sources[s.GetMid()] = source
			c.sent[source] = c.sent[source] || s.GetSsrc() != 0
		}
	}
	return restarted, nil
}

// GiveUp leaves media running; the next offer gets a new connection.
func (c *Connection) GiveUp() {
	c.mu.Lock()
	c.dead = true
	c.mu.Unlock()
}

func (c *Connection) Moved() { c.path.Moved() }

func (c *Connection) StateChanged(state transport.State) {
	switch state {
	case transport.Connecting:
	case transport.Connected:
		c.connected()
		c.cfg.Owner.StateChanged(c, control.TransportState_TRANSPORT_STATE_CONNECTED)
	case transport.Disconnected:
		c.cfg.Owner.StateChanged(c, control.TransportState_TRANSPORT_STATE_DISCONNECTED)
	case transport.Failed:
		c.GiveUp()
		c.cfg.Owner.StateChanged(c, control.TransportState_TRANSPORT_STATE_FAILED)
	}
}

// connected starts the slots, because earlier keyframes would be lost.
func (c *Connection) connected() {
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
	if c.cfg.CanPublish {
		for _, ssrc := range named {
			c.uplink.sendPLI(ssrc)
		}
	}
	for _, s := range slots {
		s.Ready()
	}
}

// budget does not block.
func (c *Connection) budget() {
	c.budgets.Lock()
	defer c.budgets.Unlock()
	if c.replaced {
		return
	}
	bitsPerSecond := c.path.Target()
	c.cfg.Log.Debug("bandwidth estimate", "bits_per_second", bitsPerSecond)
	c.cfg.Room.SetBudget(c.cfg.Peer, bitsPerSecond)
	c.cfg.Owner.PathChanged()
}

// Retire is called when another connection replaces this one.
func (c *Connection) Retire(by *Connection) {
	c.budgets.Lock()
	c.replaced = true
	c.budgets.Unlock()
	by.budget() // this one's may be the last
}

// Close must not be called from StateChanged or the room's loop.
func (c *Connection) Close() {
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
func (c *Connection) RTCP(b []byte, arrived time.Time) {
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

func (c *Connection) report(packet rtcp.Packet, arrived time.Time) {
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

func (c *Connection) keyframeRequested(ssrc uint32) {
	if s := c.slotOf(ssrc); s != nil {
		s.KeyframeRequested()
	}
}

// roundTrip uses reports on what we sent (RFC 3550 section 6.4.1).
func (c *Connection) roundTrip(reports []rtcp.ReceptionReport, arrived time.Time) {
	for i := range reports {
		r := &reports[i]
		if r.LastSenderReport == 0 || c.slotOf(r.SSRC) == nil {
			continue
		}
		if rtt, ok := c.cfg.Room.RoundTrip(arrived, r.LastSenderReport, r.Delay); ok {
			c.uplink.roundTrip(rtt)
			c.cfg.Room.SetRoundTrip(c.cfg.Peer, rtt)
			return
		}
	}
}

// blame is deferred where an authentic packet is read. The transport recovers, and ends the connection.
func (c *Connection) blame() {
	if fault := recover(); fault != nil {
		c.cfg.Owner.Broke()
		panic(fault) //nolint:forbidigo // it goes on to the transport
	}
}

// Sending returns a source's m-lines, since when the transport is up, and whether the offer named an SSRC: then the
// client had been sending before.
func (c *Connection) Sending(source forward.Source) (mids []string, upAt time.Time, sent bool) {
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

// addSlot needs arranging.
func (c *Connection) addSlot(line *offer.Section) {
	s, cfg := c.newSlot(line)
	if s == nil {
		return
	}
	s.Slot = c.cfg.Room.AddSlot(cfg)
	if up := c.keepSlot(line.MID, s); up { // else connected does it
		s.Ready()
	}
}

// newSlot is nil for an m-line that has a slot, and once c is closed.
func (c *Connection) newSlot(line *offer.Section) (*slot, forward.SlotConfig) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.slots[line.MID] != nil {
		return nil, forward.SlotConfig{}
	}
	unused := c.unused[line.MID]
	s := &slot{ssrc: c.newSSRC(unused.GetSsrc(), 0), audio: line.Audio, stream: c.newStream(line.Audio)}
	writer := c.conn.Writer(c.cfg.Batch, !line.Audio)
	cfg := forward.SlotConfig{
		Peer: c.cfg.Peer, Gone: c.cfg.Owner.Gone, Mid: line.MID, Kind: forwardKind(line), Stream: s.stream, Writer: writer, Shard: c.cfg.Shard, SSRC: s.ssrc, WriteRTCP: writer.WriteRTCP,
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

func (c *Connection) keepSlot(mid string, s *slot) (up bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slots[mid], c.bySSRC[s.ssrc] = s, s
	if s.rtx != 0 {
		c.bySSRC[s.rtx] = s
	}
	return c.up
}

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

// newStream pairs the first sound with the first picture, and so on: browsers play a MediaStream in step. It needs mu.
func (c *Connection) newStream(audio bool) string {
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

// retireSSRC remembers an SSRC, or that one was forgotten: a random one is hardly ever the same. It needs mu.
func (c *Connection) retireSSRC(ssrc uint32) {
	if len(c.bySSRC) < maxSSRCs {
		c.bySSRC[ssrc] = nil
		return
	}
	delete(c.bySSRC, ssrc)
	c.forgetful = true
}

func (c *Connection) slotOf(ssrc uint32) *slot {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bySSRC[ssrc]
}

func (c *Connection) RTP(header *rtp.Header, packet []byte, arrived time.Time) {
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
func (c *Connection) Tick(now time.Time) {
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

func (c *Connection) sourceOf(line *offer.Section) (forward.Source, bool) {
	if !c.cfg.CanPublish || line == nil {
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
	return source, source.Kind() == forwardKind(line) && sources.MayPublish(c.cfg.Publishable, source)
}

const (
	rtcpFeedback     = 205 // RFC 4585 section 6.1
	formatTransport  = 15
	rtcpHeaderBytes  = 4
	maxRTCPInPackets = 64 // in one compound
)
