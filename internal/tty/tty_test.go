package tty

import (
	"bytes"
	"os"
	"testing"
)

func TestColorsNeedATerminalThatMayHaveThem(t *testing.T) {
	if Is(&bytes.Buffer{}) || Colors(&bytes.Buffer{}) {
		t.Error("a buffer is no terminal")
	}
	pipe, end, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	defer end.Close()
	if Is(end) {
		t.Error("a pipe is no terminal")
	}
	device, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // a character device, as terminals are
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	for _, test := range []struct {
		term, noColor string
		want          bool
	}{{"xterm", "", true}, {"xterm", "1", false}, {"dumb", "", false}} {
		t.Setenv("TERM", test.term)
		t.Setenv("NO_COLOR", test.noColor)
		if got := Colors(device); got != test.want {
			t.Errorf("%+v: %t", test, got)
		}
	}
}

func TestPaintLeavesTextAlone(t *testing.T) {
	if got := Paint(false)(Red, "x"); got != "x" {
		t.Errorf("%q", got)
	}
	if got := Paint(true)(Red, "x"); got != "\x1b[31mx\x1b[0m" {
		t.Errorf("%q", got)
	}
	if got := Paint(true)(Red, "") + Paint(true)(Plain, "x"); got != "x" {
		t.Errorf("%q", got)
	}
}
