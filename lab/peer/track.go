package peer

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/holdfast-rtc/holdfast/lab/portrait"
)

const (
	microphoneMid = "0"
	cameraMid     = "1"

	// keptPackets can be resent: 0.7 s of the largest layer.
	keptPackets    = 128
	firstReport    = 50 * time.Millisecond // while nothing was sent
	reportInterval = time.Second           // of sender reports
)

// track is one sent encoding. It outlives its connections: none, one, or two during a live move.
type track struct {
	audio bool
	codec portrait.Codec // of a picture
	rid   string         // empty without simulcast

	bound atomic.Pointer[sendStream]
	left  atomic.Pointer[sendStream] // on the connection that a live move is leaving

	wantKeyframe atomic.Bool
	asked        asked
	packets      atomic.Uint64
	bytes        atomic.Uint64 // of RTP, headers included
}

// write reports whether any connection took the packet.
func (t *track) write(timestamp uint32, marker bool, level uint8, payload []byte) bool {
	size := 0
	for _, s := range []*sendStream{t.left.Load(), t.bound.Load()} {
		if s != nil {
			size = max(size, s.send(timestamp, marker, level, payload))
		}
	}
	if size == 0 {
		return false
	}
	t.packets.Add(1)
	t.bytes.Add(uint64(size))
	return true
}

// sendStream is a track on one connection. outbound.mu guards its fields.
type sendStream struct {
	*track

	out           *outbound
	cname         string
	ssrc, rtxSSRC uint32
	number        uint16
	rtxNumber     uint16
	packet        rtp.Packet // reused
	level         [1]byte

	sent           [keptPackets][]byte // by number; empty for audio
	packets, bytes uint32
	lastTimestamp  uint32
	lastAt         time.Time
}

func newSendStream(c *connection, t *track) *sendStream {
	return &sendStream{
		track: t, out: &c.out, cname: c.cname,
		ssrc: rand.Uint32() | 1, rtxSSRC: rand.Uint32() | 1, number: uint16(rand.Uint32() >> 17), rtxNumber: uint16(rand.Uint32()),
	}
}

func (s *sendStream) bind() { s.left.Store(s.bound.Swap(s)) }

func (s *sendStream) unbind() {
	s.bound.CompareAndSwap(s, nil)
	s.left.CompareAndSwap(s, nil)
}

func (s *sendStream) header(ssrc uint32, payload uint8, number uint16) rtp.Header {
	return rtp.Header{Version: 2, SSRC: ssrc, PayloadType: payload, SequenceNumber: number}
}

// send returns the packet's size, 0 if it was not sent.
func (s *sendStream) send(timestamp uint32, marker bool, level uint8, payload []byte) int {
	s.out.mu.Lock()
	defer s.out.mu.Unlock()
	if s.packet.SSRC == 0 {
		s.packet.Header = s.firstHeader()
	}
	h := &s.packet.Header
	h.SequenceNumber, h.Timestamp, h.Marker, s.level[0] = s.number, timestamp, marker, level
	s.packet.Payload = payload
	if !s.out.rtp(&s.packet) {
		return 0
	}
	if !s.audio {
		kept := &s.sent[s.number%keptPackets]
		*kept = append((*kept)[:0], s.out.plain...)
	}
	s.number++
	s.packets, s.bytes = s.packets+1, s.bytes+uint32(len(payload))
	s.lastTimestamp, s.lastAt = timestamp, time.Now()
	return len(s.out.plain)
}

func (s *sendStream) firstHeader() rtp.Header {
	h := s.header(s.ssrc, videoTypes(s.codec).media, s.number)
	if s.audio {
		h.PayloadType = opusType
		_ = h.SetExtension(levelID, s.level[:]) // always fits
	}
	if s.rid != "" {
		_ = h.SetExtension(midID, []byte(cameraMid))
		_ = h.SetExtension(ridID, []byte(s.rid))
	}
	return h
}

// again resends a packet (RFC 4588), if it is still kept.
func (s *sendStream) again(number uint16) {
	s.out.mu.Lock()
	defer s.out.mu.Unlock()
	var lost rtp.Packet
	if s.audio || lost.Unmarshal(s.sent[number%keptPackets]) != nil || lost.SequenceNumber != number {
		return
	}
	h := s.header(s.rtxSSRC, videoTypes(s.codec).repair, s.rtxNumber)
	h.Timestamp, h.Marker = lost.Timestamp, lost.Marker
	if s.rid != "" {
		_ = h.SetExtension(midID, []byte(cameraMid))
		_ = h.SetExtension(repairedRIDID, []byte(s.rid))
	}
	if s.out.rtp(&rtp.Packet{Header: h, Payload: append(binary.BigEndian.AppendUint16(nil, number), lost.Payload...)}) {
		s.rtxNumber++
	}
}

// RFC 3550 section 6.4.1; nil while nothing was sent.
func (s *sendStream) report(now time.Time) *rtcp.SenderReport {
	s.out.mu.Lock()
	defer s.out.mu.Unlock()
	if s.packets == 0 {
		return nil
	}
	rate := clockRate(s.audio)
	return &rtcp.SenderReport{
		SSRC: s.ssrc, NTPTime: ntp(now), RTPTime: s.lastTimestamp + uint32(now.Sub(s.lastAt)*time.Duration(rate)/time.Second),
		PacketCount: s.packets, OctetCount: s.bytes,
	}
}

// RFC 5905 section 6.
func ntp(t time.Time) uint64 {
	const since1900 = 2208988800
	return uint64(t.Unix()+since1900)<<32 | uint64(t.Nanosecond())<<32/1e9
}

// reportSent returns the pause until the next report.
func (c *connection) reportSent(now time.Time) time.Duration {
	var reports []rtcp.Packet
	for _, s := range c.sends() {
		if report := s.report(now); report != nil {
			reports = append(reports, report)
		}
	}
	if len(reports) == 0 {
		return firstReport
	}
	c.out.report(append(reports, rtcp.NewCNAMESourceDescription(c.microphone.ssrc, c.cname)))
	return reportInterval
}

// asked counts the requests of keyframes of one layer. Two connections may be asked at once.
type asked struct {
	mu    sync.Mutex // guards the fields below
	since time.Time
	count int // in the second that began at since
	most  int // in one second
}

func (a *asked) once(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Sub(a.since) >= time.Second {
		a.since, a.count = now, 0
	}
	a.count++
	a.most = max(a.most, a.count)
}

func (a *asked) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.most = 0
}

func (a *asked) mostInASecond() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.most
}
