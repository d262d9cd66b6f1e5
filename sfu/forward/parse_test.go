package forward

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/rtp/codecs"
	"pgregory.net/rapid"

	"github.com/holdfast-rtc/holdfast/sfu/descriptor"
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
		h, err := parseHeader(raw, &extensionIDs{level: 5, passed: PassedExtensions{9, 3, 7}})
		if err != nil || h.audioLevel != 42 || string(raw[h.payloadStart:h.payloadEnd]) != "sound" {
			t.Fatal(h, err)
		}
		if a, b, c := h.passed[0], h.passed[1], h.passed[2]; !bytes.Equal(raw[a.at:a.at+a.length], []byte{4}) || !bytes.Equal(raw[b.at:b.at+b.length], []byte{1, 2, 3}) || c.length != 0 {
			t.Fatal(h.passed)
		}
		if h, _ := parseHeader(raw, &extensionIDs{level: 6}); h.audioLevel != noAudioLevel {
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
		h, err := parseHeader(raw, &extensionIDs{level: id, passed: PassedExtensions{id, id + 1, 3}})
		for _, s := range h.passed {
			if s.length < 0 || s.at+s.length > len(raw) {
				t.Fatal(h)
			}
		}
		var p rtp.Packet
		pionErr := p.Unmarshal(raw)
		if err != nil {
			return
		}
		if h.payloadStart < 12 || h.payloadEnd < h.payloadStart || h.payloadEnd > len(raw) {
			t.Fatal(h)
		}
		if pionErr != nil {
			return
		}
		if h.sequence != p.SequenceNumber || h.timestamp != p.Timestamp || h.marker != p.Marker || h.payloadType != p.PayloadType ||
			!bytes.Equal(raw[h.payloadStart:h.payloadEnd], p.Payload) {
			t.Fatal(h, p)
		}
	})
}

func TestPictures(t *testing.T) {
	key := vp8Payload(true, true, 0x1234, 9, 720, 0, 40)
	want := picture{begins: true, keyframe: true, width: 1280, height: 720, pictureIDAt: 2, pictureIDLong: true, pictureID: 0x1234, tl0At: 4, tl0: 9}
	if p := parseVP8(key); p != want {
		t.Fatal(p)
	}
	if p := parseVP8(vp8Payload(true, false, 1, 1, 720, 0, 40)); p.keyframe {
		t.Fatal("the second packet of a keyframe begins none")
	}
	if p := parseVP8([]byte{0x90, 0xA0, 0x05, 0x20, 0x00}); !p.keyframe || p.pictureID != 5 || p.pictureIDLong || p.tl0At != 0 {
		t.Fatal("7-bit picture id with a temporal layer:", p)
	}
	for payload, want := range map[string]picture{
		"\x90\xE0\x05\x09\xA0\x01": {begins: true, temporal: 2, synced: true, pictureIDAt: 2, pictureID: 5, tl0At: 3, tl0: 9},
		"\x80\xE0\x05\x09\x40\x01": {temporal: 1, pictureIDAt: 2, pictureID: 5, tl0At: 3, tl0: 9},
		"\x90\x90\x05\xFF\x01":     {begins: true, pictureIDAt: 2, pictureID: 5}, // a KEYIDX alone
		"\x90\x20":                 {begins: true},                               // cut short
	} {
		if p := parseVP8([]byte(payload)); p != want {
			t.Errorf("%x: %+v, want %+v", payload, p, want)
		}
	}
	// What web/static/page/sealed-frame.js puts ahead of an encrypted frame.
	sealed := append([]byte{0x90, 0x80, 0x05, 0xF0, 0xFF, 0xFF, 0x9D, 0x01, 0x2A, 0x40, 0x01, 0xB4, 0x00}, "noise"...)
	if p := parseVP8(sealed); !p.keyframe || p.width != 320 || p.height != 180 || p.pictureID != 5 {
		t.Fatal("an encrypted keyframe:", p)
	}
	if p := parseVP8([]byte{0x90, 0x80, 0x06, 0xF1, 0xFF, 0xFF, 'n', 'o', 'i', 's', 'e'}); p.keyframe || p.pictureID != 6 {
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
		if parsePicture(codecH264, c.payload).keyframe != c.keyframe {
			t.Error(name)
		}
	}
}

func TestVP9AndAV1Keyframes(t *testing.T) {
	structure := []byte{0x10, 0x05, 0x00, 0x02, 0xD0} // one layer of 1280 x 720
	begin := append([]byte{0x8A, 0x92, 0x34}, structure...)
	if p, want := parseVP9(begin), (picture{begins: true, keyframe: true, width: 1280, height: 720, pictureIDAt: 1, pictureIDLong: true, pictureID: 0x1234}); p != want {
		t.Error(p)
	}
	for name, c := range map[string]struct {
		payload []byte
		want    picture
	}{
		"not the beginning":        {[]byte{0x80, 0x05}, picture{pictureIDAt: 1, pictureID: 5}},
		"predicted":                {[]byte{0xC8, 0x05}, picture{begins: true, pictureIDAt: 1, pictureID: 5}},
		"with a TL0PICIDX":         {[]byte{0xA8, 0x05, 0x00, 0x09}, picture{begins: true, keyframe: true, pictureIDAt: 1, pictureID: 5, tl0At: 3, tl0: 9}},
		"of a higher layer":        {[]byte{0xA8, 0x05, 0x02, 0x09}, picture{pictureIDAt: 1, pictureID: 5, tl0At: 3, tl0: 9}},
		"of a temporal layer":      {[]byte{0xE8, 0x05, 0x50, 0x09}, picture{begins: true, temporal: 2, opens: true, pictureIDAt: 1, pictureID: 5, tl0At: 3, tl0: 9}},
		"flexible":                 {[]byte{0xB8, 0x05, 0x00}, picture{begins: true, keyframe: true, pictureIDAt: 1, pictureID: 5}},
		"a structure cut short":    {[]byte{0x0A, 0x10, 0x05}, picture{begins: true, keyframe: true}},
		"a picture id cut short":   {[]byte{0x88, 0x80}, picture{}},
		"layers that are cut away": {[]byte{0xA8, 0x05}, picture{}},
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
		p.patch(payload, id, tl0)
		again := parseVP9(payload)
		if again.keyframe != p.keyframe || again.height != p.height || again.pictureIDAt != p.pictureIDAt || again.tl0At != p.tl0At {
			t.Fatal("patching changed more than the counters")
		}
		if p.tl0At != 0 && again.tl0 != tl0 || p.pictureIDLong && again.pictureID != id&0x7FFF {
			t.Fatal(again)
		}
		if err != nil {
			return
		}
		if p.pictureIDAt != 0 && before.PictureID != p.pictureID || p.tl0At != 0 && before.TL0PICIDX != p.tl0 || p.keyframe != (before.B && !before.P && before.SID == 0) ||
			p.temporal != min(before.TID, maxTemporal) || p.opens != before.U || p.begins != (before.B && before.SID == 0) {
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
		parsePicture(codecH264, payload)
		p := parseVP8(payload)
		before := bytes.Clone(payload)
		var pion codecs.VP8Packet
		_, err := pion.Unmarshal(before)
		p.patch(payload, id, tl0)
		again := parseVP8(payload)
		if again.keyframe != p.keyframe || again.height != p.height || again.pictureIDAt != p.pictureIDAt || again.tl0At != p.tl0At {
			t.Fatal("patching changed more than the counters")
		}
		if p.tl0At != 0 && again.tl0 != tl0 {
			t.Fatal(again.tl0)
		}
		mask := uint16(0x7F)
		if p.pictureIDLong {
			mask = 0x7FFF
		}
		if p.pictureIDAt != 0 && again.pictureID != id&mask {
			t.Fatal(again.pictureID)
		}
		if err != nil {
			return
		}
		if p.pictureIDAt != 0 && pion.PictureID != p.pictureID || p.tl0At != 0 && pion.TL0PICIDX != p.tl0 ||
			pion.T == 1 && (pion.TID != p.temporal || (pion.Y == 1) != p.synced) || p.begins != (pion.S == 1 && pion.PID == 0) {
			t.Fatalf("Pion reads %+v, we %+v", pion, p)
		}
	})
}

// foreign attaches a structure that lacks the template of its own frame.
const foreign = "c500018000e0"

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func parseDescribed(t testing.TB, codec codec, descriptors *descriptor.Reader, described, payload []byte) *Packet {
	t.Helper()
	h := rtp.Header{Version: 2, Extension: true, ExtensionProfile: profileTwoByte}
	if err := h.SetExtension(4, described); err != nil {
		t.Fatal(err)
	}
	raw := marshal(t, h, payload)
	p := &Packet{length: len(raw)}
	copy(p.buffer[:], raw)
	if err := p.parse(codec, &extensionIDs{descriptor: 4}, descriptors); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAForeignDescriptorIsIgnored(t *testing.T) {
	if p := parseDescribed(t, codecAV1, &descriptor.Reader{}, unhex(t, foreign), []byte("frame")); p.described || p.picture.keyframe {
		t.Errorf("described %v, keyframe %v", p.described, p.picture.keyframe)
	}
}

// FuzzDescribed parses a packet after the beginning of a described stream.
func FuzzDescribed(f *testing.F) {
	f.Add(uint8(codecAV1), unhex(f, foreign), []byte("frame"))
	f.Add(uint8(codecVP9), unhex(f, l3t3Key.structure), []byte{0xA8, 0x05, 0x00, 0x09})
	f.Add(uint8(codecVP8), unhex(f, "c500018000"), vp8Payload(true, true, 500, 3, 180, 0, 30))
	f.Fuzz(func(t *testing.T, c uint8, described, payload []byte) {
		if len(described) > descriptor.MaxBytes || len(payload) > packetCapacity/2 {
			return
		}
		var descriptors descriptor.Reader
		for _, b := range [][]byte{unhex(t, l1t3.structure), described, described} {
			p := parseDescribed(t, codec(c), &descriptors, b, payload)
			if p.described && p.picture.keyframe && !p.frame.Known {
				t.Fatal("a keyframe of an unknown structure")
			}
		}
	})
}

func TestSequenceTracker(t *testing.T) {
	var tr sequenceTracker
	type step struct {
		in   uint16
		want int // relative to the first, -1: refused
	}
	for i, s := range []step{
		{65534, 0}, {65535, 1}, {1, 3}, {0, 2}, {2, 4}, // turns over, out of order
		{30000, 5}, {30001, 6}, // far ahead: a new beginning, no gap
		{100, -1}, {30002, 7}, // a stray one
		{100, -1}, {5000, -1}, // and two that have nothing to do with each other
		{200, -1}, {201, 8}, {202, 9}, // two in a row: a new beginning
	} {
		got, ok := tr.extend(s.in)
		if ok != (s.want >= 0) || ok && got != 1<<16+uint32(s.want) {
			t.Fatalf("step %d: %d %v", i, int(got)-1<<16, ok)
		}
	}
}

// TestCacheHoldsWhatItSays: whatever is put in and however time goes, a packet
// in the cache is held exactly once, and no buffer is reused meanwhile.
func TestCacheHoldsWhatItSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pool := newPacketPool()
		cache := packetCache{ring: make([]*Packet, 16)}
		live := make(map[*Packet]bool)
		sequence := uint32(1 << 16)
		now := epoch
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			now = now.Add(1)
			sequence = uint32(int(sequence) + rapid.IntRange(-20, 25).Draw(t, "step"))
			p, ok := pool.Get().(*Packet)
			if !ok || live[p] && p.references > 0 {
				t.Fatal("the pool gave out a packet that is held")
			}
			p.references, p.sequence, p.arrived = 1, sequence, now
			live[p] = true
			if cache.put(p) && cache.get(sequence) != p {
				t.Fatal("put and not there")
			}
			p.Release()
			if rapid.IntRange(0, 9).Draw(t, "expire") == 0 {
				cache.expire(now.Add(-10))
			}
			held := 0
			for _, q := range cache.ring {
				if q == nil {
					continue
				}
				held++
				if q.references != 1 || q.sequence > cache.highest || q.sequence < cache.oldest {
					t.Fatal("held wrongly:", q.references, q.sequence, cache.oldest, cache.highest)
				}
			}
			for q := range live {
				if q.references > 0 {
					held--
				}
			}
			if held != 0 {
				t.Fatal("a packet leaked")
			}
		}
		cache.clear()
		for q := range live {
			if q.references != 0 {
				t.Fatal("a packet leaked")
			}
		}
	})
}

// FuzzFormat: what a client writes into a=fmtp is read without a panic, and parameters of no concern make no other format.
func FuzzFormat(f *testing.F) {
	f.Add("packetization-mode=1;profile-level-id=42e01f", "profile-level-id=42001f;packetization-mode=1")
	f.Add("profile-level-id=4", "profile-level-id=;;=;packetization-mode")
	f.Fuzz(func(t *testing.T, a, b string) {
		one := Codec{MimeType: "video/H264", Fmtp: a}
		more := Codec{MimeType: "VIDEO/h264", Fmtp: a + ";max-fs=" + strings.ReplaceAll(b, ";", "")}
		if format(one) != format(more) {
			t.Fatalf("%q is %q, %q is %q", one.Fmtp, format(one), more.Fmtp, format(more))
		}
	})
}

// FuzzSenderReport: whatever clocks a client has, the slot that shows it moves forward in time.
func FuzzSenderReport(f *testing.F) {
	f.Add(ntpTime(epoch), uint32(0), uint32(3000))
	f.Add(uint64(0), ^uint32(0), uint32(1)<<31)
	f.Add(^uint64(0), uint32(1)<<31, uint32(0))
	f.Fuzz(func(t *testing.T, ntp uint64, at, timestamp uint32) {
		clock, layer := peerClock{}, layerClock{rate: 90000}
		for i := range 3 {
			now := epoch.Add(time.Duration(i) * time.Second)
			theirs := fromNTPTime(ntp + uint64(i)<<32)
			clock.observe(theirs, now)
			layer.report(theirs.Add(clock.offset), at)
			if s := layer.sampled(layer.timestamp(now)); s.Sub(now).Abs() > time.Millisecond && s.Sub(now).Abs() < 12*time.Hour {
				t.Fatalf("sampled at %v, want %v", s, now)
			}
			_ = layer.sampled(timestamp)
		}
	})
}
