package sfu

import (
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

// bitOf is the source in control's sets.
func bitOf(source forward.Source) uint32 {
	return 1 << (sourceProto(source) - control.Source_SOURCE_MICROPHONE)
}

// silence ends the layers of muted sources: they begin anew when unmuted, and no lost packets are asked for.
// Reception is still reported, because the path is as it is.
func (u *uplink) silence(sources uint32) { closeLayers(u.mute(sources)) }

func (u *uplink) mute(sources uint32) (ended []*forward.Layer) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if sources&bitOf(forward.SourceScreen) != 0 {
		sources |= bitOf(forward.SourceScreenAudio)
	}
	u.silenced = sources
	for _, s := range u.streams {
		if sources&bitOf(s.source) != 0 {
			ended = append(ended, s.layer)
			s.layer = nil
		}
	}
	return ended
}
