package parse

import (
	"github.com/holdfast-rtc/holdfast/sfu/descriptor"
)

// ReadPicture reads what the dependency descriptor of a packet says, into frame. If the packet has none that can be read, described is
// false, and the picture is read from the payload instead.
func ReadPicture(c Codec, raw []byte, h *Header, descriptors *descriptor.Reader, frame *descriptor.Frame) (p Picture, described bool) {
	at := h.Descriptor
	if at.Length > 0 && descriptors.Read(raw[at.At:at.At+at.Length], frame) == nil {
		return describedPicture(c, raw[h.PayloadStart:h.PayloadEnd], frame), true
	}
	frame.Number = 0
	return ReadPayload(c, raw[h.PayloadStart:h.PayloadEnd]), false
}

// describedPicture takes a picture from its descriptor. Of the payload it reads only the counters of VP8 and VP9, which a slot
// overwrites.
func describedPicture(c Codec, payload []byte, f *descriptor.Frame) Picture {
	p := Picture{Keyframe: f.Keyframe && f.First}
	if c == VP8 || c == VP9 {
		counters := ReadPayload(c, payload)
		p.pictureIDAt, p.pictureIDLong, p.PictureID = counters.pictureIDAt, counters.pictureIDLong, counters.PictureID
		p.tl0At, p.TL0 = counters.tl0At, counters.TL0
	}
	if p.Keyframe {
		size := f.Structure.Resolution(f.Structure.SpatialLayers() - 1)
		p.Width, p.Height = size.Width, size.Height
	}
	return p
}
