package offer

import (
	"net/netip"
	"strconv"
	"strings"
)

// writer builds an SDP text.
type writer struct {
	strings.Builder
}

func (w *writer) put(parts ...string) *writer {
	for _, part := range parts {
		w.WriteString(part)
	}
	return w
}

func (w *writer) number(n uint64) *writer {
	var digits [20]byte
	w.Write(strconv.AppendUint(digits[:0], n, 10))
	return w
}

// codec writes a codec and its retransmissions.
func (w *writer) codec(c *Codec) {
	payload := uint64(c.PayloadType)
	w.put("a=rtpmap:").number(payload).put(" ", c.Name, "/").number(uint64(c.ClockRate))
	if c.Channels != 0 {
		w.put("/").number(uint64(c.Channels))
	}
	w.put("\r\n")
	if c.Fmtp != "" {
		w.put("a=fmtp:").number(payload).put(" ", c.Fmtp, "\r\n")
	}
	for kind := googREMB; kind <= nackPLI; kind <<= 1 {
		if c.feedback&kind != 0 {
			w.put("a=rtcp-fb:").number(payload).put(" ", kind.String(), "\r\n")
		}
	}
	if rtx := uint64(c.RTXPayloadType); rtx != 0 {
		w.put("a=rtpmap:").number(rtx).put(" rtx/").number(uint64(c.ClockRate)).put("\r\n")
		w.put("a=fmtp:").number(rtx).put(" apt=").number(payload).put("\r\n")
	}
}

// candidates writes host candidates with the priorities of RFC 8445 section 5.1.2.1: type 126, component 1.
func (w *writer) candidates(list []netip.AddrPort) {
	for i, candidate := range list {
		priority := uint64(126)<<24 | uint64(max(65535-i, 0))<<8 | 255
		address := candidate.Addr().Unmap().WithZone("")
		var text [64]byte
		w.put("a=candidate:").number(uint64(i + 1)).put(" 1 udp ").number(priority).put(" ")
		w.Write(address.AppendTo(text[:0]))
		w.put(" ").number(uint64(candidate.Port())).put(" typ host\r\n")
	}
	w.put("a=end-of-candidates\r\n")
}
