package descriptor

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

// ErrMalformed is returned for bytes that are not a usable dependency descriptor.
var ErrMalformed = errors.New("malformed dependency descriptor")

const (
	mandatoryBytes = 3
	// MaxBytes is the two-byte form's limit.
	MaxBytes = 255
	// MaxTargets bounds a stream's decode targets.
	MaxTargets   = 32
	maxTemplates = 64
	// MaxLayers bounds spatial layers, and temporal ones.
	MaxLayers = 8
	// MaxReferences bounds direct references.
	MaxReferences = 16
	lateFrames    = 256
)

// Frame describes the frame of a packet. Bit d of a mask is decode target d.
type Frame struct {
	First, Last bool   // of the frame's packets
	Number      uint16 // wraps
	Known       bool   // else nothing below is set
	Keyframe    bool   // a coded video sequence begins

	Spatial, Temporal uint8
	Structure         *Structure
	Active            uint32 // targets being sent
	Present           uint32 // targets with this frame
	Discardable       uint32 // those in which no later frame needs it
	Switch            uint32 // those decodable from here on, if the frame is

	references     [MaxReferences]uint16
	referenceCount uint8
}

// References returns the frames that this frame needs directly, as differences between this frame's number and theirs.
func (f *Frame) References() []uint16 { return f.references[:f.referenceCount] }

// Reader reads one RTP stream's descriptors. Its zero value is ready.
type Reader struct {
	structure *Structure
	// before is the previous structure, which late packets may still use.
	before *Structure
	active uint32
	// newest is the number of the frame that set active.
	newest uint16
}

// Read reads the descriptor b into f. It does not keep b. It returns ErrMalformed if b is not usable. If the structure that b names has not
// arrived, Read returns nil and f.Known is false.
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
		in.read(1)
		if attached {
			if err := r.attach(&in, id, f); err != nil {
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
	f.Structure, f.Spatial, f.Temporal, f.Active = s, t.layer.Spatial, t.layer.Temporal, r.active&s.all()
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

// attach takes only a structure with the frame's own template. Chromium repeats it with each keyframe.
func (r *Reader) attach(in *bitReader, id int, f *Frame) error {
	var s Structure
	if err := s.read(in); err != nil {
		return err
	}
	if s.template(id) == nil {
		return ErrMalformed
	}
	f.Keyframe = true
	if r.structure == nil || *r.structure != s {
		attached := s
		r.before, r.structure = r.structure, &attached
	} else if r.late(f) {
		return nil // what is active has changed since
	}
	r.active, r.newest = r.structure.all(), f.Number
	return nil
}

// late reports whether a frame is up to lateFrames older than the frame that set active. Frames further back count as new, because frame
// numbers wrap within minutes and encoders restart.
func (r *Reader) late(f *Frame) bool { return r.newest-f.Number-1 < lateFrames }

// readActive reads which decode targets are being sent. A late frame does not change them.
func (r *Reader) readActive(in *bitReader, f *Frame) {
	if r.structure == nil {
		return
	}
	active := uint32(in.read(r.structure.TargetCount()))
	if !r.late(f) && !in.exhausted {
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

// Targets iterates over the decode targets in a mask, in ascending order.
func Targets(mask uint32) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for ; mask != 0; mask &= mask - 1 {
			if !yield(bits.TrailingZeros32(mask)) {
				return
			}
		}
	}
}
