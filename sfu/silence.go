package sfu

import (
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

// bitOf is a source in the sets of control.Attach and control.Peer.
func bitOf(source forward.Source) uint32 {
	return 1 << (sourceProto(source) - control.Source_SOURCE_MICROPHONE)
}

// silence ends the layers of muted sources: after an unmute they begin anew, and nobody is owed what lies between. The
// client's packets are still reported, because its path is as it is.
func (u *uplink) silence(sources uint32) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if sources&bitOf(forward.SourceScreen) != 0 {
		sources |= bitOf(forward.SourceScreenAudio)
	}
	u.silenced = sources
	for _, s := range u.streams {
		if sources&bitOf(s.source) != 0 && s.layer != nil {
			s.layer.Close()
			s.layer = nil
		}
	}
}
