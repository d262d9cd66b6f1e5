package connection

import (
	"cmp"
	"encoding/binary"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/dtls/v3"
	"github.com/pion/rtp"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/traces"
	"github.com/holdfast-rtc/holdfast/sfu/bandwidth"
	"github.com/holdfast-rtc/holdfast/sfu/data"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
	"github.com/holdfast-rtc/holdfast/sfu/offer"
	"github.com/holdfast-rtc/holdfast/sfu/sources"
	"github.com/holdfast-rtc/holdfast/sfu/transport"
)

const (
	// Browsers number their m-lines with one or two digits.
	maxMidBytes = 16
	// maxSources is how many m-lines a client may name the source of.
	maxSources = 32
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

	// Uplink says that the client receives on another connection, whose path counts.
	Uplink bool
	// Fresh says that the client's RTCPeerConnection is new.
	Fresh bool
	// Unmet says that the client's ICE and DTLS are not known before Meet.
	Unmet bool

	// Compatible has the older SRTP profiles offered too.
	Compatible bool
	// Candidates are the node's addresses for the answers.
	Candidates []netip.AddrPort
	// MediaTCP is the port of media over TCP, 0 for none.
	MediaTCP uint16
	// Standby are the addresses of the node that stands by, if there is one.
	Standby []netip.AddrPort
	// Epoch is that of the room's pin; nil: no node stands by for others.
	Epoch func() uint64
	// PathStart is what the client's path was found to carry, in bits per second; 0: unlimited.
	PathStart uint64
	Log       *slog.Logger
	// Tally counts the feedback; nil: it is not counted. Connected, which may be nil, is told how long the connection took.
	Tally     *Tally
	Connected func(took time.Duration)
	// Data serves the client's data channels until the connection ends; nil: there are none.
	Data func(conn net.Conn)
	// Trace is told when the connection was made and when its first packet came. It may be zero.
	Trace traces.Span
}

// Owner is what a connection tells of itself. Its methods are called from the socket's reader and from transport's clocks: they must
// not block, nor call the connection.
type Owner interface {
	// Gone reports whether the peer has been removed from the room: see forward.Room.RemovePeer. The media loop calls it.
	Gone() bool
	// PathChanged says that Path has a new target.
	PathChanged()
	// SendersChanged says that Senders has a new SSRC. It is called only if the client's last offer asks for the report.
	SendersChanged()
	// RestsChanged says that Resting has changed.
	RestsChanged()
	// Broke says that handling one of the client's packets panicked. The connection ends.
	Broke()
	// PreparedChanged says that IsPrepared has changed.
	PreparedChanged()
	// Unreached says that the client does not reach the node that stands by, so that it needs an answer that names that node.
	Unreached()
	// StateChanged tells each change of the transport's state, in order.
	StateChanged(c *Connection, state control.TransportState)
}

// Connection is one RTCPeerConnection. It is safe for concurrent use, but answers one offer at a time.
type Connection struct {
	cfg Config

	conn   *transport.Conn
	path   *bandwidth.Path
	uplink *uplink
	// priority is that of this node's address, if it went on with another node's connection.
	priority uint32
	// prepared says that the node that stands by can go on with the connection.
	prepared atomic.Bool
	// others counts the nodes that stood by after the one that the answer names.
	others atomic.Uint32
	// first is the priority of the first address in the last answer. It changes under mu.
	first   atomic.Uint32
	session uint64
	// dataBytes is the size of the longest message on a data channel; 0: the connection has none, which is decided by its first offer.
	dataBytes int

	feedback feedbackReader
	// began is when Open was called.
	began time.Time

	// granted is what the client may publish.
	granted atomic.Pointer[granted]

	// reported is what the client's last report says of the way to it.
	reported atomic.Pointer[Reported]

	// budgets is held while the room is told what the path carries, so that a replaced connection tells nothing after Retire.
	budgets  sync.Mutex
	replaced bool // guarded by budgets

	// arranging is held while the room is told of slots, which may wait for the room. It makes sure that every slot is added before
	// Close ends it, and none is added later. The socket's reader never takes it.
	arranging sync.Mutex

	// mu guards the fields below. It is taken after uplink.mu and after arranging.
	mu sync.Mutex
	// unmet says that Meet has yet to be called.
	unmet bool
	// origin identifies the client's RTCPeerConnection: see offer.Offer.
	origin string
	// ufrag is that of the client's ICE. An offer with another one restarts ICE.
	ufrag string
	// offered is the last offer.
	offered *control.Offer
	// continued is nil for a connection that began here.
	continued *continuation
	// lines are the m-lines of the last offer, which the next one must extend.
	lines   []offer.Section
	version uint64
	// sources says by mid what the client publishes.
	sources map[string]forward.Source
	// sent has the sources that the client had been sending before, since it named an SSRC of theirs.
	sent map[forward.Source]bool
	// slots are found by mid.
	slots map[string]*slot
	// bySSRC finds a slot by its SSRC and by that of its retransmissions. The SSRC of a former slot has a nil one.
	bySSRC map[uint32]*slot
	// forgetful says that bySSRC lacks the SSRCs of some former slots.
	forgetful bool
	// named are the SSRCs of the client's pictures that it had been sending to its former node.
	named []uint32
	// unused are the slots by mid that the client's former node sent nothing to.
	unused map[string]*control.UnusedSlot
	// apart says that no two slots share a MediaStream.
	apart bool
	// up says that DTLS was established, at upAt.
	up   bool
	upAt time.Time
	// dead says that the connection failed or was given up, so that the client needs a new one.
	dead   bool
	closed bool
}

// Open makes a connection for the client of an offer, which Answer answers. The transport reads its packets from now on.
func Open(t *transport.Transport, o *offer.Offer, cfg Config) (*Connection, error) {
	c := newConnection(o, cfg)
	if o.HasData() && cfg.Data != nil {
		c.dataBytes = data.MaxMessageBytes
	} else {
		cfg.Data = nil
	}
	var err error
	c.conn, err = t.Open(transport.Config{
		Handler: c, Owner: cfg.Key, Ufrag: o.Ufrag, Password: o.Password, Fingerprint: transport.Fingerprint(o.Fingerprint), Fresh: cfg.Fresh, Unmet: cfg.Unmet, Profiles: srtpProfiles(cfg.Compatible), Data: cfg.Data, Log: cfg.Log, Trace: cfg.Trace,
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

func newConnection(o *offer.Offer, cfg Config) *Connection {
	cfg.Tally = cmp.Or(cfg.Tally, &Tally{})
	c := &Connection{
		cfg: cfg, began: time.Now(), origin: o.Origin, ufrag: o.Ufrag, session: rand.Uint64N(1 << 62),
		unmet: cfg.Unmet, replaced: cfg.Uplink,
		sources: map[string]forward.Source{}, sent: map[forward.Source]bool{}, slots: map[string]*slot{}, bySSRC: map[uint32]*slot{},
	}
	c.Permit(cfg.CanPublish, cfg.Publishable)
	c.path = bandwidth.NewPath(cfg.PathStart, c.budget)
	c.uplink = newUplink(c)
	return c
}

// srtpProfiles offers AES128_CM_HMAC_SHA1_80 only after a failed handshake. libwebrtc prefers it, and it costs six times as much as
// AES-128-GCM (RFC 7714).
func srtpProfiles(compatible bool) []dtls.SRTPProtectionProfile {
	if compatible {
		return []dtls.SRTPProtectionProfile{dtls.SRTP_AEAD_AES_128_GCM, dtls.SRTP_AEAD_AES_256_GCM, dtls.SRTP_AES128_CM_HMAC_SHA1_80}
	}
	return []dtls.SRTPProtectionProfile{dtls.SRTP_AEAD_AES_128_GCM}
}

// Accepts reports whether the offer is of the client's same RTCPeerConnection, and the connection can still be used.
func (c *Connection) Accepts(o *offer.Offer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.dead && !c.closed && c.origin == o.Origin
}

// Meet takes the client of a connection that was opened with Unmet from its first offer, and reports whether that was still to be done.
func (c *Connection) Meet(o *offer.Offer) bool {
	c.mu.Lock()
	met := c.unmet && !c.dead && !c.closed
	if met {
		c.unmet, c.origin, c.ufrag = false, o.Origin, o.Ufrag
	}
	c.mu.Unlock()
	if met {
		c.conn.Meet(o.Ufrag, o.Password, transport.Fingerprint(o.Fingerprint))
	}
	return met
}

// NeedsCompatible reports whether the client's next connection must offer the older SRTP profiles too, because a handshake failed.
func (c *Connection) NeedsCompatible() bool { return c.cfg.Compatible || c.conn.HandshakeFailed() }

// Alive reports whether the client may still use the connection. Before it is connected, it may.
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

// granted is what a client may publish: nothing, or the set of sources, as in control.Attach.
type granted struct {
	publish bool
	sources uint32
}

// Permit changes what the client may publish, from its next offer on. What it publishes already goes on: Silence ends it.
func (c *Connection) Permit(publish bool, sources uint32) {
	c.granted.Store(&granted{publish: publish, sources: sources})
}

// Transport returns "udp" or "tcp", or nothing before media can be sent.
func (c *Connection) Transport() string { return c.conn.Network() }

// Unplaced lists the streams whose packets belong to no m-line.
func (c *Connection) Unplaced() []*control.Stream { return c.uplink.listUnplaced() }

// Answer answers an offer, one at a time. An offer that cannot be answered leaves the connection as it was. It may wait for the room's
// media, because slots are added and removed.
func (c *Connection) Answer(message *control.Offer, o *offer.Offer) (string, error) {
	restarted, err := c.learn(message, o)
	if err != nil {
		return "", err
	}
	// This takes uplink.mu, so mu must be free.
	c.uplink.learn(message)
	if restarted {
		c.conn.Restart(o.Ufrag, o.Password)
	}
	c.uplink.negotiated(o)
	c.arrange(o)
	credentials := c.conn.Credentials()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
	if c.cfg.Epoch != nil && !message.GetFresh() && (c.version == 1 || restarted) {
		c.first.Store(liftedPriority(c.cfg.Epoch()))
		c.others.Store(0)
	}
	answer := offer.Answer{
		SessionID: c.session, Version: c.version, Ufrag: credentials.Ufrag, Password: credentials.Password,
		Fingerprint: credentials.Fingerprint, Setup: "active", Candidates: c.cfg.Candidates, Standby: c.cfg.Standby, First: c.first.Load(), TCPPort: c.cfg.MediaTCP, CanPublish: c.granted.Load().publish, CanSubscribe: c.cfg.CanSubscribe,
		DataBytes: c.dataBytes, Slots: make(map[string]offer.Slot, len(c.slots)),
	}
	for mid, s := range c.slots {
		// Stream and track have the same names on every node, so that a move changes nothing in the page.
		answer.Slots[mid] = offer.Slot{SSRC: s.ssrc, RTXSSRC: s.rtx, Stream: s.stream, Track: "slot-" + mid, CNAME: forward.CNAME}
	}
	return o.Answer(&answer), nil
}

// learn takes over what the offer says, unless the offer breaks the order of m-lines. It reports whether the offer restarts ICE.
func (c *Connection) learn(message *control.Offer, o *offer.Offer) (restarted bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := o.Extends(c.lines); err != nil {
		return false, err
	}
	restarted, c.ufrag, c.lines, c.offered = c.ufrag != o.Ufrag, o.Ufrag, o.Sections, message
	c.named, c.apart = namedVideo(message.GetSenders()), message.GetApart()
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

// GiveUp leaves the media running, but has the client's next offer answered by a new connection.
func (c *Connection) GiveUp() {
	c.mu.Lock()
	c.dead = true
	c.mu.Unlock()
}

// Moved is part of transport.Handler. The client has another address, and so another path.
func (c *Connection) Moved() { c.path.Moved() }

// StateChanged is part of transport.Handler.
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
		c.cfg.Tally.Failed.Add(1)
		c.cfg.Owner.StateChanged(c, control.TransportState_TRANSPORT_STATE_FAILED)
	}
}

// connected begins what had to wait for the transport: it asks for keyframes of the pictures that the client named, and starts the
// slots, whose first keyframes would have been lost.
func (c *Connection) connected() {
	c.mu.Lock()
	if c.up {
		c.mu.Unlock()
		return
	}
	c.up, c.upAt = true, time.Now()
	if c.cfg.Connected != nil {
		c.cfg.Connected(c.upAt.Sub(c.began))
	}
	named := c.named
	slots := make([]*slot, 0, len(c.slots))
	for _, s := range c.slots {
		if s.known {
			slots = append(slots, s)
		}
	}
	c.mu.Unlock()
	if c.granted.Load().publish {
		for _, ssrc := range named {
			c.uplink.sendPLI(ssrc)
		}
	}
	for _, s := range slots {
		s.Ready()
	}
}

// streamBegan ends the trace of a connection with the first packet of a stream. It is called under uplink.mu.
func (c *Connection) streamBegan(source forward.Source) {
	c.mu.Lock()
	since := c.upAt
	c.mu.Unlock()
	if since.IsZero() {
		// The packet came before the state did.
		since = time.Now()
	}
	c.cfg.Trace.Since("first packet", since).Set("source", string(source)).End(nil)
}

// budget tells the room what the path carries. It does not block.
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

// Retire makes another connection the one whose path counts.
func (c *Connection) Retire(by *Connection) {
	c.budgets.Lock()
	c.replaced = true
	c.budgets.Unlock()
	// The last budget that the room was told may be of this connection.
	by.budget()
}

// Close ends the transport, the slots and the layers. It may wait for the room's media and for the transport's callbacks, so neither
// StateChanged nor a room's loop may call it.
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

// Senders are the SSRCs that the client sends now.
func (c *Connection) Senders() []*control.Sender { return c.uplink.sending() }

// Resting are the layers that nobody shows, or nil if the client's last offer does not say that it stops them.
func (c *Connection) Resting() *control.Rests { return c.uplink.resting() }

// Sending returns the mids of a source's m-lines, since when the transport has been up, and whether the client had been sending the
// source before this connection, as an SSRC in its offer shows.
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

// RTP is part of transport.Handler: it takes one packet of the client's, on the socket's reader.
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

// Tick is part of transport.Handler: it sends the RTCP that is due.
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
		// An error means that the transport is down, and the client will hear nothing anyway.
		_ = c.conn.WriteRTCP(u.due)
		c.cfg.Tally.sent(u.due, u.reception.TakeLosses())
	}
}

// sourceOf returns what the client publishes on an m-line: what the client said, else its microphone or camera. It is false if the
// client may not publish that.
func (c *Connection) sourceOf(line *offer.Section) (forward.Source, bool) {
	may := c.granted.Load()
	if !may.publish || line == nil {
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
	return source, source.Kind() == forwardKind(line) && sources.MayPublish(may.sources, source)
}

const (
	// RFC 4585 section 6.1, and draft-holmer-rmcat-transport-wide-cc-extensions-01 section 3.1.
	rtcpFeedback    = 205
	formatTransport = 15
	rtcpHeaderBytes = 4
	// maxRTCPInPackets bounds what is read of one compound packet.
	maxRTCPInPackets = 64
)
