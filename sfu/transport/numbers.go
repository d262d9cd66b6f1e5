package transport

import (
	"encoding/binary"
	"errors"
	"maps"

	"github.com/pion/srtp/v3"
)

// Two nodes that share the keys of a connection must never seal two packets with one nonce: with one key, SSRC and
// number. The owner seals nothing more than jumpPackets beyond the numbers that its standby has acknowledged, and the
// standby begins behind that. So no clock and no proof of the owner's death is needed.
const (
	// jumpPackets is 54 s of a stream of 300 packets a second. It is less than half of the sequence numbers, so that the
	// client finds the roll-over counter (RFC 3711 section 3.3.1).
	jumpPackets = 1 << 14
	// jumpControls is more than RTCP sends in hours.
	jumpControls = 1 << 20
)

var (
	errUnacknowledged = errors.New("the standby has not acknowledged for too long: this node may not send more")
	errUsedNumber     = errors.New("another node may have sealed a packet of this number")
	errNoKeys         = errors.New("the connection has no keys that another node could use")
)

// Numbers are the SRTP packet numbers that a connection has used. An index is the roll-over counter and the sequence
// number.
type Numbers struct {
	// Sealed and Opened are the highest index of each SSRC.
	Sealed, Opened map[uint32]uint64
	// Control is at least the highest SRTCP index of every SSRC.
	Control uint32
}

// Ahead returns numbers behind all that the other node can have used after it told n.
func (n Numbers) Ahead() Numbers {
	ahead := Numbers{Sealed: maps.Clone(n.Sealed), Opened: n.Opened, Control: n.Control + jumpControls}
	for ssrc := range ahead.Sealed {
		ahead.Sealed[ssrc] += jumpPackets
	}
	return ahead
}

// Numbers returns those that have been used so far.
func (c *Conn) Numbers() Numbers {
	n := Numbers{Sealed: map[uint32]uint64{}, Opened: map[uint32]uint64{}}
	c.in.mu.Lock()
	maps.Copy(n.Opened, c.in.continued)
	for ssrc, s := range c.in.streams {
		n.Opened[ssrc] = s.numbers.highest
	}
	c.in.mu.Unlock()
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	n.Control = c.out.controlHighest
	if g, ok := c.out.media.(*gcm); ok {
		for ssrc, i := range g.indices {
			n.Sealed[ssrc] = i.highest
		}
	}
	return n
}

// Bound lets the connection seal at most jumpPackets beyond n, which a standby has acknowledged, or is about to be told:
// then only the SSRCs without a bound get one. A connection that exceeds its bound fails, so that its client makes
// another one with other keys.
func (c *Conn) Bound(n Numbers, acknowledged bool) {
	o := &c.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if acknowledged || o.controlLimit == 0 {
		o.controlLimit = max(o.controlLimit, n.Control+jumpControls)
	}
	g, ok := o.media.(*gcm)
	if !ok {
		return
	}
	for ssrc, highest := range n.Sealed {
		if i := g.indices[ssrc]; i != nil && (acknowledged || i.limit == 0) {
			i.limit = max(i.limit, highest+jumpPackets)
		}
	}
}

// Unbound ends all bounds, because no other node has the keys any more.
func (c *Conn) Unbound() {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	c.out.controlLimit = 0
	if g, ok := c.out.media.(*gcm); ok {
		for _, i := range g.indices {
			i.limit = 0
		}
	}
}

// HandOver ends what the connection sends, for good, and returns the final numbers: another node goes on from them. It
// is false if the connection had ended before.
func (c *Conn) HandOver() (Numbers, bool) {
	c.mu.Lock()
	c.reversal = reversal{}
	c.mu.Unlock()
	c.out.mu.Lock()
	ended := c.out.closed
	c.out.closed = true
	c.out.mu.Unlock()
	return c.Numbers(), !ended
}

// continueAt begins behind numbers that another node has used. It comes after open.
func (o *outbound) continueAt(n Numbers) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.controlFirst, o.controlHighest = n.Control, n.Control
	if g, ok := o.media.(*gcm); ok {
		for ssrc, highest := range n.Sealed {
			g.indices[ssrc] = &index{begun: true, highest: highest, floor: highest}
		}
	}
}

// countControl counts an RTCP packet that is about to be encrypted. It needs mu.
func (o *outbound) countControl(b []byte) error {
	ssrc := binary.BigEndian.Uint32(b[4:])
	used, begun := o.context.Index(ssrc)
	if !begun && o.controlFirst > 0 {
		used = o.controlFirst
		o.context.SetIndex(ssrc, used)
	}
	if o.controlLimit != 0 && used >= o.controlLimit {
		return errUnacknowledged
	}
	o.controlHighest = max(o.controlHighest, used+1)
	return nil
}

// sealing ends a connection that may not seal any more. It may be called with out.mu.
func (c *Conn) sealing(err error) error {
	if errors.Is(err, errUnacknowledged) {
		c.fail()
	}
	return err
}

// continues prepares the roll-over counter of an SSRC that another node has heard. It is false for a number that the
// other node may have opened already. It needs mu.
func (i *inbound) continues(ssrc uint32, sequence uint16) bool {
	highest, ok := i.continued[ssrc]
	if !ok {
		return true
	}
	at := highest + uint64(int64(int16(sequence-uint16(highest))))
	if at <= highest {
		return false
	}
	i.context.SetROC(ssrc, uint32(at>>16))
	return true
}

// add notes the first authentic packet of an SSRC. It needs mu.
func (i *inbound) add(ssrc uint32, heard bool) *incoming {
	s := &incoming{heard: heard}
	if highest, ok := i.continued[ssrc]; ok {
		s.numbers = index{begun: true, highest: highest}
		delete(i.continued, ssrc)
	}
	i.streams[ssrc] = s
	return s
}

func openBoth(c *Conn, keys srtp.Config, n Numbers) error {
	if err := c.out.open(keys); err != nil {
		return err
	}
	c.out.continueAt(n)
	c.in.mu.Lock()
	c.in.continued = maps.Clone(n.Opened)
	c.in.mu.Unlock()
	return c.open(keys)
}
