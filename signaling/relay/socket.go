package relay

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/pion/turn/v5"
	"golang.org/x/time/rate"
)

var (
	errFull   = errors.New("no allocation is free")
	errNoSuch = errors.New("only UDP is relayed, on a port of our choice")
)

type socket struct {
	*net.UDPConn
	relay   *Relay
	session string
	ends    time.Time // zero: never
	out, in *rate.Limiter
	close   sync.Once
}

// take decides; hasRoom gives the right error code.
func (r *Relay) hasRoom(user string) bool {
	session, _ := sessionOf(user)
	r.mu.Lock()
	free := r.free(session)
	r.mu.Unlock()
	if !free {
		r.refuse(&r.count.full, errFull.Error(), "session", session)
	}
	return free
}

func (r *Relay) free(session string) bool {
	return !r.closed && len(r.sockets) < r.config.MaxAllocations && r.sessions[session] < r.config.MaxSessionAllocations
}

func (r *Relay) take(s *socket) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.free(s.session) {
		return false
	}
	r.sockets[s] = struct{}{}
	r.sessions[s.session]++
	return true
}

func (r *Relay) give(s *socket) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, held := r.sockets[s]; !held {
		return
	}
	delete(r.sockets, s)
	if r.sessions[s.session]--; r.sessions[s.session] <= 0 {
		delete(r.sessions, s.session)
	}
}

// Validate is for Pion.
func (r *Relay) Validate() error { return nil }

// AllocatePacketConn is for Pion. Even ports have no session.
func (r *Relay) AllocatePacketConn(wanted turn.AllocateListenerConfig) (net.PacketConn, net.Addr, error) {
	family := "udp6"
	if r.config.Address.Is4() {
		family = "udp4"
	}
	if wanted.Network != family || wanted.UserID == "" || wanted.RequestedPort != 0 {
		r.refuse(&r.count.full, errNoSuch.Error(), "session", wanted.UserID)
		return nil, nil, errNoSuch
	}
	bind := &net.UDPAddr{}
	if r.config.Address.IsLoopback() {
		bind.IP = r.config.Address.AsSlice()
	}
	conn, err := net.ListenUDP(family, bind)
	if err != nil {
		return nil, nil, fmt.Errorf("open an allocation: %w", err)
	}
	r.buffer(conn, mediaBuffer)
	perSecond := rate.Limit(r.config.BytesPerSecond)
	session, ends := sessionOf(wanted.UserID)
	s := &socket{UDPConn: conn, relay: r, session: session, ends: ends, out: rate.NewLimiter(perSecond, r.config.BytesPerSecond), in: rate.NewLimiter(perSecond, r.config.BytesPerSecond)}
	if !r.take(s) {
		_ = conn.Close()
		return nil, nil, errFull
	}
	r.count.allocated.Add(1)
	local := netip.AddrPort{}
	if bound, ok := conn.LocalAddr().(*net.UDPAddr); ok {
		local = bound.AddrPort()
	}
	return s, net.UDPAddrFromAddrPort(netip.AddrPortFrom(r.config.Address, local.Port())), nil
}

// AllocateListener is for Pion.
func (r *Relay) AllocateListener(turn.AllocateListenerConfig) (net.Listener, net.Addr, error) {
	return nil, nil, errNoSuch
}

// AllocateConn is for Pion.
func (r *Relay) AllocateConn(turn.AllocateConnConfig) (net.Conn, error) { return nil, errNoSuch }

// WriteTo drops what goes to no media socket.
func (s *socket) WriteTo(packet []byte, to net.Addr) (int, error) {
	peer, ok := to.(*net.UDPAddr)
	if !ok {
		return len(packet), nil
	}
	socket := plain(peer.AddrPort())
	switch {
	case !s.relay.config.Media.HasSocket(socket):
		s.relay.refuse(&s.relay.count.peers, "no media node listens there", "session", s.session, "peer", socket.String())
	case !s.out.AllowN(time.Now(), len(packet)):
		s.relay.count.packets.Add(1)
	default:
		s.relay.count.toMedia.Add(uint64(len(packet)))
		_, _ = s.UDPConn.WriteToUDPAddrPort(packet, socket)
	}
	return len(packet), nil
}

// ReadFrom returns packets of media sockets only. Pion deletes the allocation after an error.
func (s *socket) ReadFrom(packet []byte) (int, net.Addr, error) {
	until := time.Now().Add(s.relay.config.IdleAfter)
	if !s.ends.IsZero() {
		until = earlier(until, s.ends)
	}
	if err := s.SetReadDeadline(until); err != nil {
		return 0, nil, err
	}
	for {
		n, from, err := s.ReadFromUDPAddrPort(packet)
		from = plain(from)
		switch {
		case errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded):
			return 0, nil, err
		case err != nil:
			continue // of an earlier packet, such as a refused port
		case !s.relay.config.Media.HasSocket(from):
			s.relay.count.strays.Add(1)
		case !s.in.AllowN(time.Now(), n):
			s.relay.count.packets.Add(1)
		default:
			s.relay.count.toClients.Add(uint64(n))
			return n, net.UDPAddrFromAddrPort(from), nil
		}
	}
}

// Close frees its place.
func (s *socket) Close() error {
	err := error(nil)
	s.close.Do(func() {
		s.relay.give(s)
		err = s.UDPConn.Close()
	})
	return err
}

func plain(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}
