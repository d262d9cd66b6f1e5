package cluster

import (
	"errors"
	"math/rand/v2"
	"net"
	"sync"

	"github.com/hashicorp/memberlist"

	"github.com/holdfast-rtc/holdfast/internal/connlimit"
)

const (
	// streams bounds the incoming streams. One more closes the oldest.
	streams           = 64
	streamsPerAddress = 16

	// streamBytes is enough for 4,000 members of 500 bytes. memberlist allows 20 MB, before it has checked the key.
	streamBytes = 2 << 20

	// bindTries bounds the search for a port that is free for TCP and UDP alike.
	bindTries = 10
)

var errTooLong = errors.New("the stream is longer than any state")

// transport bounds memberlist's incoming streams.
type transport struct {
	*memberlist.NetTransport

	pending *connlimit.Limiter
	streams chan net.Conn
	packets chan *memberlist.Packet
	heard   func(address string)
	stop    chan struct{}
	// stopped is there because memberlist may call Shutdown twice.
	stopped sync.Once
	pump    sync.WaitGroup
}

// newTransport writes the bound port into config.
func newTransport(config *memberlist.Config, losePercent int, heard func(address string)) (*transport, error) {
	var inner *memberlist.NetTransport
	var err error
	for range bindTries {
		inner, err = memberlist.NewNetTransport(&memberlist.NetTransportConfig{
			BindAddrs: []string{config.BindAddr}, BindPort: config.BindPort, Logger: config.Logger,
		})
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
		NetTransport: inner, pending: connlimit.New(connlimit.Limits{Total: streams, PerAddress: streamsPerAddress}),
		streams: make(chan net.Conn), packets: make(chan *memberlist.Packet), heard: heard, stop: make(chan struct{}),
	}
	t.pump.Go(t.admit)
	t.pump.Go(func() { t.receive(losePercent) })
	return t, nil
}

func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.packets }

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

func (t *transport) StreamCh() <-chan net.Conn { return t.streams }

func (t *transport) admit() {
	for {
		select {
		case conn := <-t.NetTransport.StreamCh():
			pending := t.pending.Add(conn.RemoteAddr(), func() { conn.Close() })
			select {
			case t.streams <- &stream{Conn: &connlimit.Conn{Conn: conn, Pending: pending}, left: streamBytes}:
			case <-t.stop:
				conn.Close()
				return
			}
		case <-t.stop:
			return
		}
	}
}

func (t *transport) Shutdown() error {
	// The transport's shutdown waits for the pump.
	err := t.NetTransport.Shutdown()
	t.stopped.Do(func() { close(t.stop) })
	t.pump.Wait()
	return err
}

type stream struct {
	*connlimit.Conn

	// left counts bytes.
	left int
}

func (s *stream) Read(b []byte) (int, error) {
	if s.left == 0 {
		return 0, errTooLong
	}
	n, err := s.Conn.Read(b[:min(len(b), s.left)])
	s.left -= n
	return n, err
}
