package egress

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// UDP_MAX_SEGMENTS was 64 until Linux 6.9, and an IP packet holds 65535 bytes.
	maxSegments       = 64
	maxSegmentedBytes = 65000

	// fewMessages do not keep a thread for long.
	fewMessages = 4
)

// sender uses sendmmsg: datagrams take no lock on the socket.
type sender struct {
	conn     *net.UDPConn
	raw      syscall.RawConn
	counters *counters
	ipv6     bool // IPv4 addresses are mapped
	segment  atomic.Bool
}

func (s *sender) open(conn *net.UDPConn, counters *counters, segment bool) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	s.conn, s.raw, s.counters = conn, raw, counters
	var family int
	var unknown error
	err = raw.Control(func(fd uintptr) {
		family, unknown = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_DOMAIN)
		_, refused := unix.GetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_SEGMENT)
		s.segment.Store(segment && refused == nil)
	})
	s.ipv6 = family == unix.AF_INET6
	return err == nil && unknown == nil
}

// outbox is what the kernel is given. Its slices must not grow, because their elements point at each other.
type outbox struct {
	messages []unix.Mmsghdr
	runs     []run
	vectors  []unix.Iovec
	// names are addresses of both families; IPv4 addresses fit.
	names   []unix.RawSockaddrInet6
	control []byte
	sent    int

	try   func(fd uintptr)
	retry func(fd uintptr) bool // false while the socket's buffer is full
	taken int
	errno syscall.Errno
}

type run struct {
	flow, first    int
	packets, bytes int
}

func newOutbox() *outbox {
	o := &outbox{
		messages: make([]unix.Mmsghdr, 0, batchPackets),
		runs:     make([]run, 0, batchPackets),
		vectors:  make([]unix.Iovec, 0, batchPackets),
		names:    make([]unix.RawSockaddrInet6, 0, batchPackets),
		control:  make([]byte, 0, batchPackets/2*unix.CmsgSpace(2)),
	}
	o.try = o.call
	o.retry = func(fd uintptr) bool { o.call(fd); return o.errno != unix.EAGAIN }
	return o
}

// letter is one packet that is sent at once. It is used for one packet after the other, so that none allocates.
type letter struct {
	bytes  []byte
	name   unix.RawSockaddrInet6 // of either family
	length uint32
	post   func(fd uintptr)
	errno  syscall.Errno
}

func newLetter() *letter {
	l := &letter{}
	l.post = func(fd uintptr) {
		for l.errno = unix.EINTR; l.errno == unix.EINTR; {
			// The call cannot block, and is raw like that of receiver.call.
			_, _, l.errno = unix.RawSyscall6(unix.SYS_SENDTO, fd, uintptr(unsafe.Pointer(unsafe.SliceData(l.bytes))), uintptr(len(l.bytes)),
				unix.MSG_DONTWAIT, uintptr(unsafe.Pointer(&l.name)), uintptr(l.length))
		}
	}
	return l
}

// sendNow sends one packet, and never waits.
func (s *sender) sendNow(l *letter, b []byte, to netip.AddrPort) error {
	l.bytes, l.length = b, putName(&l.name, to, s.ipv6)
	err := s.raw.Control(l.post)
	l.bytes = nil
	if err == nil && l.errno != 0 {
		return l.errno
	}
	return err
}

func (s *sender) send(q *queue) {
	o := q.outbox
	o.messages, o.runs, o.vectors, o.names, o.control = o.messages[:0], o.runs[:0], o.vectors[:0], o.names[:0], o.control[:0]
	o.sent = 0
	for i := range q.flows {
		if q.flows[i].to.Stream == nil {
			s.addFlow(q, i)
		}
	}
	for o.sent < len(o.messages) {
		// Write would wait for other goroutines that are sending.
		err := s.raw.Control(o.try)
		if err == nil && o.errno == unix.EAGAIN {
			err = s.raw.Write(o.retry)
		}
		if err == nil {
			s.settle(q)
			continue
		}
		for ; o.sent < len(o.messages); o.sent++ { // the socket is closed
			n := uint64(o.runs[o.sent].packets)
			s.counters.errors.Add(n)
			s.counters.refused.Add(n)
		}
	}
}

// call gives the kernel what is left. It cannot block. A few messages are sent by a raw call: see receiver.call.
func (o *outbox) call(fd uintptr) {
	left := uintptr(len(o.messages) - o.sent)
	var n uintptr
	if left <= fewMessages {
		n, _, o.errno = unix.RawSyscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&o.messages[o.sent])), left, 0, 0, 0)
	} else {
		n, _, o.errno = unix.Syscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&o.messages[o.sent])), left, 0, 0, 0)
	}
	o.taken = int(n)
}

func (s *sender) settle(q *queue) {
	o := q.outbox
	s.counters.calls.Add(1)
	switch o.errno {
	case 0:
		s.delivered(o.runs[o.sent : o.sent+o.taken])
		o.sent += o.taken
	case unix.EINTR:
	default:
		s.refused(q, o.sent, o.errno)
		o.sent++
	}
}

// addFlow makes a message of each run of packets of one size.
func (s *sender) addFlow(q *queue, index int) {
	o, f := q.outbox, &q.flows[index]
	name := o.name(f.to.AddrPort, s.ipv6)
	segment := s.segment.Load()
	for i, more := f.first, true; more; {
		r := run{flow: index, first: i}
		vector := len(o.vectors)
		size := len(q.payload(i))
		for more {
			payload := q.payload(i)
			if r.packets > 0 && (!segment || len(payload) > size || r.packets == maxSegments || r.bytes+len(payload) > maxSegmentedBytes) {
				break
			}
			o.addPayload(payload, vector)
			r.packets++
			r.bytes += len(payload)
			i = q.packets[i].next
			more = i != 0
			if len(payload) < size {
				break
			}
		}
		var message unix.Mmsghdr
		message.Hdr.Name, message.Hdr.Namelen = (*byte)(unsafe.Pointer(name)), unix.SizeofSockaddrInet6
		if name.Family == unix.AF_INET {
			message.Hdr.Namelen = unix.SizeofSockaddrInet4
		}
		message.Hdr.Iov = &o.vectors[vector]
		message.Hdr.SetIovlen(len(o.vectors) - vector)
		if r.packets > 1 {
			control := o.segmentSize(size)
			message.Hdr.Control = &control[0]
			message.Hdr.SetControllen(len(control))
		}
		o.messages = append(o.messages, message)
		o.runs = append(o.runs, r)
	}
}

// addPayload joins packets that adjoin in memory.
func (o *outbox) addPayload(payload []byte, begin int) {
	base := unsafe.SliceData(payload)
	if last := len(o.vectors) - 1; last >= begin {
		if v := &o.vectors[last]; unsafe.Add(unsafe.Pointer(v.Base), v.Len) == unsafe.Pointer(base) {
			v.SetLen(int(v.Len) + len(payload))
			return
		}
	}
	o.vectors = append(o.vectors, unix.Iovec{Base: base})
	o.vectors[len(o.vectors)-1].SetLen(len(payload))
}

func (o *outbox) name(to netip.AddrPort, ipv6 bool) *unix.RawSockaddrInet6 {
	o.names = append(o.names, unix.RawSockaddrInet6{})
	name := &o.names[len(o.names)-1]
	putName(name, to, ipv6)
	return name
}

// putName writes an address of either family, and returns its length.
func putName(name *unix.RawSockaddrInet6, to netip.AddrPort, ipv6 bool) (length uint32) {
	var port *uint16
	if address := to.Addr().Unmap(); address.Is4() && !ipv6 {
		short := (*unix.RawSockaddrInet4)(unsafe.Pointer(name))
		short.Family, short.Addr, port = unix.AF_INET, address.As4(), &short.Port
		length = unix.SizeofSockaddrInet4
	} else {
		name.Family, name.Addr, port = unix.AF_INET6, address.As16(), &name.Port
		length = unix.SizeofSockaddrInet6
	}
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(port))[:], to.Port())
	return length
}

func (o *outbox) segmentSize(size int) []byte {
	start := len(o.control)
	o.control = o.control[:start+unix.CmsgSpace(2)]
	b := o.control[start:]
	clear(b)
	header := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
	header.Level, header.Type = unix.IPPROTO_UDP, unix.UDP_SEGMENT
	header.SetLen(unix.CmsgLen(2))
	binary.NativeEndian.PutUint16(b[unix.CmsgLen(0):], uint16(size))
	return b
}

func (s *sender) delivered(runs []run) {
	packets, bytes := 0, 0
	for i := range runs {
		packets += runs[i].packets
		bytes += runs[i].bytes
	}
	s.counters.packets.Add(uint64(packets))
	s.counters.bytes.Add(uint64(bytes))
}

// refused sends the packets of a refused message one by one. EIO means that the interface cannot cut messages into packets.
func (s *sender) refused(q *queue, message int, err error) {
	r := q.outbox.runs[message]
	if r.packets == 1 {
		s.counters.errors.Add(1)
		s.counters.refused.Add(1)
		return
	}
	if errors.Is(err, unix.EIO) {
		s.segment.Store(false)
	}
	for i, n := r.first, 0; n < r.packets; i, n = q.packets[i].next, n+1 {
		written, err := s.conn.WriteToUDPAddrPort(q.payload(i), q.flows[r.flow].to.AddrPort)
		s.counters.countGathered(written, err)
	}
}
