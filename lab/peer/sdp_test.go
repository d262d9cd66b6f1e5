package peer

import (
	"os"
	"testing"
)

const anAnswer = "../../sfu/offer/testdata/chromium.answer.sdp"

func TestReadAnswer(t *testing.T) {
	text, err := os.ReadFile(anAnswer)
	if err != nil {
		t.Fatal(err)
	}
	a, err := readAnswer(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if a.user != (user{"hold", "fast-fast-fast-fast-fast"}) || len(a.candidates) != 2 || a.candidates[1].at.String() != "203.0.113.7:7000" || a.fingerprint[1] != 0x22 {
		t.Errorf("the node is read as %+v", a)
	}
	for ssrc, want := range map[uint32]slotStream{
		1003: {mid: "3", audio: true}, 1024: {mid: "24"}, 2024: {mid: "24", repairs: 1024},
	} {
		if got := a.streams[ssrc]; got != want {
			t.Errorf("SSRC %d is %+v, want %+v", ssrc, got, want)
		}
	}
}

func FuzzReadAnswer(f *testing.F) {
	text, err := os.ReadFile(anAnswer)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	f.Add("m=audio\na=ssrc:\na=ssrc-group:FID 1\na=candidate:1 1 udp 1 :: 70000 typ host\na=fingerprint:sha-256 1")
	f.Fuzz(func(t *testing.T, text string) {
		a, err := readAnswer(text)
		if (a == nil) != (err != nil) {
			t.Fatalf("%v, %v", a, err)
		}
		if a != nil && (len(a.candidates) > maxCandidates || len(a.streams) > maxSlotStreams) {
			t.Fatalf("%d candidates, %d streams", len(a.candidates), len(a.streams))
		}
	})
}
