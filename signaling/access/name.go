package access

import (
	"strings"
	"unicode"
)

// maxMarks is how many combining marks a character may carry. Every script's
// needs fewer; a tower of them hides what is above and below a name.
const maxMarks = 4

const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
)

// ShownName is the part of a name that is safe to show in somebody else's page:
// no control characters, nothing that turns the direction of what stands
// around it, nothing invisible that would make two names look the same, one
// space where there was any other space, and no towers of marks. The joiners that
// some scripts and emoji need stay, between two characters. It is empty when nothing is left.
func ShownName(name string) string {
	var shown strings.Builder
	var joiner rune                   // waits for a character to join to
	space, marks := false, maxMarks+1 // no mark without a character to stand on
	for _, r := range name {
		switch {
		case r == unicode.ReplacementChar:
		case r == zeroWidthJoiner || r == zeroWidthNonJoiner:
			joiner = r
		case unicode.IsSpace(r):
			space, joiner, marks = shown.Len() > 0, 0, maxMarks+1
		case unicode.In(r, unicode.Mn, unicode.Me):
			if marks++; marks <= maxMarks {
				shown.WriteRune(r)
			}
		case unicode.IsPrint(r) && !blank(r):
			if space {
				shown.WriteByte(' ')
			}
			if joiner != 0 && shown.Len() > 0 && !space {
				shown.WriteRune(joiner)
			}
			shown.WriteRune(r)
			space, joiner, marks = false, 0, 0
		}
	}
	return shown.String()
}

// selfChosen stands behind a name that nobody but its bearer vouches for.
const selfChosen = " (self-chosen)"

// SelfChosenName is ShownName of a name that the token does not vouch for, and says so.
func SelfChosenName(name string) string {
	shown := ShownName(name)
	if shown == "" {
		return ""
	}
	if most := maxNameBytes - len(selfChosen); len(shown) > most {
		shown = ShownName(strings.ToValidUTF8(shown[:most], ""))
	}
	return shown + selfChosen
}

// blank reports whether a letter or symbol is one that shows nothing: fillers of
// Hangul, and the empty Braille pattern.
func blank(r rune) bool {
	switch r {
	case '\u115f', '\u1160', '\u3164', '\uffa0', '\u2800':
		return true
	}
	return false
}
