package descriptor

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

// ErrMalformed says that bytes are no dependency descriptor, or one beyond the bounds of this package.
var ErrMalformed = errors.New("malformed dependency descriptor")

const (
	mandatoryBytes = 3
	// MaxBytes is the longest descriptor: that of the two-byte form of header extensions.
	MaxBytes = 255
	// MaxTargets bounds the decode targets of a stream.
	MaxTargets   = 32
	maxTemplates = 64
	// MaxLayers bounds the spatial layers, and the temporal ones.
	MaxLayers = 8
	// MaxReferences bounds the frames that one needs directly; AV1 and VP9 have fewer.
	MaxReferences = 16
)

// Frame is what a descriptor says of the frame that its packet is part of. Masks have bit d for decode target d.
type Frame struct {
	First, Last bool   // the packet is the frame's first, its last
	Number      uint16 // of the frame, which wraps
	Known       bool   // the structure is known that the descriptor refers to; else nothing below is set
	Keyframe    bool   // a coded video sequence begins with this frame

	Spatial, Temporal uint8
	Structure         *Structure
	Active            uint32 // decode targets that the publisher sends at present
	Present           uint32 // decode targets that the frame is part of
	Discardable       uint32 // of them those in which no later frame needs it
	Switch            uint32 // of them those that can be decoded from here on, if the frame can

	references     [MaxReferences]uint16
	referenceCount uint8
}

// References are the frames that this one needs directly, as how much lower their numbers are.
func (f *Frame) References() []uint16 { return f.references[:f.referenceCount] }

// Reader reads the descriptors of one RTP stream in the order of their arrival. Its zero value is ready.
type Reader struct {
	structure *Structure
	before    *Structure // the one before, of which packets may come late
	active    uint32
	newest    uint16 // number of the frame that said what is active
}

// Read reads the descriptor of one packet, which is not kept.
func (r *Reader) Read(b []byte, f *Frame) error {
	*f = Frame{}
	if len(b) < mandatoryBytes || len(b) > MaxBytes {
		return ErrMalformed
	}
	in := bitReader{bytes: b, at: 8 * mandatoryBytes}
	f.First, f.Last = b[0]&0x80 != 0, b[0]&0x40 != 0
	id := int(b[0] & 0x3F)
	f.Number = binary.BigEndian.Uint16(b[1:])
	var custom struct{ indications, references bool }
	if len(b) > mandatoryBytes {
		attached, active := in.flag(), in.flag()
		custom.indications, custom.references = in.flag(), in.flag()
		in.read(1) // custom chains
		if attached {
			if err := r.attach(&in, f); err != nil {
				return err
			}
		}
		if active {
			r.readActive(&in, f)
		}
	}
	s := r.structureOf(id)
	if s == nil {
		return nil
	}
	t := s.template(id)
	f.Structure, f.Spatial, f.Temporal, f.Active = s, t.layer.Spatial, t.layer.Temporal, r.active&s.all() // s may be the one before
	i := t.indications
	if custom.indications {
		i = readIndications(&in, s.TargetCount())
	}
	f.Present, f.Discardable, f.Switch = i.present, i.discardable, i.switches
	if custom.references {
		f.readReferences(&in)
	} else {
		f.referenceCount = uint8(copyReferences(f.references[:], t.references[:t.referenceCount]))
	}
	if in.exhausted {
		*f = Frame{}
		return ErrMalformed
	}
	f.Known = true
	return nil
}

// attach reads a structure. Chromium repeats the same with each keyframe.
func (r *Reader) attach(in *bitReader, f *Frame) error {
	var s Structure
	if err := s.read(in); err != nil {
		return err
	}
	if r.structure == nil || *r.structure != s {
		attached := s
		r.before, r.structure = r.structure, &attached
	}
	r.active, r.newest = r.structure.all(), f.Number
	f.Keyframe = true
	return nil
}

// readActive takes over which targets are active, unless a later frame has said it already.
func (r *Reader) readActive(in *bitReader, f *Frame) {
	if r.structure == nil {
		return
	}
	active := uint32(in.read(r.structure.TargetCount()))
	if int16(f.Number-r.newest) >= 0 && !in.exhausted {
		r.active, r.newest = active, f.Number
	}
}

func (r *Reader) structureOf(id int) *Structure {
	for _, s := range []*Structure{r.structure, r.before} {
		if s != nil && s.template(id) != nil {
			return s
		}
	}
	return nil
}

// readReferences reads custom references: numbers of 4, 8 or 12 bits, up to one of no length.
func (f *Frame) readReferences(in *bitReader) {
	for size := in.read(2); size > 0; size = in.read(2) {
		difference := in.read(4*size) + 1
		if int(f.referenceCount) == len(f.references) {
			in.exhausted = true
			return
		}
		f.references[f.referenceCount] = uint16(difference)
		f.referenceCount++
	}
}

func copyReferences(to []uint16, from []uint8) int {
	for i, difference := range from {
		to[i] = uint16(difference)
	}
	return len(from)
}

// indications say what a frame is to each decode target.
type indications struct{ present, discardable, switches uint32 }

func readIndications(in *bitReader, targets int) indications {
	var i indications
	for d := range targets {
		bit := uint32(1) << d
		switch in.read(2) {
		case 1:
			i.present |= bit
			i.discardable |= bit
		case 2:
			i.present |= bit
			i.switches |= bit
		case 3:
			i.present |= bit
		}
	}
	return i
}

// Targets lists the decode targets of a mask.
func Targets(mask uint32) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for ; mask != 0; mask &= mask - 1 {
			if !yield(bits.TrailingZeros32(mask)) {
				return
			}
		}
	}
}
