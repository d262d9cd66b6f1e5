package offer

import (
	"strings"
	"testing"
	"time"
)

// hostileOffers are of 256 KiB each, of the things that could cost most.
func hostileOffers() map[string]string {
	fill := func(head, unit, tail string) string {
		return head + strings.Repeat(unit, (256<<10-len(head)-len(tail))/len(unit)) + tail
	}
	h264 := "\r\na=rtpmap:96 H264/90000\r\na=fmtp:96 " + strings.Repeat("x=y;", 32<<10) + "\r\n"
	rid := video("96", "a=rid:q send", "a=simulcast:send q")
	line, rest, _ := strings.Cut(video("96"), " 96\r\na=mid:1")
	beforeGroup, afterGroup, _ := strings.Cut(plainOffer, " 0 1")
	return map[string]string{
		"attributes": fill(plainOffer, "a=x\r\n", ""),
		"rtpmaps":    fill(plainOffer, "a=rtpmap:96 VP8/90000\r\n", ""),
		"formats":    fill(line, " 96", h264+"a=mid:1"+rest),
		"ssrcs":      fill(video("96"), "a=ssrc:1234 cname:x\r\n", ""),
		"groups":     fill(video("96"), "a=ssrc-group:FID 1 2\r\n", ""),
		"rids":       fill(video("96"), "a=rid:q send\r\n", ""),
		"simulcast":  fill(strings.TrimRight(rid, "\r\n"), ";~q", "\r\n"),
		"BUNDLE":     fill(beforeGroup, " 0", " 1"+afterGroup),
		"extensions": fill(video("96"), "a=extmap:3 "+uriRID+"\r\n", ""),
		"m-lines":    fill(plainOffer, "m=audio 0 UDP/TLS/RTP/SAVPF 0\r\n", ""),
	}
}

// TestHostileOffersEnd fails where the cost of reading is not linear: then one of these takes minutes.
func TestHostileOffersEnd(t *testing.T) {
	for name, text := range hostileOffers() {
		began := time.Now()
		_, err := Read(text, plenty())
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s: %v for %d bytes", name, took, len(text))
		}
		if (err != nil) != (name == "m-lines") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// BenchmarkHostile is what the longest offers cost, whether they are answered or not.
func BenchmarkHostile(b *testing.B) {
	for name, text := range hostileOffers() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if o, err := Read(text, plenty()); err == nil {
					_ = o.Answer(answerTo(o))
				}
			}
		})
	}
}

// BenchmarkAnswer is what a real offer with 22 slots costs.
func BenchmarkAnswer(b *testing.B) {
	for _, name := range []string{"chromium", "firefox"} {
		b.Run(name, func(b *testing.B) {
			text := golden(b, name+".offer.sdp")
			a := answerTo(mustRead(b, text))
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				o, err := Read(text, plenty())
				if err != nil {
					b.Fatal(err)
				}
				_ = o.Answer(a)
			}
		})
	}
}
