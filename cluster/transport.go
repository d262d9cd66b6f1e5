package cluster

import (
	"errors"
	"math/rand/v2"
	"net"
	"sync"

	"github.com/hashicorp/memberlist"

	"github.com/holdfast-rtc/holdfast/lobby"
)

const (
	// streams and streamsPerAddress bound the TCP exchanges that others have begun; the oldest goes for
	// one more. An exchange takes milliseconds and a member begins one in ten seconds.
	streams           = 64
	streamsPerAddress = 16

	// streamBytes bounds what one of them may send. memberlist believes up to 20 MB before it
	// has checked the key. A state has some 500 bytes a member, so this is for 4000 of them.
	streamBytes = 2 << 20

	// bindTries is how often a free port is looked for that is free for TCP and UDP.
	bindTries = 10
)

// errTooLong ends an exchange that sends more than a state can have.
var errTooLong = errors.New("the stream is longer than any state")

// transport is memberlist's own transport, with a lobby in front of its streams: by
// itself memberlist reads from any number of strangers at once.
type transport struct {
	*memberlist.NetTransport

	lobby   *lobby.Lobby
	streams chan net.Conn
	packets chan *memberlist.Packet
	heard   func(address string) // told of each datagram
	stop    chan struct{}
	stopped sync.Once // memberlist shuts down what it could not start, and so do we
	pump    sync.WaitGroup
}

// newTransport opens the sockets that config names, and writes the port that was bound into config. Of a
// hundred datagrams that arrive losePercent are thrown away, as a bad network would: tests only.
func newTransport(config *memberlist.Config, losePercent int, heard func(address string)) (*transport, error) {
	var inner *memberlist.NetTransport
	var err error
	for range bindTries {
		inner, err = memberlist.NewNetTransport(&memberlist.NetTransportConfig{
			BindAddrs: []string{config.BindAddr}, BindPort: config.BindPort, Logger: config.Logger,
		})
		// A port that the kernel chose for TCP may be taken for UDP; one that was named is named.
		if err == nil || config.BindPort != 0 {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	if config.BindPort == 0 {
		config.BindPort = inner.GetAutoBindPort()
		config.AdvertisePort = config.BindPort
	}
	t := &transport{
		NetTransport: inner, lobby: lobby.New(lobby.Limits{Total: streams, PerAddress: streamsPerAddress}),
		streams: make(chan net.Conn), packets: make(chan *memberlist.Packet), heard: heard, stop: make(chan struct{}),
	}
	t.pump.Go(t.admit)
	t.pump.Go(func() { t.receive(losePercent) })
	return t, nil
}

// PacketCh is part of memberlist.Transport.
func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.packets }

// receive passes on the datagrams that are not thrown away until the end.
func (t *transport) receive(losePercent int) {
	for {
		select {
		case packet := <-t.NetTransport.PacketCh():
			if rand.N(100) < losePercent {
				continue
			}
			t.heard(packet.From.String())
			select {
			case t.packets <- packet:
			case <-t.stop:
				return
			}
		case <-t.stop:
			return
		}
	}
}

// StreamCh is part of memberlist.Transport.
func (t *transport) StreamCh() <-chan net.Conn { return t.streams }

// admit leads streams through the lobby to memberlist until the end.
func (t *transport) admit() {
	for {
		select {
		case conn := <-t.NetTransport.StreamCh():
			guest := t.lobby.Enter(conn.RemoteAddr(), func() { conn.Close() })
			select {
			case t.streams <- &stream{Conn: &lobby.Conn{Conn: conn, Guest: guest}, left: streamBytes}:
			case <-t.stop:
				conn.Close()
				return
			}
		case <-t.stop:
			return
		}
	}
}

// Shutdown is part of memberlist.Transport.
func (t *transport) Shutdown() error {
	err := t.NetTransport.Shutdown() // It waits for its listeners, which wait for the pump.
	t.stopped.Do(func() { close(t.stop) })
	t.pump.Wait()
	return err
}

// stream is one exchange that another process has begun.
type stream struct {
	*lobby.Conn

	left int // bytes; only its reader uses it
}

// Read is part of net.Conn.
func (s *stream) Read(b []byte) (int, error) {
	if s.left == 0 {
		return 0, errTooLong
	}
	n, err := s.Conn.Read(b[:min(len(b), s.left)])
	s.left -= n
	return n, err
}
