package sfu

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"github.com/pion/dtls/v3"

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

func forwardKind(line *offer.Section) forward.Kind {
	if line.Audio {
		return forward.KindAudio
	}
	return forward.KindVideo
}

func passedExtensions(line *offer.Section) forward.PassedExtensions {
	ids := &line.Extensions
	return forward.PassedExtensions{ids.AbsCaptureTime, ids.PlayoutDelay, ids.VideoOrientation}
}

func forwardCodec(codec offer.Codec) forward.Codec {
	return forward.Codec{
		MimeType: codec.MimeType, Fmtp: codec.Fmtp, ClockRate: codec.ClockRate,
		PayloadType: codec.PayloadType, RTXPayloadType: codec.RTXPayloadType,
	}
}

func sourceOf(source control.Source) (forward.Source, bool) {
	switch source {
	case control.Source_SOURCE_MICROPHONE:
		return forward.SourceMicrophone, true
	case control.Source_SOURCE_CAMERA:
		return forward.SourceCamera, true
	case control.Source_SOURCE_SCREEN:
		return forward.SourceScreen, true
	case control.Source_SOURCE_SCREEN_AUDIO:
		return forward.SourceScreenAudio, true
	case control.Source_SOURCE_UNSPECIFIED:
	}
	return "", false
}
