package sfu

import (
	"bytes"
	"testing"

	"github.com/pion/interceptor"
	"github.com/pion/rtp"
	"github.com/pion/sdp/v3"

	"github.com/holdfast-rtc/holdfast/control"
)

// readerOf gives the same packet again and again.
func readerOf(t *testing.T, packet *rtp.Packet) interceptor.RTPReader {
	t.Helper()
	raw, err := packet.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return interceptor.RTPReaderFunc(func(b []byte, a interceptor.Attributes) (int, interceptor.Attributes, error) {
		return copy(b, raw), a, nil
	})
}

func TestHandoverNamesTheStreamsTheClientNamed(t *testing.T) {
	h := newHandover()
	h.learn([]*control.Sender{
		{Mid: "1", Rid: "h", Ssrc: 11, RtxSsrc: 12},
		{Mid: "0", Ssrc: 13},
		{Mid: "1", Rid: "q"},
	})
	extensions := []interceptor.RTPHeaderExtension{
		{URI: sdp.SDESMidURI, ID: 4}, {URI: sdp.SDESRTPStreamIDURI, ID: 10}, {URI: sdp.SDESRepairRTPStreamIDURI, ID: 11},
	}
	for _, c := range []struct {
		ssrc           uint32
		mid, rid, rrid string
	}{
		{11, "1", "h", ""}, {12, "1", "", "h"}, {13, "", "", ""}, {99, "", "", ""},
	} {
		packet := &rtp.Packet{Header: rtp.Header{Version: 2, SSRC: c.ssrc, SequenceNumber: 7, Marker: true}, Payload: []byte("frame")}
		reader := h.BindRemoteStream(&interceptor.StreamInfo{SSRC: c.ssrc, RTPHeaderExtensions: extensions}, readerOf(t, packet))
		got := readPacket(t, reader)
		for id, want := range map[uint8]string{4: c.mid, 10: c.rid, 11: c.rrid} {
			if ext := string(got.GetExtension(id)); ext != want {
				t.Errorf("SSRC %d: extension %d is %q, want %q", c.ssrc, id, ext, want)
			}
		}
		if !bytes.Equal(got.Payload, packet.Payload) || got.SequenceNumber != 7 || !got.Marker {
			t.Errorf("SSRC %d: the packet changed: %v", c.ssrc, got)
		}
	}
}

func TestHandoverStopsAfterTheFirstPackets(t *testing.T) {
	h := newHandover()
	h.learn([]*control.Sender{{Mid: "1", Rid: "h", Ssrc: 11}})
	info := &interceptor.StreamInfo{SSRC: 11, RTPHeaderExtensions: []interceptor.RTPHeaderExtension{{URI: sdp.SDESMidURI, ID: 4}}}
	reader := h.BindRemoteStream(info, readerOf(t, &rtp.Packet{Header: rtp.Header{Version: 2, SSRC: 11}, Payload: []byte{1}}))
	for range handoverPackets {
		if got := readPacket(t, reader); string(got.GetExtension(4)) != "1" {
			t.Fatal("one of the first packets is not named")
		}
	}
	if got := readPacket(t, reader); got.Extension {
		t.Fatal("a later packet is still named")
	}
}

func TestHandoverLeavesWhatItCannotName(t *testing.T) {
	r := &namingReader{left: 1, extensions: []rtpExtension{{id: 4, value: []byte("1")}}}
	garbage := []byte{0x80, 1, 2}
	if n := r.name(garbage, len(garbage)); n != len(garbage) {
		t.Errorf("garbage became %d bytes", n)
	}
	raw, err := (&rtp.Packet{Header: rtp.Header{Version: 2}, Payload: []byte("full")}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if n := r.name(raw, len(raw)); n != len(raw) {
		t.Errorf("a packet that fills its buffer became %d bytes, want %d", n, len(raw))
	}
}

func readPacket(t *testing.T, reader interceptor.RTPReader) *rtp.Packet {
	t.Helper()
	b := make([]byte, 1460)
	n, _, err := reader.Read(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	var packet rtp.Packet
	if err := packet.Unmarshal(b[:n]); err != nil {
		t.Fatal(err)
	}
	return &packet
}

func FuzzHandover(f *testing.F) {
	f.Add([]byte{0x90, 96, 0, 1, 0, 0, 0, 1, 0, 0, 0, 11, 0xBE, 0xDE, 0, 1, 0x40, '1', 0, 0, 9})
	f.Fuzz(func(t *testing.T, raw []byte) {
		r := &namingReader{left: 1, extensions: []rtpExtension{{id: 4, value: []byte("1")}, {id: 11, value: []byte("h")}}}
		b := make([]byte, 1460)
		n := copy(b, raw)
		if got := r.name(b, n); got < n && got < len(raw) && got == 0 && n > 0 {
			t.Fatalf("%d bytes became %d", n, got)
		}
	})
}
