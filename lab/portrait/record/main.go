// Package main encodes the drawn people of lab/portrait with ffmpeg: run `go generate ./lab/portrait` after a change of the
// drawing. Debian's ffmpeg has both encoders.
//
// A clip is a keyframe and one frame for each other pose, each encoded as the successor of the keyframe. VP8's encoder is told that
// such a frame updates nothing. VP9's cannot be told by ffmpeg, so the frame's list of the references to update is cleared afterwards
// (VP9 bitstream specification, section 6.2). The command then plays each clip in another order and compares the pictures with the drawings.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"image"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-rtc/holdfast/lab/portrait"
)

func main() {
	dir := flag.String("dir", "clips", "where the clips are written")
	flag.Parse()
	if err := recordAll(*dir); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

func recordAll(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var all errgroup.Group
	all.SetLimit(2)
	for person := range portrait.Faces {
		for _, size := range portrait.Sizes() {
			all.Go(func() error {
				drawn := drawAll(person, size)
				for _, codec := range []portrait.Codec{portrait.VP8, portrait.VP9} {
					if err := record(filepath.Join(dir, portrait.Name(person, codec, size)), codec, size, drawn); err != nil {
						return fmt.Errorf("%s: %w", portrait.Name(person, codec, size), err)
					}
				}
				return nil
			})
		}
	}
	return all.Wait()
}

func drawAll(person int, size portrait.Size) (drawn [][]byte) {
	for number := range portrait.Poses {
		drawn = append(drawn, raw(portrait.Draw(person, number, size.Width, size.Height)))
	}
	return drawn
}

// raw returns the picture as ffmpeg reads rgb24.
func raw(picture image.Image) []byte {
	bounds := picture.Bounds()
	pixels := make([]byte, 0, 3*bounds.Dx()*bounds.Dy())
	for y := range bounds.Dy() {
		for x := range bounds.Dx() {
			r, g, b, _ := picture.At(x, y).RGBA()
			pixels = append(pixels, byte(r>>8), byte(g>>8), byte(b>>8))
		}
	}
	return pixels
}

func record(path string, codec portrait.Codec, size portrait.Size, drawn [][]byte) error {
	clip, err := encodeAll(codec, size, drawn)
	if err != nil {
		return err
	}
	if err := check(codec, size, clip, drawn); err != nil {
		return err
	}
	return os.WriteFile(path, portrait.IVF(codec, size, clip), 0o644)
}

// updatesNothing are libvpx's flags VP8_EFLAG_NO_UPD_LAST, _GF, _ARF and _ENTROPY.
const updatesNothing = 1<<18 | 1<<22 | 1<<23 | 1<<20

// updatesSecond begins an inter frame of VP9's profile 0 that is shown and error resilient: the references that it updates are the next byte.
const updatesSecond = 0b1000_0111

// encodeAll encodes each pose in a run of its own, as the second frame after the keyframe.
func encodeAll(codec portrait.Codec, size portrait.Size, drawn [][]byte) (portrait.Clip, error) {
	var clip portrait.Clip
	for _, pose := range drawn[1:] {
		two, err := encode(size, [][]byte{drawn[0], pose}, options(codec, size)...)
		if err != nil {
			return nil, err
		}
		if clip == nil {
			clip = portrait.Clip{two[0]}
		}
		if !bytes.Equal(two[0], clip[0]) {
			return nil, errors.New("the keyframes of two runs differ")
		}
		if codec == portrait.VP9 {
			if two[1][0] != updatesSecond {
				return nil, fmt.Errorf("a frame begins with %08b", two[1][0])
			}
			two[1][1] = 0
		}
		clip = append(clip, two[1])
	}
	return clip, nil
}

func options(codec portrait.Codec, size portrait.Size) []string {
	if codec == portrait.VP8 {
		q := quantizer(size, 16, 20, 28)
		return []string{
			"-vf", "metadata=mode=add:key=vp8-flags:value=" + strconv.Itoa(updatesNothing) + ":enable=gte(n\\,1)",
			"-c:v", "libvpx", "-quality", "best", "-qmin", q, "-qmax", q, "-b:v", "2M",
		}
	}
	q := quantizer(size, 28, 32, 36)
	return []string{"-c:v", "libvpx-vp9", "-quality", "good", "-cpu-used", "1", "-error-resilient", "default", "-crf", q, "-qmin", q, "-qmax", q, "-b:v", "0", "-threads", "1"}
}

// quantizer grows with the size: the edges of a large picture need fewer bits for each pixel.
func quantizer(size portrait.Size, small, middle, large int) string {
	return strconv.Itoa([]int{small, middle, large}[slices.Index(portrait.Sizes(), size)])
}

func encode(size portrait.Size, pictures [][]byte, options ...string) (portrait.Clip, error) {
	arguments := slices.Concat([]string{"-f", "rawvideo", "-pix_fmt", "rgb24", "-s", fmt.Sprintf("%dx%d", size.Width, size.Height), "-r", "10", "-i", "-"},
		options, []string{"-pix_fmt", "yuv420p", "-lag-in-frames", "0", "-auto-alt-ref", "0", "-g", "9999", "-f", "ivf", "-"})
	out, err := ffmpeg(slices.Concat(pictures...), arguments...)
	if err != nil {
		return nil, err
	}
	clip, err := portrait.ReadIVF(out)
	if err == nil && len(clip) != len(pictures) {
		err = fmt.Errorf("%d pictures became %d frames", len(pictures), len(clip))
	}
	return clip, err
}

// check plays the clip in another order.
func check(codec portrait.Codec, size portrait.Size, clip portrait.Clip, drawn [][]byte) error {
	order := []int{0}
	for i := range 3 * len(clip) {
		order = append(order, i*7%len(clip))
	}
	var shuffled portrait.Clip
	for _, number := range order {
		shuffled = append(shuffled, clip[number])
	}
	out, err := ffmpeg(portrait.IVF(codec, size, shuffled), "-f", "ivf", "-i", "-", "-f", "rawvideo", "-pix_fmt", "rgb24", "-")
	if err != nil {
		return err
	}
	if len(out) != len(order)*len(drawn[0]) {
		return fmt.Errorf("%d frames are decoded as %d bytes", len(order), len(out))
	}
	for i, number := range order {
		if likeness := psnr(out[i*len(drawn[0]):(i+1)*len(drawn[0])], drawn[number]); likeness < 30 {
			return fmt.Errorf("pose %d as frame %d has %.1f dB", number, i, likeness)
		}
	}
	return nil
}

func psnr(a, b []byte) float64 {
	sum := 0.0
	for i := range a {
		d := float64(a[i]) - float64(b[i])
		sum += d * d
	}
	return 10 * math.Log10(255*255*float64(len(a))/max(sum, 1))
}

func ffmpeg(in []byte, arguments ...string) ([]byte, error) {
	run := exec.Command("ffmpeg", append([]string{"-hide_banner", "-loglevel", "error"}, arguments...)...)
	var out, said bytes.Buffer
	run.Stdin, run.Stdout, run.Stderr = bytes.NewReader(in), &out, &said
	if err := run.Run(); err != nil {
		return nil, fmt.Errorf("ffmpeg: %w: %s", err, said.String())
	}
	return out.Bytes(), nil
}
