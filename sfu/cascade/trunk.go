package cascade

import (
	"errors"
	"sync"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/holdfast-rtc/holdfast/sfu/forward"
	"github.com/holdfast-rtc/holdfast/sfu/transport"
)

// MaxLayers is how many layers one side gets over a trunk.
const MaxLayers = 1024

// Conn is the trunk's connection; see transport.Conn.
type Conn interface {
	Writer(batch transport.Batch, picture bool) *transport.Writer
	WriteRTCP(packets []rtcp.Packet) error
	TickAt(at time.Time)
}

// Trunk is the media connection of two nodes, for all rooms that they share. It is a transport.Handler and safe for concurrent use.
type Trunk struct {
	// StateChanges hears of the connection's states, on its reader, and must not wait. It may be nil.
	StateChanges func(transport.State)

	mu   sync.Mutex // guards the fields below
	conn Conn
	// last is the newest SSRC of what this side sends. None is used twice, so that no nonce is.
	last uint32
	out  map[uint32]*outlet
	in   map[uint32]*inlet
}

// NewTrunk returns a trunk whose connection Use names.
func NewTrunk() *Trunk { return &Trunk{out: map[uint32]*outlet{}, in: map[uint32]*inlet{}} }

// Use names the connection. It comes before any link.
func (t *Trunk) Use(conn Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.conn = conn
}

// errTrunkFull: this side has used all SSRCs, after years.
var errTrunkFull = errors.New("the trunk has no SSRC left")

// send makes an outlet for a layer of this side.
func (t *Trunk) send(layer *forward.Layer, batch transport.Batch) (*outlet, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last+1 == 0 {
		return nil, errTrunkFull
	}
	t.last++
	picture := layer.Config().Kind == forward.KindVideo
	o := &outlet{trunk: t, ssrc: t.last, layer: layer, writer: t.conn.Writer(batch, picture)}
	kept := soundsKept
	if picture {
		kept = picturesKept
	}
	o.writer.Keep(o.ssrc, kept)
	t.out[o.ssrc] = o
	return o, nil
}

func (t *Trunk) forget(o *outlet) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.out, o.ssrc)
}

// hear begins to take packets of the other side's layer. It is false if there are too many.
func (t *Trunk) hear(i *inlet) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.in) >= MaxLayers || t.in[i.ssrc] != nil {
		return false
	}
	t.in[i.ssrc] = i
	return true
}

func (t *Trunk) ignore(i *inlet) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.in, i.ssrc)
	i.link.reception.Remove(i.ssrc)
}

// RTP is part of transport.Handler.
func (t *Trunk) RTP(header *rtp.Header, packet []byte, arrived time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := t.in[header.SSRC]; i != nil {
		i.take(header, packet, arrived)
		t.schedule(i.link)
	}
}

// schedule needs mu.
func (t *Trunk) schedule(l *Link) {
	if next := l.reception.Next(); !next.IsZero() {
		t.conn.TickAt(next)
	}
}

// RTCP is part of transport.Handler.
func (t *Trunk) RTCP(packet []byte, arrived time.Time) {
	packets, err := rtcp.Unmarshal(packet)
	if err != nil {
		return // the other side is of another version
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range packets {
		switch p := p.(type) {
		case *rtcp.PictureLossIndication:
			if o := t.out[p.MediaSSRC]; o != nil {
				o.layer.KeyframeRequested()
			}
		case *rtcp.TransportLayerNack:
			if o := t.out[p.MediaSSRC]; o != nil {
				var missing []uint16
				for _, pair := range p.Nacks {
					missing = append(missing, pair.PacketList()...)
				}
				o.layer.Repeat(o, missing)
			}
		case *rtcp.SenderReport:
			if i := t.in[p.SSRC]; i != nil {
				i.layer.SenderReport(p.NTPTime, p.RTPTime, arrived)
			}
		}
	}
}

// Tick is part of transport.Handler.
func (t *Trunk) Tick(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	told := map[*Link]bool{}
	for _, i := range t.in {
		if told[i.link] {
			continue
		}
		told[i.link] = true
		if due := i.link.reception.Due(now, nil); len(due) > 0 {
			// An error means that the trunk is down, which its state tells.
			_ = t.conn.WriteRTCP(due)
		}
		t.schedule(i.link)
	}
}

// StateChanged is part of transport.Handler.
func (t *Trunk) StateChanged(state transport.State) {
	if t.StateChanges != nil {
		t.StateChanges(state)
	}
}

// Moved is part of transport.Handler.
func (t *Trunk) Moved() {}
