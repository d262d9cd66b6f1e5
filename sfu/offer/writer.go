package offer

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

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

// Type preferences of host candidates (RFC 8445 section 5.1.2.2): TCP below direct UDP, above a relay.
const (
	preferUDP = 126
	preferTCP = 90
)

// Direction preference of a passive TCP candidate (RFC 6544 section 4.2).
const passive = 4 << 13

func (w *writer) candidates(list []netip.AddrPort, a *Answer) {
	for i, candidate := range append(slices.Clone(a.Standby), list...) {
		priority := priorityOf(preferUDP, max(65535-i, 0))
		if a.First != 0 {
			priority = uint64(a.First) - uint64(i)
		}
		w.candidate(i+1, "udp", priority, candidate)
		w.put("\r\n")
	}
	for i, candidate := range list {
		if a.TCPPort == 0 {
			break
		}
		w.candidate(len(a.Standby)+len(list)+i+1, "tcp", priorityOf(preferTCP, passive+max(8191-i, 0)), netip.AddrPortFrom(candidate.Addr(), a.TCPPort))
		w.put(" tcptype passive\r\n")
	}
	w.put("a=end-of-candidates\r\n")
}

// priorityOf is RFC 8445 section 5.1.2.1.
func priorityOf(kind, local int) uint64 { return uint64(kind)<<24 | uint64(local)<<8 | 255 }

// candidate omits the line's end.
func (w *writer) candidate(number int, protocol string, priority uint64, at netip.AddrPort) {
	var text [64]byte
	w.put("a=candidate:").number(uint64(number)).put(" 1 ", protocol, " ").number(priority).put(" ")
	w.Write(at.Addr().Unmap().WithZone("").AppendTo(text[:0]))
	w.put(" ").number(uint64(at.Port())).put(" typ host")
}
