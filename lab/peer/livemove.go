package peer

import "time"

// flowing is how recent a stream's last packet must be for a live move to wait for the stream.
const flowing = 500 * time.Millisecond

// left is the slot table of the connection that a live move is leaving.
type left struct {
	connection int // counted from 1
	streams    map[string]*Stream
	gap        time.Duration // longest of the moved streams
}

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

func (l *left) still(a arrival) bool {
	if l == nil || a.connection != l.connection {
		return false
	}
	if s := l.streams[a.mid]; s != nil {
		s.arrived(a)
	}
	return true
}

// whole reports whether every flowing stream of the old connection has come over the new one.
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
