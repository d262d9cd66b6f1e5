package parse

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/sfu/descriptor"

	"github.com/pion/rtp"
	"github.com/pion/rtp/codecs"
)

func marshal(t testing.TB, h rtp.Header, payload []byte) []byte {
	t.Helper()
	raw, err := (&rtp.Packet{Header: h, Payload: payload}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func withLevel(t testing.TB, id uint8, level uint8, profile uint16) []byte {
	h := rtp.Header{Version: 2, PayloadType: 111, SequenceNumber: 7, Timestamp: 8, SSRC: 9, Extension: true, ExtensionProfile: profile}
	for _, e := range []struct {
		id      uint8
		payload []byte
	}{{3, []byte{1, 2, 3}}, {id, []byte{0x80 | level}}, {9, []byte{4}}} {
		if err := h.SetExtension(e.id, e.payload); err != nil {
			t.Fatal(err)
		}
	}
	return marshal(t, h, []byte("sound"))
}

func TestHeader(t *testing.T) {
	for _, profile := range []uint16{profileOneByte, profileTwoByte} {
		raw := withLevel(t, 5, 42, profile)
		h, err := ReadHeader(raw, &ExtensionIDs{AudioLevel: 5, Passed: PassedExtensions{9, 3, 7}})
		if err != nil || h.AudioLevel != 42 || string(raw[h.PayloadStart:h.PayloadEnd]) != "sound" {
			t.Fatal(h, err)
		}
		if a, b, c := h.Passed[0], h.Passed[1], h.Passed[2]; !bytes.Equal(raw[a.At:a.At+a.Length], []byte{4}) || !bytes.Equal(raw[b.At:b.At+b.Length], []byte{1, 2, 3}) || c.Length != 0 {
			t.Fatal(h.Passed)
		}
		if h, _ := ReadHeader(raw, &ExtensionIDs{AudioLevel: 6}); h.AudioLevel != NoAudioLevel {
			t.Fatal("found an extension that is not there")
		}
	}
}

// FuzzHeader holds our header parser against Pion's: they agree on everything
// that Pion can read.
func FuzzHeader(f *testing.F) {
	f.Add(withLevel(f, 5, 42, profileOneByte), uint8(5))
	f.Add(withLevel(f, 5, 42, profileTwoByte), uint8(5))
	f.Add(marshal(f, rtp.Header{Version: 2, CSRC: []uint32{1, 2}, Padding: true, PaddingSize: 3}, []byte{1}), uint8(0))
	f.Fuzz(func(t *testing.T, raw []byte, id uint8) {
		h, err := ReadHeader(raw, &ExtensionIDs{AudioLevel: id, Passed: PassedExtensions{id, id + 1, 3}})
		for _, s := range h.Passed {
			if s.Length < 0 || s.At+s.Length > len(raw) {
				t.Fatal(h)
			}
		}
		var p rtp.Packet
		pionErr := p.Unmarshal(raw)
		if err != nil {
			return
		}
		if h.PayloadStart < 12 || h.PayloadEnd < h.PayloadStart || h.PayloadEnd > len(raw) {
			t.Fatal(h)
		}
		if pionErr != nil {
			return
		}
		if h.Sequence != p.SequenceNumber || h.Timestamp != p.Timestamp || h.Marker != p.Marker || h.PayloadType != p.PayloadType ||
			!bytes.Equal(raw[h.PayloadStart:h.PayloadEnd], p.Payload) {
			t.Fatal(h, p)
		}
	})
}

func TestPictures(t *testing.T) {
	key := vp8Payload(true, true, 0x1234, 9, 720, 0, 40)
	want := Picture{Begins: true, Keyframe: true, Width: 1280, Height: 720, pictureIDAt: 2, pictureIDLong: true, PictureID: 0x1234, tl0At: 4, TL0: 9}
	if p := parseVP8(key); p != want {
		t.Fatal(p)
	}
	if p := parseVP8(vp8Payload(true, false, 1, 1, 720, 0, 40)); p.Keyframe {
		t.Fatal("the second packet of a keyframe begins none")
	}
	if p := parseVP8([]byte{0x90, 0xA0, 0x05, 0x20, 0x00}); !p.Keyframe || p.PictureID != 5 || p.pictureIDLong || p.tl0At != 0 {
		t.Fatal("7-bit picture id with a temporal layer:", p)
	}
	for payload, want := range map[string]Picture{
		"\x90\xE0\x05\x09\xA0\x01": {Begins: true, Temporal: 2, Synced: true, pictureIDAt: 2, PictureID: 5, tl0At: 3, TL0: 9},
		"\x80\xE0\x05\x09\x40\x01": {Temporal: 1, pictureIDAt: 2, PictureID: 5, tl0At: 3, TL0: 9},
		"\x90\x90\x05\xFF\x01":     {Begins: true, pictureIDAt: 2, PictureID: 5}, // a KEYIDX alone
		"\x90\x20":                 {Begins: true},                               // cut short
	} {
		if p := parseVP8([]byte(payload)); p != want {
			t.Errorf("%x: %+v, want %+v", payload, p, want)
		}
	}
	// What web/static/page/sealed-frame.js puts ahead of an encrypted frame.
	sealed := append([]byte{0x90, 0x80, 0x05, 0xF0, 0xFF, 0xFF, 0x9D, 0x01, 0x2A, 0x40, 0x01, 0xB4, 0x00}, "noise"...)
	if p := parseVP8(sealed); !p.Keyframe || p.Width != 320 || p.Height != 180 || p.PictureID != 5 {
		t.Fatal("an encrypted keyframe:", p)
	}
	if p := parseVP8([]byte{0x90, 0x80, 0x06, 0xF1, 0xFF, 0xFF, 'n', 'o', 'i', 's', 'e'}); p.Keyframe || p.PictureID != 6 {
		t.Fatal("an encrypted delta frame:", p)
	}
	for name, c := range map[string]struct {
		payload  []byte
		keyframe bool
	}{
		"SPS":                      {[]byte{0x67, 1}, true},
		"IDR":                      {[]byte{0x65, 1}, true},
		"PPS":                      {[]byte{0x68, 1}, false},
		"slice":                    {[]byte{0x41, 1}, false},
		"STAP-A of SEI, SPS":       {[]byte{0x78, 0, 2, 0x06, 1, 0, 2, 0x67, 1}, true},
		"STAP-A of slices":         {[]byte{0x78, 0, 2, 0x41, 1, 0, 2, 0x41, 1}, false},
		"FU-A begin of IDR":        {[]byte{0x7C, 0x85, 1}, true},
		"FU-A middle of IDR":       {[]byte{0x7C, 0x05, 1}, false},
		"FU-A begin of slice":      {[]byte{0x7C, 0x81, 1}, false},
		"STAP-A that is cut short": {[]byte{0x78, 0xFF, 0xFF, 0x41}, false},
		"nothing":                  {nil, false},
	} {
		if ReadPayload(H264, c.payload).Keyframe != c.keyframe {
			t.Error(name)
		}
	}
}

func TestVP9AndAV1Keyframes(t *testing.T) {
	structure := []byte{0x10, 0x05, 0x00, 0x02, 0xD0} // one layer of 1280 x 720
	begin := append([]byte{0x8A, 0x92, 0x34}, structure...)
	if p, want := parseVP9(begin), (Picture{Begins: true, Keyframe: true, Width: 1280, Height: 720, pictureIDAt: 1, pictureIDLong: true, PictureID: 0x1234}); p != want {
		t.Error(p)
	}
	for name, c := range map[string]struct {
		payload []byte
		want    Picture
	}{
		"not the beginning":        {[]byte{0x80, 0x05}, Picture{pictureIDAt: 1, PictureID: 5}},
		"predicted":                {[]byte{0xC8, 0x05}, Picture{Begins: true, pictureIDAt: 1, PictureID: 5}},
		"with a TL0PICIDX":         {[]byte{0xA8, 0x05, 0x00, 0x09}, Picture{Begins: true, Keyframe: true, pictureIDAt: 1, PictureID: 5, tl0At: 3, TL0: 9}},
		"of a higher layer":        {[]byte{0xA8, 0x05, 0x02, 0x09}, Picture{pictureIDAt: 1, PictureID: 5, tl0At: 3, TL0: 9}},
		"of a temporal layer":      {[]byte{0xE8, 0x05, 0x50, 0x09}, Picture{Begins: true, Temporal: 2, Opens: true, pictureIDAt: 1, PictureID: 5, tl0At: 3, TL0: 9}},
		"flexible":                 {[]byte{0xB8, 0x05, 0x00}, Picture{Begins: true, Keyframe: true, pictureIDAt: 1, PictureID: 5}},
		"a structure cut short":    {[]byte{0x0A, 0x10, 0x05}, Picture{Begins: true, Keyframe: true}},
		"a picture id cut short":   {[]byte{0x88, 0x80}, Picture{}},
		"layers that are cut away": {[]byte{0xA8, 0x05}, Picture{}},
	} {
		if p := parseVP9(c.payload); p != c.want {
			t.Errorf("%s: %+v, want %+v", name, p, c.want)
		}
	}
	for payload, want := range map[string]bool{"\x18\x0A": true, "\x10\x0A": false, "\x98\x0A": false, "\x18": false, "": false} {
		if av1Keyframe([]byte(payload)) != want {
			t.Errorf("%x begins a sequence of AV1: %v", payload, !want)
		}
	}
}

// FuzzVP9 is FuzzPicture for VP9, and for the one byte that is read of AV1.
func FuzzVP9(f *testing.F) {
	f.Add([]byte{0x8A, 0x92, 0x34, 0x10, 0x05, 0x00, 0x02, 0xD0}, uint16(77), uint8(4))
	f.Add([]byte{0xA8, 0x05, 0x00, 0x09}, uint16(500), uint8(4))
	f.Add([]byte{0xF8, 0x05, 0x00, 0x03, 0x02}, uint16(500), uint8(4))
	f.Fuzz(func(t *testing.T, payload []byte, id uint16, tl0 uint8) {
		av1Keyframe(payload)
		p := parseVP9(payload)
		var before, after codecs.VP9Packet
		_, err := before.Unmarshal(bytes.Clone(payload))
		p.Patch(payload, id, tl0)
		again := parseVP9(payload)
		if again.Keyframe != p.Keyframe || again.Height != p.Height || again.pictureIDAt != p.pictureIDAt || again.tl0At != p.tl0At {
			t.Fatal("patching changed more than the counters")
		}
		if p.tl0At != 0 && again.TL0 != tl0 || p.pictureIDLong && again.PictureID != id&0x7FFF {
			t.Fatal(again)
		}
		if err != nil {
			return
		}
		if p.pictureIDAt != 0 && before.PictureID != p.PictureID || p.tl0At != 0 && before.TL0PICIDX != p.TL0 || p.Keyframe != (before.B && !before.P && before.SID == 0) ||
			p.Temporal != min(before.TID, MaxTemporal) || p.Opens != before.U || p.Begins != (before.B && before.SID == 0) {
			t.Fatalf("Pion reads %+v, we %+v", before, p)
		}
		if _, err := after.Unmarshal(payload); err != nil || p.pictureIDLong && after.PictureID != id&0x7FFF {
			t.Fatalf("what was patched is %+v to Pion (%v)", after, err)
		}
	})
}

// FuzzPicture: no bytes make the parsers read or write out of bounds, and a
// patched payload says what was patched into it, to Pion as well.
func FuzzPicture(f *testing.F) {
	f.Add(vp8Payload(true, true, 500, 3, 180, 0, 30), uint16(77), uint8(4))
	f.Add([]byte{0x90, 0xA0, 0x05, 0x20, 0x00}, uint16(77), uint8(4))
	f.Add([]byte{0x78, 0, 2, 0x06, 1, 0, 2, 0x67, 1}, uint16(1), uint8(1))
	f.Fuzz(func(t *testing.T, payload []byte, id uint16, tl0 uint8) {
		ReadPayload(H264, payload)
		p := parseVP8(payload)
		before := bytes.Clone(payload)
		var pion codecs.VP8Packet
		_, err := pion.Unmarshal(before)
		p.Patch(payload, id, tl0)
		again := parseVP8(payload)
		if again.Keyframe != p.Keyframe || again.Height != p.Height || again.pictureIDAt != p.pictureIDAt || again.tl0At != p.tl0At {
			t.Fatal("patching changed more than the counters")
		}
		if p.tl0At != 0 && again.TL0 != tl0 {
			t.Fatal(again.TL0)
		}
		mask := uint16(0x7F)
		if p.pictureIDLong {
			mask = 0x7FFF
		}
		if p.pictureIDAt != 0 && again.PictureID != id&mask {
			t.Fatal(again.PictureID)
		}
		if err != nil {
			return
		}
		if p.pictureIDAt != 0 && pion.PictureID != p.PictureID || p.tl0At != 0 && pion.TL0PICIDX != p.TL0 ||
			pion.T == 1 && (pion.TID != p.Temporal || (pion.Y == 1) != p.Synced) || p.Begins != (pion.S == 1 && pion.PID == 0) {
			t.Fatalf("Pion reads %+v, we %+v", pion, p)
		}
	})
}

// foreign attaches a structure that lacks the template of its own frame.
const foreign = "c500018000e0"

// The descriptors of the first frame of Chromium's modes L1T3 and L3T3_KEY.
const (
	l1t3    = "800001800214eaa860414d141020842703bf021b"
	l3t3Key = "800002c0081485214eaaaaa8000600004000100002aa80a8000600004000100002a000a800060000400016d549241b5524906d54923157e001974ca864330e222396eca8655304224390eca8775300ef008601df010d03bf021bff80"
)

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func parseDescribed(t testing.TB, c Codec, descriptors *descriptor.Reader, described, payload []byte) (p Picture, frame descriptor.Frame, ok bool) {
	t.Helper()
	h := rtp.Header{Version: 2, Extension: true, ExtensionProfile: profileTwoByte}
	if err := h.SetExtension(4, described); err != nil {
		t.Fatal(err)
	}
	raw := marshal(t, h, payload)
	read, err := ReadHeader(raw, &ExtensionIDs{Descriptor: 4})
	if err != nil {
		t.Fatal(err)
	}
	p, ok = ReadPicture(c, raw, &read, descriptors, &frame)
	return p, frame, ok
}

func TestAForeignDescriptorIsIgnored(t *testing.T) {
	if p, _, described := parseDescribed(t, AV1, &descriptor.Reader{}, unhex(t, foreign), []byte("frame")); described || p.Keyframe {
		t.Errorf("described %v, keyframe %v", described, p.Keyframe)
	}
}

// FuzzDescribed parses a packet after the beginning of a described stream.
func FuzzDescribed(f *testing.F) {
	f.Add(uint8(AV1), unhex(f, foreign), []byte("frame"))
	f.Add(uint8(VP9), unhex(f, l3t3Key), []byte{0xA8, 0x05, 0x00, 0x09})
	f.Add(uint8(VP8), unhex(f, "c500018000"), vp8Payload(true, true, 500, 3, 180, 0, 30))
	f.Fuzz(func(t *testing.T, c uint8, described, payload []byte) {
		if len(described) > descriptor.MaxBytes || len(payload) > 750 {
			return
		}
		var descriptors descriptor.Reader
		for _, b := range [][]byte{unhex(t, l1t3), described, described} {
			p, frame, described := parseDescribed(t, Codec(c), &descriptors, b, payload)
			if described && p.Keyframe && !frame.Known {
				t.Fatal("a keyframe of an unknown structure")
			}
		}
	})
}

// FuzzFormat: what a client writes into a=fmtp is read without a panic, and parameters of no concern make no other format.
func FuzzFormat(f *testing.F) {
	f.Add("packetization-mode=1;profile-level-id=42e01f", "profile-level-id=42001f;packetization-mode=1")
	f.Add("profile-level-id=4", "profile-level-id=;;=;packetization-mode")
	f.Fuzz(func(t *testing.T, a, b string) {
		more := a + ";max-fs=" + strings.ReplaceAll(b, ";", "")
		if one, two := FormatOf("video/H264", a), FormatOf("VIDEO/h264", more); one != two {
			t.Fatalf("%q is %q, %q is %q", a, one, more, two)
		}
	})
}

// vp8Payload builds a payload with a 15-bit picture id and a TL0PICIDX.
func vp8Payload(keyframe, first bool, pictureID uint16, tl0 uint8, height int, fill byte, size int) []byte {
	b := []byte{0x80, 0xC0, 0x80 | byte(pictureID>>8), byte(pictureID), tl0}
	if first {
		b[0] |= 0x10
		frame := []byte{1, 0, 0}
		if keyframe {
			frame = []byte{0, 0, 0, 0x9D, 1, 0x2A, byte(height * 16 / 9), byte(height * 16 / 9 >> 8), byte(height), byte(height >> 8)}
		}
		b = append(b, frame...)
	}
	for len(b) < size {
		b = append(b, fill)
	}
	return b
}
