package peer

import "time"

// flowing streams have had a packet so lately. Others are not waited for.
const flowing = 500 * time.Millisecond

// left is what the connection shows that a live move is leaving. Its table stays as it was.
type left struct {
	connection int // counted from 1
	streams    map[string]*Stream
	gap        time.Duration // the longest of a stream that has moved
}

// leaves remembers the table of the connection that is left.
func (p *Peer) leaves() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.live = &left{connection: p.stats.Connections, streams: make(map[string]*Stream, len(p.lines))}
	for mid, l := range p.lines {
		if l.stream != nil {
			p.live.streams[mid] = l.stream
		}
	}
}

// still takes in what comes over the connection that is left.
func (l *left) still(a arrival) bool {
	if l == nil || a.connection != l.connection {
		return false
	}
	if s := l.streams[a.mid]; s != nil {
		s.arrived(a)
	}
	return true
}

// whole reports whether everything that flowed over the connection that is left has come over the new one.
func (l *left) whole(gap time.Duration, connection int) bool {
	if l == nil {
		return true
	}
	l.gap = max(l.gap, gap)
	for _, s := range l.streams {
		if s.Connection < connection && time.Since(s.Last) < flowing {
			return false
		}
	}
	return true
}
