package access

import (
	"strings"
	"unicode"
)

// maxMarks is enough for every script. Towers of more combining marks hide the text around them.
const maxMarks = 4

// ShownName makes a name safe for others' pages: it has no control, direction or invisible characters, no towers of
// marks and no double spaces. Joiners stay where they join. It may return "".
func ShownName(name string) string {
	var shown strings.Builder
	var joined joiners
	space, marks := false, maxMarks+1
	write := func(r rune) {
		if joiner := joined.before(r); joiner != 0 {
			shown.WriteRune(joiner)
		}
		shown.WriteRune(r)
	}
	for _, r := range name {
		switch {
		case r == unicode.ReplacementChar || joined.take(r):
		case unicode.IsSpace(r):
			space, marks = shown.Len() > 0, maxMarks+1
			joined.end()
		case unicode.In(r, unicode.Mn, unicode.Me):
			if marks++; marks <= maxMarks {
				write(r)
			}
		case unicode.IsPrint(r) && !blank(r):
			if space {
				shown.WriteByte(' ')
			}
			write(r)
			space, marks = false, 0
		}
	}
	return shown.String()
}

const selfChosen = " (self-chosen)"

// SelfChosenName returns the ShownName of a name, marked as self-chosen.
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

// blank reports the fillers of Hangul and the empty Braille pattern, which look like spaces.
func blank(r rune) bool {
	switch r {
	case '\u115f', '\u1160', '\u3164', '\uffa0', '\u2800':
		return true
	}
	return false
}
