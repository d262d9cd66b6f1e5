// Package portrait draws people and has them as encoded clips, for synthetic participants whom a browser can show.
//
// A clip has a keyframe and a frame for each pose, and any frame may follow any other: so a face speaks when its person does, at
// whatever frame rate, and a request for a keyframe is answered at once. The command in record makes the clips from the drawings; nothing
// draws while a call runs. Begin with Open and At.
package portrait

//go:generate go run ./record

import (
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
)

// Faces is how many people are drawn.
const Faces = 6

// Codec is what a clip is encoded with.
type Codec string

// The codecs.
const (
	VP8 Codec = "vp8"
	VP9 Codec = "vp9"
)

// Size is a clip's, in pixels.
type Size struct{ Width, Height int }

// Sizes returns those that clips have, the smallest first.
func Sizes() []Size { return []Size{{320, 180}, {640, 360}, {1280, 720}} }

//go:embed clips
var files embed.FS

// Clip is one person in one codec and size: an encoded frame for each pose. The first is a keyframe. Each other frame refers to that
// one alone and changes no state of a decoder, so any frame may follow any other.
type Clip [][]byte

// Name returns a clip's file, below the folder of clips.
func Name(person int, codec Codec, size Size) string {
	return fmt.Sprintf("%d-%d.%s.ivf", person%Faces+1, size.Width, codec)
}

// Open returns a copy of a person's clip.
func Open(person int, codec Codec, size Size) (Clip, error) {
	content, err := files.ReadFile("clips/" + Name(person, codec, size))
	if err != nil {
		return nil, fmt.Errorf("no clip of person %d in %s of %dx%d: %w", person, codec, size.Width, size.Height, err)
	}
	clip, err := ReadIVF(content)
	if err == nil && len(clip) != Poses {
		err = fmt.Errorf("%d frames instead of %d", len(clip), Poses)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", Name(person, codec, size), err)
	}
	return clip, nil
}

// The headers of an IVF file and of each of its frames.
const (
	ivfHeader      = 32
	ivfFrameHeader = 12

	framesPerSecond = 10 // of a clip that a player shows
)

// ReadIVF returns the frames of an IVF file.
func ReadIVF(content []byte) (Clip, error) {
	if len(content) < ivfHeader || string(content[:4]) != "DKIF" {
		return nil, errors.New("it is no IVF file")
	}
	var clip Clip
	for rest := content[ivfHeader:]; len(rest) > 0; {
		if len(rest) < ivfFrameHeader {
			return nil, errors.New("a frame's header is cut short")
		}
		size := int(binary.LittleEndian.Uint32(rest))
		rest = rest[ivfFrameHeader:]
		if size == 0 || size > len(rest) {
			return nil, fmt.Errorf("a frame of %d bytes where %d are left", size, len(rest))
		}
		clip, rest = append(clip, rest[:size:size]), rest[size:]
	}
	return clip, nil
}

// IVF returns frames as a file that players open.
func IVF(codec Codec, size Size, frames Clip) []byte {
	file := append([]byte("DKIF"), 0, 0, ivfHeader, 0)
	file = append(file, map[Codec]string{VP8: "VP80", VP9: "VP90"}[codec]...)
	file = binary.LittleEndian.AppendUint16(file, uint16(size.Width))
	file = binary.LittleEndian.AppendUint16(file, uint16(size.Height))
	for _, field := range []uint32{framesPerSecond, 1, uint32(len(frames)), 0} {
		file = binary.LittleEndian.AppendUint32(file, field)
	}
	for i, frame := range frames {
		file = binary.LittleEndian.AppendUint32(file, uint32(len(frame)))
		file = binary.LittleEndian.AppendUint64(file, uint64(i))
		file = append(file, frame...)
	}
	return file
}
