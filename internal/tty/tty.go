// Package tty says what a terminal can show, and colours words for it. It does not know what the words mean. Begin with Colors.
package tty

import (
	"io"
	"os"
)

// Style is how a word is shown. The zero Style is plain.
type Style string

// The styles are SGR sequences of ECMA-48, which every terminal has in its own palette.
const (
	Plain  Style = ""
	Bold   Style = "\x1b[1m"
	Dim    Style = "\x1b[2m"
	Red    Style = "\x1b[31m"
	Green  Style = "\x1b[32m"
	Yellow Style = "\x1b[33m"
)

const reset = "\x1b[0m"

// Is reports whether a reader or a writer is a terminal.
func Is(stream any) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	stat, err := file.Stat()
	return err == nil && stat.Mode()&os.ModeCharDevice != 0
}

// Colors reports whether w is a terminal that may be sent colours: NO_COLOR is not set (https://no-color.org), and TERM is not dumb.
func Colors(w io.Writer) bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && Is(w)
}

// Paint returns a function that shows text in a style, or as it is where there are no colours.
func Paint(colors bool) func(style Style, text string) string {
	return func(style Style, text string) string {
		if !colors || style == Plain || text == "" {
			return text
		}
		return string(style) + text + reset
	}
}
