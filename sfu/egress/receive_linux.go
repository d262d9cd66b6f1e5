package egress

import (
	"encoding/binary"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	receiveMessages = 32
	// The kernel joins packets of one sender and length (UDP_GRO).
	receiveBytes = 1 << 16
	controlBytes = 32
)

type receiver struct {
	take     func(b []byte, from netip.AddrPort)
	messages [receiveMessages]unix.Mmsghdr
	vectors  [receiveMessages]unix.Iovec
	names    [receiveMessages]unix.RawSockaddrInet6 // of either family
	control  [receiveMessages][controlBytes]byte
	errno    syscall.Errno
}

func receive(conn *net.UDPConn, take func(b []byte, from netip.AddrPort)) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	r := &receiver{take: take}
	space := make([]byte, receiveMessages*receiveBytes)
	for i := range r.messages {
		r.vectors[i].Base = &space[i*receiveBytes]
		r.vectors[i].SetLen(receiveBytes)
		h := &r.messages[i].Hdr
		h.Name, h.Iov, h.Control = (*byte)(unsafe.Pointer(&r.names[i])), &r.vectors[i], &r.control[i][0]
		h.SetIovlen(1)
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_GRO, 1)
	})
	if err := raw.Read(r.empty); err != nil {
		return err
	}
	return r.errno
}

// False: nothing waits. True: the kernel refuses.
func (r *receiver) empty(fd uintptr) bool {
	for busy := false; ; busy = true {
		for i := range r.messages {
			r.messages[i].Hdr.Namelen = unix.SizeofSockaddrInet6
			r.messages[i].Hdr.SetControllen(controlBytes)
		}
		n, errno := r.call(fd, busy)
		switch errno {
		case 0:
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			return false
		default:
			r.errno = errno
			return true
		}
		for i := range n {
			r.deliver(i)
		}
		if n < receiveMessages {
			return false
		}
	}
}

// call takes what waits. It cannot block. While the reader is not busy, the call is raw, so that the runtime does not hear of it: an
// ordinary one after a pause wakes the runtime's monitor thread, which costs more than the packet. A busy reader needs that thread,
// because other goroutines must have their turn.
func (r *receiver) call(fd uintptr, busy bool) (int, syscall.Errno) {
	var n uintptr
	var errno syscall.Errno
	if busy {
		n, _, errno = unix.Syscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&r.messages[0])), receiveMessages, 0, 0, 0)
	} else {
		n, _, errno = unix.RawSyscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&r.messages[0])), receiveMessages, 0, 0, 0)
	}
	return int(n), errno
}

func (r *receiver) deliver(i int) {
	b := unsafe.Slice(r.vectors[i].Base, r.messages[i].Len)
	from := addressOf(&r.names[i])
	size := segmentOf(r.control[i][:r.messages[i].Hdr.Controllen])
	for size > 0 && len(b) > size {
		r.take(b[:size:size], from)
		b = b[size:]
	}
	r.take(b, from)
}

func addressOf(name *unix.RawSockaddrInet6) netip.AddrPort {
	var port *uint16
	var address netip.Addr
	if name.Family == unix.AF_INET {
		short := (*unix.RawSockaddrInet4)(unsafe.Pointer(name))
		port, address = &short.Port, netip.AddrFrom4(short.Addr)
	} else {
		port, address = &name.Port, netip.AddrFrom16(name.Addr).Unmap()
		if name.Scope_id != 0 {
			address = address.WithZone(strconv.FormatUint(uint64(name.Scope_id), 10))
		}
	}
	return netip.AddrPortFrom(address, binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(port))[:]))
}

// segmentOf is the length of joined packets; 0: a single one.
func segmentOf(control []byte) int {
	const data = unix.SizeofCmsghdr
	if len(control) < data+4 {
		return 0
	}
	header := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
	if header.Level != unix.IPPROTO_UDP || header.Type != unix.UDP_GRO {
		return 0
	}
	return int(binary.NativeEndian.Uint32(control[data:]))
}
