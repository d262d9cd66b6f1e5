package egress

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

const (
	// maxSegments and maxSegmentedBytes bound what the kernel cuts up in one
	// go: UDP_MAX_SEGMENTS was 64 until Linux 6.9, and an IP packet holds 65535 bytes.
	maxSegments       = 64
	maxSegmentedBytes = 65000
	// maxAddresses bounds the addresses that are kept ready; past it they are
	// made anew.
	maxAddresses = 4096
)

// batchSender sends batches with sendmmsg. It is used by one goroutine at a time.
type batchSender struct {
	conn     *net.UDPConn
	messages *ipv4.PacketConn // its WriteBatch asks nothing of the address family
	counters *counters
	segment  bool

	batch     []ipv4.Message
	packets   []int    // how many packets each message holds
	buffers   [][]byte // the messages' buffers, one after the other
	control   []byte   // the messages' control messages, likewise
	addresses map[netip.AddrPort]*net.UDPAddr
}

func newBatchSender(conn *net.UDPConn, counters *counters, segment bool) *batchSender {
	return &batchSender{
		conn: conn, messages: ipv4.NewPacketConn(conn), counters: counters, segment: segment && segments(conn),
		batch: make([]ipv4.Message, 0, batchPackets), packets: make([]int, 0, batchPackets),
		buffers: make([][]byte, 0, batchPackets),
		// Only messages of two packets and more have a control message.
		control:   make([]byte, 0, batchPackets/2*unix.CmsgSpace(2)),
		addresses: make(map[netip.AddrPort]*net.UDPAddr),
	}
}

// segments reports whether the kernel knows UDP_SEGMENT.
func segments(conn *net.UDPConn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	known := false
	err = raw.Control(func(fd uintptr) {
		_, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_SEGMENT)
		known = err == nil
	})
	return err == nil && known
}

// send sends a batch, destination by destination.
func (s *batchSender) send(b *batch) {
	s.batch, s.packets, s.buffers, s.control = s.batch[:0], s.packets[:0], s.buffers[:0], s.control[:0]
	for i := range b.flows {
		s.addFlow(b, &b.flows[i])
	}
	for sent := 0; sent < len(s.batch); {
		n, err := s.messages.WriteBatch(s.batch[sent:], 0)
		s.counters.calls.Add(1)
		for i := range max(n, 0) {
			s.delivered(sent + i)
		}
		sent += max(n, 0)
		if err != nil || n <= 0 {
			// The first message that was not sent is the one that was refused.
			s.refused(sent, err)
			sent++
		}
	}
}

// addFlow makes messages of one destination's packets: of each run of packets
// of one size, the last of which may be shorter, where the kernel cuts them up,
// else of each packet.
func (s *batchSender) addFlow(b *batch, f *flow) {
	to := s.address(f.to)
	for i, more := f.first, true; more; {
		start := len(s.buffers)
		first := b.payload(i)
		total := 0
		for more {
			payload := b.payload(i)
			run := len(s.buffers) - start
			if run > 0 && (!s.segment || len(payload) > len(first) || run == maxSegments || total+len(payload) > maxSegmentedBytes) {
				break
			}
			s.buffers = append(s.buffers, payload)
			total += len(payload)
			i = b.packets[i].next
			more = i != 0
			if len(payload) < len(first) {
				break
			}
		}
		message := ipv4.Message{Buffers: s.buffers[start:len(s.buffers):len(s.buffers)], Addr: to}
		if len(message.Buffers) > 1 {
			message.OOB = s.segmentSize(len(first))
		}
		s.batch = append(s.batch, message)
		s.packets = append(s.packets, len(message.Buffers))
	}
}

// segmentSize makes the control message that says how long each packet is.
func (s *batchSender) segmentSize(size int) []byte {
	start := len(s.control)
	s.control = s.control[:start+unix.CmsgSpace(2)]
	b := s.control[start:]
	clear(b)
	// struct cmsghdr: its length (a size_t, so the header's size less two
	// 32-bit numbers), level and type, all in the byte order of the machine.
	length := unix.SizeofCmsghdr - 8
	if length == 8 {
		binary.NativeEndian.PutUint64(b, uint64(unix.CmsgLen(2)))
	} else {
		binary.NativeEndian.PutUint32(b, uint32(unix.CmsgLen(2)))
	}
	binary.NativeEndian.PutUint32(b[length:], unix.IPPROTO_UDP)
	binary.NativeEndian.PutUint32(b[length+4:], unix.UDP_SEGMENT)
	binary.NativeEndian.PutUint16(b[unix.CmsgLen(0):], uint16(size))
	return b
}

func (s *batchSender) address(to netip.AddrPort) *net.UDPAddr {
	a := s.addresses[to]
	if a == nil {
		if len(s.addresses) == maxAddresses {
			clear(s.addresses)
		}
		a = net.UDPAddrFromAddrPort(to)
		s.addresses[to] = a
	}
	return a
}

func (s *batchSender) delivered(message int) {
	s.counters.packets.Add(uint64(s.packets[message]))
	for _, b := range s.batch[message].Buffers {
		s.counters.bytes.Add(uint64(len(b)))
	}
}

// refused deals with a message that the kernel did not take. One that it was to
// cut up is sent packet by packet; EIO means that it cannot cut at all here (no
// checksum offload on the way out), and is not asked again.
func (s *batchSender) refused(message int, err error) {
	m := &s.batch[message]
	if len(m.OOB) == 0 {
		s.counters.errors.Add(1)
		s.counters.refused.Add(1)
		return
	}
	if errors.Is(err, unix.EIO) {
		s.segment = false
	}
	to, ok := m.Addr.(*net.UDPAddr)
	if !ok {
		return
	}
	for _, b := range m.Buffers {
		n, err := s.conn.WriteToUDPAddrPort(b, to.AddrPort())
		s.counters.countGathered(n, err)
	}
}
