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

// pattern is one row of table 5 in RFC 6184: a profile applies if profile_idc is idc and the masked second byte is value.
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

// ProfileOf returns the profile of a profile-level-id in hexadecimal, Unknown if it is malformed or matches no profile.
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

// Format returns a key for an a=fmtp value. Two sides whose keys are equal agree on packetization mode and profile. Constrained Baseline and
// Baseline have the same key.
func Format(fmtp string) string {
	mode := cmp.Or(Parameter(fmtp, "packetization-mode"), "0")
	profile := ProfileOf(cmp.Or(Parameter(fmtp, "profile-level-id"), "42000a")) // RFC 6184 section 8.1
	if profile == ConstrainedBaseline {
		profile = Baseline
	}
	return mode + ";" + string('0'+rune(profile))
}

// Parameter returns the value of a parameter in an a=fmtp value, empty if it is absent. Names are compared without case.
func Parameter(fmtp, name string) string {
	for part := range strings.SplitSeq(fmtp, ";") {
		key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		if strings.EqualFold(key, name) {
			return value
		}
	}
	return ""
}
