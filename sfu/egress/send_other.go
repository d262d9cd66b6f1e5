//go:build !linux

package egress

import "net"

// batchSender sends the packets of a batch one by one: this system has no call
// for several.
type batchSender struct {
	conn     *net.UDPConn
	counters *counters
}

func newBatchSender(conn *net.UDPConn, counters *counters, _ bool) *batchSender {
	return &batchSender{conn: conn, counters: counters}
}

func (s *batchSender) send(b *batch) {
	for _, f := range b.flows {
		for i, more := f.first, true; more; i, more = b.packets[i].next, b.packets[i].next != 0 {
			n, err := s.conn.WriteToUDPAddrPort(b.payload(i), f.to)
			s.counters.countGathered(n, err)
		}
	}
}
