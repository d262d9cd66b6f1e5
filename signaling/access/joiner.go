package access

import "unicode"

const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
)

// joiners decides which zero-width joiners of a text stay. They are part of words in Persian, Urdu and the scripts of India, and of emoji such
// as families. Elsewhere nobody sees them, and two names that look the same would differ. So one stays between two characters that it can join,
// and of several only the last.
type joiners struct {
	// waiting is the joiner whose next character is not known yet; 0 is none.
	waiting rune
	// base is the last character that is no combining mark; 0 is none.
	base rune
}

// take reports whether r is a joiner, and keeps it.
func (j *joiners) take(r rune) bool {
	if r != zeroWidthJoiner && r != zeroWidthNonJoiner {
		return false
	}
	j.waiting = r
	return true
}

// before returns the joiner that stays before r; 0 is none.
func (j *joiners) before(r rune) (joiner rune) {
	mark := unicode.Is(unicode.M, r)
	if j.waiting != 0 && joinable(j.base) && (mark || joinable(r)) {
		joiner = j.waiting
	}
	j.waiting = 0
	if !mark {
		j.base = r
	}
	return joiner
}

// end forgets the characters before a space.
func (j *joiners) end() { *j = joiners{} }

// joinable is false for the scripts that are written without joiners, and for ASCII.
func joinable(r rune) bool {
	return r >= 0x80 && !unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Armenian, unicode.Georgian, unicode.Hebrew,
		unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo)
}
