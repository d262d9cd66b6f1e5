package events

import (
	"strings"
	"unicode"

	"github.com/holdfast-rtc/holdfast/internal/tty"
)

// Show is the line's text for a terminal; paint is of tty.Paint. What a stranger named a room cannot move the cursor.
func (l Line) Show(paint func(style tty.Style, text string) string) string {
	if l.failover == nil {
		style := tty.Plain
		if l.Bad {
			style = tty.Red
		}
		return paint(style, strings.Map(visible, l.Text))
	}
	return l.failover.mark(func(p part, text string) string { return paint(p.style(), strings.Map(visible, text)) })
}

// Brief is Show without the evidence of a death, for narrow terminals.
func (l Line) Brief(paint func(style tty.Style, text string) string) string {
	if l.failover == nil {
		return l.Show(paint)
	}
	return l.failover.mark(func(p part, text string) string {
		if p == partEvidence {
			return ""
		}
		return paint(p.style(), strings.Map(visible, text))
	})
}

func (p part) style() tty.Style {
	switch p {
	case partRoom:
		return tty.Bold
	case partDeath:
		return tty.Red
	case partEvidence:
		return tty.Dim
	case partTarget, partBack:
		return tty.Green
	case partMissing:
		return tty.Yellow
	case partNode:
	}
	return tty.Plain
}

func visible(r rune) rune {
	// Joiners are parts of words and of emoji.
	if !unicode.IsPrint(r) && r != '\u200c' && r != '\u200d' {
		return unicode.ReplacementChar
	}
	return r
}
