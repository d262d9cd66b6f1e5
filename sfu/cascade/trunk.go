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

const (
	// mostSSRCs is how many a connection takes in its life.
	mostSSRCs = 4096
	// renewAfter leaves time to open the next trunk.
	renewAfter = 3000
)

// Conn is the trunk's connection; see transport.Conn.
type Conn interface {
	Writer(batch transport.Batch, picture bool) *transport.Writer
	WriteRTCP(packets []rtcp.Packet) error
	TickAt(at time.Time)
	Close()
}

// Trunk is the media connection of two nodes, for all rooms that they share. It is a transport.Handler and safe for concurrent use.
type Trunk struct {
	// id is the same at both ends, and set before anybody else has the trunk.
	id    string
	ended chan struct{}
	end   func()

	mu    sync.Mutex // guards the fields below
	conn  Conn
	state transport.State
	// last is the newest SSRC of what this side sends. None is used twice, so that no nonce is.
	last uint32
	// begun are the links so far, each of which reports under an SSRC of its own; links are those of now.
	begun, links int
	// idle is since when there has been no link.
	idle time.Time
	out  map[uint32]*outlet
	in   map[uint32]*inlet
}

// newTrunk returns a trunk whose connection use names.
func newTrunk() *Trunk {
	ended := make(chan struct{})
	return &Trunk{
		ended: ended, end: sync.OnceFunc(func() { close(ended) }), idle: time.Now(), out: map[uint32]*outlet{}, in: map[uint32]*inlet{},
	}
}

// use names the connection. It comes before any link.
func (t *Trunk) use(conn Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.conn = conn
}

// up is for a connection that is up, which its state tells a moment later.
func (t *Trunk) up() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state == transport.Connecting {
		t.state = transport.Connected
	}
}

// close ends the trunk and its connection. It waits for the connection's goroutines, so that none of them may call it.
func (t *Trunk) close() {
	t.end()
	t.mu.Lock()
	conn := t.conn
	t.mu.Unlock()
	conn.Close()
}

// Done is closed when the trunk carries nothing any more: its connection has failed, a newer trunk has taken its place, or nobody used it.
func (t *Trunk) Done() <-chan struct{} { return t.ended }

// begin and leave frame the life of a link.
func (t *Trunk) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun++
	t.links++
}

func (t *Trunk) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.links--
	t.idle = time.Now()
}

// unused returns for how long there has been no link.
func (t *Trunk) unused(now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.links > 0 {
		return 0
	}
	return now.Sub(t.idle)
}

// usable reports whether links may begin on the trunk. It gives the caller as long as an unused trunk has.
func (t *Trunk) usable(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.idle = now
	select {
	case <-t.ended:
		return false
	default:
		return t.state == transport.Connected
	}
}

// worn reports whether this side has used so many SSRCs that a newer trunk has to follow.
func (t *Trunk) worn() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return int(t.last)+t.begun >= renewAfter
}

// errTrunkFull: a newer trunk did not come in time.
var errTrunkFull = errors.New("the trunk has no SSRC left")

// send makes an outlet for a layer of this side.
func (t *Trunk) send(l *Link, layer *forward.Layer) (*outlet, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == mostSSRCs {
		t.end() // The other side would end the connection, and links begin anew on the next.
		return nil, errTrunkFull
	}
	t.last++
	picture := layer.Config().Kind == forward.KindVideo
	o := &outlet{link: l, ssrc: t.last, layer: layer, writer: t.conn.Writer(l.batch, picture)}
	kept := soundsKept
	if picture {
		kept = picturesKept
	}
	o.writer.Keep(o.ssrc, kept)
	t.out[o.ssrc] = o
	return o, nil
}

// countAnew is for a layer that the other side begins to want.
func (t *Trunk) countAnew(o *outlet) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o.lost = 0
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
		case *rtcp.ReceiverReport:
			for _, r := range p.Reports {
				if o := t.out[r.SSRC]; o != nil {
					o.reported(r.TotalLost)
				}
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
		due := i.link.reception.Due(now, nil)
		i.link.figures.received.lost.Add(i.link.reception.TakeLosses().Lost)
		if len(due) > 0 {
			// An error means that the trunk is down, which its state tells.
			_ = t.conn.WriteRTCP(due)
		}
		t.schedule(i.link)
	}
}

// StateChanged is part of transport.Handler.
func (t *Trunk) StateChanged(state transport.State) {
	t.mu.Lock()
	t.state = state
	t.mu.Unlock()
	if state == transport.Failed {
		t.end()
	}
}

// Moved is part of transport.Handler.
func (t *Trunk) Moved() {}
