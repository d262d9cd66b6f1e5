package connection

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
	"github.com/holdfast-rtc/holdfast/sfu/forward/renumber"
	"github.com/holdfast-rtc/holdfast/sfu/offer"
	"github.com/holdfast-rtc/holdfast/sfu/sources"
	"github.com/holdfast-rtc/holdfast/sfu/transport"
)

// jumpTransport is more than what is sent of transport-wide numbers in a second: feedback on the former node's packets is
// not taken for feedback on ours.
const jumpTransport = 4096

// answeredPriority is that of a standby that an answer names (package offer). Each further standby has a higher one, because browsers keep no pair
// beside one of the same priority.
const answeredPriority = 126<<24 | 65535<<8 | 255

// liftedPriority is that of the first address in an answer to a client that may use the address of a former node, which stood by: browsers drop
// a pair that has a lower priority than the one in use, also where that one leads to a dead node. It grows with each move of the room, beyond the
// nodes that stand by meanwhile, and begins again after 2^18 moves. The highest priority of all is kept free for the page's own candidate.
func liftedPriority(epoch uint64) uint32 {
	const step = 64
	return answeredPriority + step*uint32(epoch%(1<<18)) + step - 1
}

// Standby returns what another node needs to go on with the connection, without numbers. It is nil before the first
// answer and once the connection is closed.
func (c *Connection) Standby() *control.StandbyConnection {
	secrets := c.conn.Secrets()
	told := &control.StandbyConnection{
		Ufrag: secrets.Ours.Ufrag, Password: secrets.Ours.Password, ClientUfrag: secrets.Theirs.Ufrag, ClientPassword: secrets.Theirs.Password,
		Fingerprint: secrets.Ours.Fingerprint, Keys: secrets.Keys.Bytes(), Reversed: c.conn.Reversed(), Session: c.session,
	}
	if secrets.At.IsValid() {
		told.Client = secrets.At.String()
	}
	senders := c.uplink.senders()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.offered == nil || c.dead || c.closed {
		return nil
	}
	told.Version = c.version
	told.Priority = cmp.Or(c.first.Load(), answeredPriority)
	if others := c.others.Load(); others > 0 || len(c.cfg.Standby) == 0 {
		told.Priority = max(c.priority, told.GetPriority()) + 1 + others
	}
	told.Offer = &control.Offer{Sdp: c.offered.GetSdp(), Senders: senders, Apart: c.offered.GetApart(), Rests: c.offered.GetRests()}
	for mid, source := range c.sources {
		told.Offer.Senders = append(told.Offer.Senders, &control.Sender{Mid: mid, Source: sources.Proto(source)})
	}
	for _, s := range told.Offer.Senders {
		if source, ok := c.sources[s.GetMid()]; ok {
			s.Source = sources.Proto(source)
		}
	}
	for mid, s := range c.slots {
		told.Slots = append(told.Slots, &control.StandbySlot{Mid: mid, Ssrc: s.ssrc, RtxSsrc: s.rtx, Stream: s.stream})
	}
	for ssrc, s := range c.bySSRC {
		if s == nil {
			told.Former = append(told.Former, ssrc)
		}
	}
	return told
}

// Numbers returns the highest numbers that the connection has used. It may wait for the room's media.
func (c *Connection) Numbers() *control.StandbyNumbers {
	// The slots come first: what is sent between the two only leaves a gap.
	positions := c.cfg.Room.Positions(c.cfg.Peer)
	used := c.conn.Numbers()
	return c.numbers(used, positions)
}

func (c *Connection) numbers(used transport.Numbers, positions map[string]forward.Position) *control.StandbyNumbers {
	told := &control.StandbyNumbers{Sealed: used.Sealed, Opened: used.Opened, Control: used.Control, Transport: uint32(c.path.Numbered())}
	for mid, p := range positions {
		source := control.Source(0)
		if p.Peer != "" {
			source = sources.Proto(p.Source)
		}
		kind := control.Kind_KIND_VIDEO
		if p.Kind == forward.KindAudio {
			kind = control.Kind_KIND_AUDIO
		}
		told.Streams = append(told.Streams, &control.StandbyStream{
			Slot:  &control.Slot{Mid: mid, Kind: kind, Peer: string(p.Peer), Source: source},
			Begun: p.Begun, Timestamp: p.Timestamp, PictureId: uint32(p.PictureID), Tl0: uint32(p.TL0), Frame: uint32(p.Frame),
			Layer: p.Layer, TimestampAdd: p.Adds.Timestamp, PictureAdd: uint32(p.Adds.PictureID), Tl0Add: uint32(p.Adds.TL0), FrameAdd: uint32(p.Adds.Frame),
		})
	}
	return told
}

// Bound lets the connection use numbers up to a jump beyond those that the standby has acknowledged, or is about to be
// told: see transport.Conn.Bound.
func (c *Connection) Bound(told *control.StandbyNumbers, acknowledged bool) {
	c.conn.Bound(numbersOf(told), acknowledged)
}

// Unbound is for a standby whose process has ended.
func (c *Connection) Unbound() { c.conn.Unbound() }

// Reverse has the node choose the client's address from now on.
func (c *Connection) Reverse() { c.conn.Reverse() }

// Prepared says whether the node that stands by can go on with the connection.
func (c *Connection) Prepared(can bool) {
	if c.prepared.Swap(can) != can {
		c.cfg.Owner.PreparedChanged()
	}
}

// Unreached is called when the client has not reached the node that stands by.
func (c *Connection) Unreached() { c.cfg.Owner.Unreached() }

// StandBy sets the addresses that the next answer names: those of the node that stands by now.
func (c *Connection) StandBy(at []netip.AddrPort) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cfg.Standby = at
}

// Another is called when another node is to stand by than the one that the answer named, or than the last one.
func (c *Connection) Another() { c.others.Add(1) }

// IsPrepared reports whether a node stands by that can go on with the connection.
func (c *Connection) IsPrepared() bool { return c.prepared.Load() }

// HandOver ends what the connection sends, for good, and returns the final numbers. It is nil if the connection had
// ended before.
func (c *Connection) HandOver() *control.StandbyNumbers {
	used, ok := c.conn.HandOver()
	if !ok {
		return nil
	}
	c.GiveUp()
	return c.numbers(used, c.cfg.Room.Positions(c.cfg.Peer))
}

func numbersOf(told *control.StandbyNumbers) transport.Numbers {
	return transport.Numbers{Sealed: told.GetSealed(), Opened: told.GetOpened(), Control: told.GetControl()}
}

// Continued is a connection of another node that goes on here.
type Continued struct {
	Held       *transport.Held
	Connection *control.StandbyConnection
	// Numbers were true At. They are final if the other node has handed the connection over.
	Numbers *control.StandbyNumbers
	At      time.Time
	Final   bool
}

// Continue makes the connection of another node one of this node. It sends nothing before Begin.
func Continue(t *transport.Transport, o *offer.Offer, s Continued, cfg Config) (*Connection, error) {
	keys, err := transport.ParseKeys(s.Connection.GetKeys())
	if err != nil {
		return nil, err
	}
	secrets := transport.Secrets{
		Keys: keys, Ours: transport.Credentials{Ufrag: s.Connection.GetUfrag(), Password: s.Connection.GetPassword(), Fingerprint: s.Connection.GetFingerprint()},
		Theirs: transport.Credentials{Ufrag: s.Connection.GetClientUfrag(), Password: s.Connection.GetClientPassword()}, Numbers: numbersOf(s.Numbers),
	}
	next := s.Numbers.GetTransport()
	if !s.Final {
		secrets.Numbers = secrets.Numbers.Ahead()
		next += jumpTransport
	}
	c := newConnection(o, cfg)
	c.priority = s.Connection.GetPriority()
	c.session, c.version, c.offered = s.Connection.GetSession(), s.Connection.GetVersion(), s.Connection.GetOffer()
	c.path.Continue(uint16(next))
	c.continued = &continuation{state: s, numbers: secrets.Numbers}
	// What slots of the former node used is not used again, even if a client names it.
	c.forgetful = true
	for _, ssrc := range s.Connection.GetFormer() {
		c.bySSRC[ssrc] = nil
	}
	if _, err := c.learn(s.Connection.GetOffer(), o); err != nil {
		return nil, err
	}
	c.uplink.learn(s.Connection.GetOffer())
	c.conn, err = t.Continue(transport.Config{Handler: c, Owner: cfg.Key, Log: cfg.Log}, secrets, s.Held)
	if err != nil {
		return nil, err
	}
	c.uplink.negotiated(o)
	c.arrange(o)
	return c, nil
}

// Begin orders the client of a continued connection here.
func (c *Connection) Begin() { c.conn.Begin() }

// continuation says how slots of another node go on.
type continuation struct {
	state   Continued
	numbers transport.Numbers
}

// slot returns what is known of a slot, nil without it.
func (c *continuation) slot(mid string) (*control.StandbySlot, *forward.Continuation) {
	if c == nil {
		return nil, nil
	}
	i := slices.IndexFunc(c.state.Connection.GetSlots(), func(s *control.StandbySlot) bool { return s.GetMid() == mid })
	if i < 0 {
		return nil, nil
	}
	known := c.state.Connection.GetSlots()[i]
	sealed, begun := c.numbers.Sealed[known.GetSsrc()]
	where := &forward.Continuation{At: c.state.At, Behind: !c.state.Final, Sequence: uint16(sealed), RTXSequence: uint16(c.numbers.Sealed[known.GetRtxSsrc()])}
	for _, s := range c.state.Numbers.GetStreams() {
		if s.GetSlot().GetMid() != mid {
			continue
		}
		where.Begun = s.GetBegun() && begun
		where.Layer = s.GetLayer()
		where.Numbers = renumber.Numbers{
			Timestamp: s.GetTimestamp(), PictureID: uint16(s.GetPictureId()), TL0: uint8(s.GetTl0()), Frame: uint16(s.GetFrame()),
			Adds: renumber.Adds{Timestamp: s.GetTimestampAdd(), PictureID: uint16(s.GetPictureAdd()), TL0: uint8(s.GetTl0Add()), Frame: uint16(s.GetFrameAdd())},
		}
	}
	if begun && !where.Begun {
		// Nothing says where the stream stands, so the slot begins behind its numbers at any timestamp.
		where.Begun = true
	}
	return known, where
}

// senders are the client's SSRCs as they are known by now.
func (u *uplink) senders() []*control.Sender {
	u.mu.Lock()
	defer u.mu.Unlock()
	var senders []*control.Sender
	for ssrc, who := range u.ssrcs.known {
		s := &control.Sender{Mid: who.mid, Rid: who.rid}
		if who.repairs {
			s.RtxSsrc = ssrc
		} else {
			s.Ssrc = ssrc
		}
		senders = append(senders, s)
	}
	slices.SortFunc(senders, func(a, b *control.Sender) int {
		return cmp.Or(cmp.Compare(a.GetSsrc(), b.GetSsrc()), cmp.Compare(a.GetRtxSsrc(), b.GetRtxSsrc()))
	})
	return senders
}
