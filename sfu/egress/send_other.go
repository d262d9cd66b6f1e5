//go:build !linux

package egress

import (
	"net"
	"net/netip"
)

type outbox struct{}

func newOutbox() *outbox { return nil }

type letter struct{}

func newLetter() *letter { return nil }

type sender struct {
	conn     *net.UDPConn
	counters *counters
}

func (s *sender) open(conn *net.UDPConn, counters *counters, _ bool) bool {
	s.conn, s.counters = conn, counters
	return true
}

func (s *sender) sendNow(_ *letter, b []byte, to netip.AddrPort) error {
	_, err := s.conn.WriteToUDPAddrPort(b, to)
	return err
}

func (s *sender) send(q *queue) {
	for _, f := range q.flows {
		if f.to.Stream != nil {
			continue
		}
		for i, more := f.first, true; more; i, more = q.packets[i].next, q.packets[i].next != 0 {
			n, err := s.conn.WriteToUDPAddrPort(q.payload(i), f.to.AddrPort)
			s.counters.countGathered(n, err)
		}
	}
}
