package offer

import (
	"runtime"
	"strings"
	"testing"
)

// FuzzCost: the reading and answering of an offer allocates in proportion to its bytes, whatever they say.
func FuzzCost(f *testing.F) {
	f.Add(plainOffer)
	f.Add(video("96 97 98", "a=rtpmap:96 VP8/90000", "a=rtpmap:97 rtx/90000", "a=fmtp:97 apt=96", "a=rtcp-fb:* nack pli", "a=extmap:3/sendonly "+uriRID,
		"a=rid:q send", "a=rid:h send", "a=simulcast:send q;~h", "a=ssrc-group:FID 1 2", "a=ssrc:1 cname:x"))
	const fixed, perByte = 64 << 10, 200
	limits := Limits{SDPBytes: 192 << 10, SlotsPerPeer: 64}
	f.Fuzz(func(t *testing.T, text string) {
		// A short text repeated is what an attacker would send.
		if len(text) > 0 && len(text) < 2000 {
			text += strings.Repeat(text[len(text)/2:], 16)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if o, err := Read(text, limits); err == nil {
			_ = o.Answer(answerTo(o))
		}
		runtime.ReadMemStats(&after)
		if cost := after.TotalAlloc - before.TotalAlloc; cost > fixed+perByte*uint64(len(text)) {
			t.Fatalf("%d bytes of offer cost %d bytes of memory", len(text), cost)
		}
	})
}
