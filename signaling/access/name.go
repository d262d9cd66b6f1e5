package access

import (
	"strings"
	"unicode"
)

// Towers of marks hide other text; no script needs more.
const maxMarks = 4

const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
)

// ShownName is safe for others' pages: without control, direction or invisible characters, towers of marks or double spaces.
// Joiners between characters stay. It may return "".
func ShownName(name string) string {
	var shown strings.Builder
	var joiner rune
	space, marks := false, maxMarks+1
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

const selfChosen = " (self-chosen)"

// SelfChosenName is ShownName, marked.
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

// Fillers of Hangul and the empty Braille pattern.
func blank(r rune) bool {
	switch r {
	case '\u115f', '\u1160', '\u3164', '\uffa0', '\u2800':
		return true
	}
	return false
}
