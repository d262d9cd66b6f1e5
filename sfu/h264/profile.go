// Package h264 reads the profile of H.264 out of SDP's profile-level-id. It knows nothing else of H.264.
package h264

import (
	"cmp"
	"encoding/hex"
	"strings"
)

// Profile is an H.264 profile.
type Profile uint8

// The profiles.
const (
	Unknown Profile = iota
	ConstrainedBaseline
	Baseline
	Main
	ConstrainedHigh
	High
)

// pattern is of RFC 6184 table 5.
type pattern struct {
	idc, mask, value byte
	profile          Profile
}

func patterns() [8]pattern {
	return [...]pattern{
		{0x42, 0x4F, 0x40, ConstrainedBaseline},
		{0x4D, 0x8F, 0x80, ConstrainedBaseline},
		{0x58, 0xCF, 0xC0, ConstrainedBaseline},
		{0x42, 0x4F, 0x00, Baseline},
		{0x58, 0xCF, 0x80, Baseline},
		{0x4D, 0xAF, 0x00, Main},
		{0x64, 0xFF, 0x00, High},
		{0x64, 0xFF, 0x0C, ConstrainedHigh},
	}
}

// ProfileOf reads a profile-level-id in hexadecimal.
func ProfileOf(profileLevelID string) Profile {
	var b [3]byte
	if len(profileLevelID) != 2*len(b) {
		return Unknown
	}
	if _, err := hex.Decode(b[:], []byte(profileLevelID)); err != nil {
		return Unknown
	}
	for _, p := range patterns() {
		if b[0] == p.idc && b[1]&p.mask == p.value {
			return p.profile
		}
	}
	return Unknown
}

// Format names what must agree to decode: packetization mode and profile. Baseline counts as Constrained Baseline.
func Format(fmtp string) string {
	mode := cmp.Or(Parameter(fmtp, "packetization-mode"), "0")
	profile := ProfileOf(cmp.Or(Parameter(fmtp, "profile-level-id"), "42000a")) // RFC 6184 section 8.1
	if profile == ConstrainedBaseline {
		profile = Baseline
	}
	return mode + ";" + string('0'+rune(profile))
}

// Parameter is an a=fmtp parameter's value.
func Parameter(fmtp, name string) string {
	for part := range strings.SplitSeq(fmtp, ";") {
		key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		if strings.EqualFold(key, name) {
			return value
		}
	}
	return ""
}
