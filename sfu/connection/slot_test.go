package connection

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/control"
)

// renegotiation is a connection whose offers have so many slots.
type renegotiation struct {
	t     *testing.T
	c     *Connection
	slots int
}

// Answer returns the SSRCs of the slots and of their retransmissions, slot by slot.
func (r *renegotiation) answer(direction string, unused ...*control.UnusedSlot) []string {
	r.t.Helper()
	mids, lines := "", ""
	for i := range r.slots {
		mid := fmt.Sprint(2 + i)
		mids += " " + mid
		line := strings.Replace(slotLine(mid, direction), "RTP/SAVPF 96", "RTP/SAVPF 96 97", 1)
		lines += line + "a=rtpmap:97 rtx/90000\r\na=fmtp:97 apt=96\r\n"
	}
	text := strings.Replace(publishing, "BUNDLE 0 1", "BUNDLE 0 1"+mids, 1) + lines
	o := read(r.t, text)
	if r.c == nil {
		r.c = open(r.t, o)
	}
	sdp, err := r.c.Answer(&control.Offer{Id: "1", Sdp: text, Unused: unused}, o)
	if err != nil {
		r.t.Fatal(err)
	}
	var given []string
	for _, group := range regexp.MustCompile(`a=ssrc-group:FID (\d+) (\d+)`).FindAllStringSubmatch(sdp, -1) {
		given = append(given, group[1:]...)
	}
	return given
}

// named is the first slot as the client remembers it.
func named(t *testing.T, given []string) *control.UnusedSlot {
	t.Helper()
	slot := &control.UnusedSlot{Mid: "2"}
	if _, err := fmt.Sscan(given[0]+" "+given[1], &slot.Ssrc, &slot.RtxSsrc); err != nil {
		t.Fatal(err)
	}
	return slot
}

// TestAnSSRCIsGivenOnce: another slot's numbers begin anew, and would seal two packets with one nonce.
func TestAnSSRCIsGivenOnce(t *testing.T) {
	r := &renegotiation{t: t, slots: 1}
	first := r.answer("recvonly")
	if again := r.answer("inactive"); len(first) != 2 || len(again) != 0 {
		t.Fatalf("an active slot has %v, an inactive one %v", first, again)
	}
	third := r.answer("recvonly", named(t, first))
	if len(third) != 2 || third[0] == first[0] || third[1] == first[1] {
		t.Errorf("a slot has %v, which a former one had", third)
	}
}

// TestSSRCsOfFormerSlotsAreBounded: what is no longer remembered is not given at a client's word either.
func TestSSRCsOfFormerSlotsAreBounded(t *testing.T) {
	r := &renegotiation{t: t, slots: 30}
	var last *control.UnusedSlot
	for range maxSSRCs/(2*r.slots) + 2 {
		last = named(t, r.answer("recvonly"))
		r.answer("inactive")
	}
	if n := len(r.c.bySSRC); n > maxSSRCs {
		t.Errorf("%d SSRCs are remembered, want %d at most", n, maxSSRCs)
	}
	if again := named(t, r.answer("recvonly", last)); again.GetSsrc() == last.GetSsrc() || again.GetRtxSsrc() == last.GetRtxSsrc() {
		t.Errorf("a slot has %v, which a former one had", again)
	}
}
