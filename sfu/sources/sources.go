// Package sources translates what a client publishes, its microphone, camera, screen and the screen's sound, between the control
// protocol's words and those of sfu/forward. A set of sources is a number with one bit for each, as in control.Attach and control.Peer.
package sources

import (
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

// Of is false for a source that this node does not know.
func Of(source control.Source) (forward.Source, bool) {
	switch source {
	case control.Source_SOURCE_MICROPHONE:
		return forward.SourceMicrophone, true
	case control.Source_SOURCE_CAMERA:
		return forward.SourceCamera, true
	case control.Source_SOURCE_SCREEN:
		return forward.SourceScreen, true
	case control.Source_SOURCE_SCREEN_AUDIO:
		return forward.SourceScreenAudio, true
	case control.Source_SOURCE_UNSPECIFIED:
	}
	return "", false
}

// Proto is the opposite of Of.
func Proto(source forward.Source) control.Source {
	switch source {
	case forward.SourceMicrophone:
		return control.Source_SOURCE_MICROPHONE
	case forward.SourceCamera:
		return control.Source_SOURCE_CAMERA
	case forward.SourceScreen:
		return control.Source_SOURCE_SCREEN
	case forward.SourceScreenAudio:
		return control.Source_SOURCE_SCREEN_AUDIO
	}
	return control.Source_SOURCE_UNSPECIFIED
}

// Bit returns the set of one source.
func Bit(source forward.Source) uint32 {
	return 1 << (Proto(source) - control.Source_SOURCE_MICROPHONE)
}

// MayPublish reports whether a token's set of sources allows one. The empty set allows all.
func MayPublish(set uint32, source forward.Source) bool {
	return set == 0 || set&Bit(source) != 0
}
