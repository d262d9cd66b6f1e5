package cascade

import (
	"errors"
	"fmt"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
	"github.com/holdfast-rtc/holdfast/sfu/reception"
	"github.com/holdfast-rtc/holdfast/sfu/sources"
)

// inlet is a layer of the other side on the trunk, with the remote layer that it is here.
type inlet struct {
	link  *Link
	ssrc  uint32
	layer *forward.Layer
	// wanted belongs to the link's Run.
	wanted bool
}

// take needs the trunk's mu.
func (i *inlet) take(header *rtp.Header, packet []byte, arrived time.Time) {
	i.link.figures.received.packets.Add(1)
	i.link.reception.Received(i.ssrc, header.SequenceNumber, header.Timestamp, arrived)
	p := i.link.room.GetPacket()
	p.SetLength(copy(p.Buffer(), packet))
	i.layer.Push(p)
}

var (
	errBusy    = errors.New("the room is too busy")
	errUnknown = errors.New("it names no source that this version knows, or no publisher")
	errMany    = fmt.Errorf("the trunk has %d layers, or this one already", MaxLayers)
)

// open begins the remote layer of what the other side told. After errBusy it may be tried again.
func (l *Link) open(told *control.LinkLayer) (*inlet, error) {
	source, ok := sources.Of(told.GetSource())
	if !ok || told.GetSsrc() == 0 || told.GetPeer() == "" {
		return nil, errUnknown
	}
	i := &inlet{link: l, ssrc: told.GetSsrc()}
	cfg := forward.LayerConfig{
		Peer: forward.PeerID(told.GetPeer()), Source: source, Kind: source.Kind(), RID: told.GetRid(), SSRC: told.GetSsrc(),
		Codec: forward.Codec{
			MimeType: told.GetMimeType(), Fmtp: told.GetFmtp(), ClockRate: told.GetClockRate(), PayloadType: uint8(told.GetPayloadType()),
		},
		REDPayloadType: uint8(told.GetRedPayloadType()), AudioLevelExtensionID: uint8(told.GetAudioLevelId()), DescriptorID: uint8(told.GetDescriptorId()),
		OnWanted: func(wanted bool) { l.want(i.ssrc, wanted) }, Via: l,
	}
	for at, id := range told.GetPassedIds() {
		if at < len(cfg.Passed) {
			cfg.Passed[at] = uint8(id)
		}
	}
	if cfg.Kind == forward.KindVideo {
		cfg.SendPLI = func() {
			// The loop asks again.
			_ = l.trunk.conn.WriteRTCP([]rtcp.Packet{&rtcp.PictureLossIndication{MediaSSRC: i.ssrc}})
		}
	}
	if i.layer = l.room.AddLayer(cfg); i.layer == nil {
		return nil, errBusy
	}
	if !l.trunk.hear(i) {
		i.layer.Close()
		return nil, errMany
	}
	return i, nil
}

// listen begins or ends to miss packets of the inlet. After an end, the numbers go on far ahead.
func (i *inlet) listen(wanted bool) {
	i.wanted = wanted
	t := i.link.trunk
	t.mu.Lock()
	defer t.mu.Unlock()
	if wanted {
		i.link.reception.Add(i.ssrc, i.layer.Config().Codec.ClockRate, reception.Repeats)
	} else {
		i.link.reception.Remove(i.ssrc)
	}
}
