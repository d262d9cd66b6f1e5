package sfu

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/pion/webrtc/v4"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/bandwidth"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

// errConnectionClosed says that a connection was closed while it was spoken to.
var errConnectionClosed = errors.New("the connection is closed")

// transport makes connections; one per node.
type transport struct {
	settings webrtc.SettingEngine
	limits   Limits
}

// connectionConfig is what a connection needs to know of its peer.
type connectionConfig struct {
	room         *forward.Room
	peer         forward.PeerID
	canPublish   bool
	canSubscribe bool
	compatible   bool // the peer's DTLS has failed before: offer all SRTP profiles
	// onState is told of every change of the transport, in order. It must not call the connection.
	onState func(*connection, control.TransportState)
	log     *slog.Logger
}

// connection is one PeerConnection of one peer. Each has a certificate of its
// own (Pion makes one when none is given): a browser that is answered with
// a certificate it knows keeps its old DTLS session and shows nothing, also when
// it comes back to a node that it was connected to before.
type connection struct {
	connectionConfig

	api   *webrtc.API
	pc    *webrtc.PeerConnection
	names *handover
	path  *bandwidth.Path

	goroutines sync.WaitGroup

	budgets  sync.Mutex // held while a budget is told, so that none is told after retire
	replaced bool       // guarded by budgets

	states    sync.Mutex // held while a change of state is told, for their order
	lastState webrtc.PeerConnectionState

	mu      sync.Mutex // guards the fields below
	origin  string     // the client's RTCPeerConnection, as of offerShape
	lines   []section  // of the last offer that was answered
	sources map[string]forward.Source
	sent    map[forward.Source]bool // of what the last offer named SSRCs
	upAt    time.Time
	slots   map[string]*slotTrack // by mid
	named   []uint32              // video SSRCs the client said it had been sending
	up      bool                  // DTLS is up
	dead    bool                  // failed or closed: only a new connection can help
	closed  bool                  // by us
}

func (t *transport) connect(cfg connectionConfig) (*connection, error) {
	c := &connection{
		connectionConfig: cfg, names: newHandover(),
		sources: map[string]forward.Source{}, sent: map[forward.Source]bool{}, slots: map[string]*slotTrack{},
	}
	settings := t.settings
	settings.SetSRTPProtectionProfiles(srtpProfiles(cfg.compatible)...)
	api, err := newAPI(settings, pionLogs{cfg.log}, c.names)
	if err != nil {
		return nil, err
	}
	pc, err := api.NewPeerConnection(webrtc.Configuration{SDPSemantics: webrtc.SDPSemanticsUnifiedPlan})
	if err != nil {
		return nil, fmt.Errorf("make peer connection: %w", err)
	}
	c.api, c.pc = api, pc
	c.path = bandwidth.NewPath(c.budget)
	pc.OnTrack(c.publish)
	pc.OnConnectionStateChange(func(webrtc.PeerConnectionState) { c.stateChanged() })
	return c, nil
}

// begin counts a goroutine in, unless the connection is closed.
func (c *connection) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.goroutines.Add(1)
	return true
}

// accepts reports whether an offer is about this very connection: the same
// RTCPeerConnection at the other end, and this one can still work.
func (c *connection) accepts(shape offerShape) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.dead && !c.closed && c.origin == shape.origin
}

// needsCompatible reports whether the peer's next connection must offer all SRTP profiles: ICE found a way here and DTLS failed,
// or it had failed before.
func (c *connection) needsCompatible() bool {
	return c.compatible || c.pc.SCTP().Transport().State() == webrtc.DTLSTransportStateFailed
}

// alive reports whether the client may still be talking over this connection.
func (c *connection) alive() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.dead && !c.closed
}

// answer negotiates. The connection may be fresh or live; a live one survives an
// offer that cannot be answered. One call at a time.
func (c *connection) answer(ctx context.Context, offer *control.Offer, shape offerShape) (string, error) {
	if err := c.learn(offer, shape); err != nil {
		return "", err
	}
	if err := c.pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: shape.sdp}); err != nil {
		c.rollBack()
		return "", fmt.Errorf("%w: %w", ErrBadOffer, err)
	}
	if err := c.arrange(shape); err != nil {
		c.rollBack()
		return "", err
	}
	answer, err := c.pc.CreateAnswer(nil)
	if err != nil {
		c.rollBack()
		return "", fmt.Errorf("%w: %w", ErrBadOffer, err)
	}
	gathered := webrtc.GatheringCompletePromise(c.pc)
	if err := c.pc.SetLocalDescription(answer); err != nil {
		c.giveUp()
		return "", fmt.Errorf("%w: %w", ErrBadOffer, err)
	}
	select {
	case <-gathered:
	case <-ctx.Done():
		c.giveUp()
		return "", fmt.Errorf("gather candidates: %w", ctx.Err())
	}
	local := c.pc.LocalDescription()
	if local == nil {
		return "", errConnectionClosed
	}
	c.mu.Lock()
	c.lines = shape.sections
	c.mu.Unlock()
	return local.SDP, nil
}

// learn takes over what the offer says beside its SDP.
func (c *connection) learn(offer *control.Offer, shape offerShape) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := shape.extends(c.lines); err != nil {
		return err
	}
	c.names.learn(offer.GetSenders())
	c.names.learnRepairs(shape.sdp)
	c.origin = shape.origin
	c.named = namedVideo(offer.GetSenders())
	for _, s := range offer.GetSenders() {
		if source, ok := sourceOf(s.GetSource()); ok && len(s.GetMid()) <= maxMidBytes && len(c.sources) < maxSections {
			c.sources[s.GetMid()] = source
			c.sent[source] = c.sent[source] || s.GetSsrc() != 0
		}
	}
	return nil
}

// arrange gives every receive m-line a track to send, and stops the m-lines that
// the peer may not send on. Transceivers are found by mid, never by position.
func (c *connection) arrange(shape offerShape) error {
	byMid := map[string]*webrtc.RTPTransceiver{}
	for _, transceiver := range c.pc.GetTransceivers() {
		byMid[transceiver.Mid()] = transceiver
	}
	for _, line := range shape.sections {
		transceiver := byMid[line.mid]
		switch {
		case transceiver == nil:
		case line.publishes && !c.canPublish:
			if err := transceiver.Stop(); err != nil {
				return fmt.Errorf("stop m-line %s: %w", line.mid, err)
			}
		case line.receives && c.canSubscribe:
			if err := c.arrangeSlot(line.mid, transceiver); err != nil {
				return fmt.Errorf("make slot %s: %w", line.mid, err)
			}
		}
	}
	return nil
}

// arrangeSlot puts a sender of ours on a transceiver that the offer made.
// AddTransceiverFromTrack would make another one that the answer leaves out.
func (c *connection) arrangeSlot(mid string, transceiver *webrtc.RTPTransceiver) error {
	c.mu.Lock()
	track, known := c.slots[mid]
	c.mu.Unlock()
	if known {
		if slot, _ := track.bound(); slot != nil {
			return nil
		}
	}
	if receiver := transceiver.Receiver(); receiver != nil && len(forwardCodecs(receiver.GetParameters().Codecs)) == 0 {
		return nil // Nothing could be shown in it: Pion rejects the m-line.
	}
	track = &slotTrack{connection: c, mid: mid, kind: transceiver.Kind()}
	sender, err := c.api.NewRTPSender(track, c.pc.SCTP().Transport())
	if err != nil {
		return err
	}
	if err := transceiver.SetSender(sender, track); err != nil {
		return err
	}
	if !c.begin() {
		return errConnectionClosed
	}
	go func() {
		defer c.goroutines.Done()
		track.readFeedback(sender)
	}()
	c.mu.Lock()
	c.slots[mid] = track
	c.mu.Unlock()
	return nil
}

// slotBound arms a slot that was negotiated after the transport was up.
func (c *connection) slotBound(slot *forward.Slot) {
	c.mu.Lock()
	up := c.up
	c.mu.Unlock()
	if up {
		slot.Ready()
	}
}

// rollBack forgets an offer that could not be answered.
func (c *connection) rollBack() {
	if c.pc.SignalingState() != webrtc.SignalingStateHaveRemoteOffer {
		return
	}
	if err := c.pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeRollback}); err != nil {
		c.giveUp()
	}
}

// giveUp lets media flow as it does but takes no more offers: the next one gets
// a new connection.
func (c *connection) giveUp() {
	c.mu.Lock()
	c.dead = true
	c.mu.Unlock()
}

// stateChanged acts on the transport's present state. Pion calls it on
// a goroutine for each change, so that their order is lost; the present state is read.
func (c *connection) stateChanged() {
	c.states.Lock()
	defer c.states.Unlock()
	state := c.pc.ConnectionState()
	if state == c.lastState {
		return
	}
	c.lastState = state
	switch state {
	case webrtc.PeerConnectionStateConnected:
		c.connected()
		c.onState(c, control.TransportState_TRANSPORT_STATE_CONNECTED)
	case webrtc.PeerConnectionStateDisconnected:
		c.onState(c, control.TransportState_TRANSPORT_STATE_DISCONNECTED)
	case webrtc.PeerConnectionStateFailed, webrtc.PeerConnectionStateClosed:
		c.giveUp()
		c.onState(c, control.TransportState_TRANSPORT_STATE_FAILED)
	case webrtc.PeerConnectionStateNew, webrtc.PeerConnectionStateConnecting, webrtc.PeerConnectionStateUnknown:
	}
}

// connected asks the client for keyframes, before its first packet has come, and
// lets this client's slots begin: one that began earlier would lose its keyframe
// to a transport that was not up (DESIGN.md: 500 against 240 ms at p95).
func (c *connection) connected() {
	c.mu.Lock()
	c.up, c.upAt = true, time.Now()
	named := c.named
	tracks := make([]*slotTrack, 0, len(c.slots))
	for _, track := range c.slots {
		tracks = append(tracks, track)
	}
	c.mu.Unlock()
	if c.canPublish {
		for _, ssrc := range named {
			c.sendPLI(ssrc)
		}
	}
	for _, track := range tracks {
		if slot, _ := track.bound(); slot != nil {
			slot.Ready()
		}
	}
}

// budget tells forward what the client's path carries. It is never called on a loop.
func (c *connection) budget(bitsPerSecond uint64) {
	c.budgets.Lock()
	defer c.budgets.Unlock()
	if c.replaced {
		return
	}
	c.log.Debug("bandwidth estimate", "bits_per_second", bitsPerSecond)
	c.room.SetBudget(c.peer, bitsPerSecond)
}

// retire says that another connection of the peer is served now: its path has
// not been measured yet and is not limited.
func (c *connection) retire() {
	c.budgets.Lock()
	defer c.budgets.Unlock()
	c.replaced = true
	c.room.SetBudget(c.peer, 0)
}

// close ends the connection and returns when its goroutines have ended. It must
// not be called from one of them, nor from the room's loop.
func (c *connection) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	if err := c.pc.GracefulClose(); err != nil {
		c.log.Debug("close peer connection", "error", err)
	}
	c.goroutines.Wait()
}

// sourceOf reads a source of the control protocol.
func sourceOf(source control.Source) (forward.Source, bool) {
	switch source {
	case control.Source_SOURCE_MICROPHONE:
		return forward.SourceMicrophone, true
	case control.Source_SOURCE_CAMERA:
		return forward.SourceCamera, true
	case control.Source_SOURCE_SCREEN:
		return forward.SourceScreen, true
	case control.Source_SOURCE_UNSPECIFIED:
	}
	return "", false
}
