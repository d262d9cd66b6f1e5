package pin

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/ring"
)

// ErrCorrupt means that no version of this program wrote the text.
var ErrCorrupt = errors.New("corrupt pin")

// ErrLater means that a later version wrote the pin, which must be left alone.
var ErrLater = errors.New("this room runs on newer nodes than this one")

const textVersion = "1"

const maxLaterBytes = 4096

const (
	maxTextBytes  = 512
	maxFieldBytes = 200
	fieldCount    = 6
)

// This is the largest integer that JavaScript represents exactly. A pin with a higher epoch is damaged.
const maxEpoch = 1<<53 - 1

// Encode returns "1|epoch|nonce|node|boot|control", with the nonce as 16 hex digits. Two texts are equal exactly when
// their pins are.
func (p Pin) Encode() string {
	const numbers = 20 + 2*8
	text := make([]byte, 0, len(textVersion)+numbers+len(p.Node)+len(p.Boot)+len(p.Control)+fieldCount-1)
	text = append(text, textVersion+"|"...)
	text = strconv.AppendUint(text, p.Fence.Epoch, 10)
	text = append(text, '|')
	text = hex.AppendEncode(text, binary.BigEndian.AppendUint64(nil, p.Fence.Nonce))
	for _, field := range []string{string(p.Node), string(p.Boot), p.Control} {
		text = append(append(text, '|'), field...)
	}
	return string(text)
}

// later returns the version of a later version's pin, or 0. Such a text is "<version>|" and printable ASCII.
func later(text string) int {
	head, _, ok := strings.Cut(text, "|")
	version, err := strconv.ParseUint(head, 10, 16)
	printable := !strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' })
	if !ok || err != nil || version <= 1 || head[0] == '0' || len(text) > maxLaterBytes || !printable {
		return 0
	}
	return int(version)
}

// Parse reads a text of Encode, and nothing else. Its error wraps ErrCorrupt or ErrLater.
func Parse(text string) (Pin, error) {
	if version := later(text); version > 0 {
		return Pin{}, fmt.Errorf("%w: its pin has version %d, this program reads %s", ErrLater, version, textVersion)
	}
	if len(text) > maxTextBytes {
		return Pin{}, fmt.Errorf("%w: %d bytes, at most %d", ErrCorrupt, len(text), maxTextBytes)
	}
	fields := strings.Split(text, "|")
	if len(fields) != fieldCount || fields[0] != textVersion {
		return Pin{}, fmt.Errorf("%w: %q is not version %s with %d fields", ErrCorrupt, text, textVersion, fieldCount)
	}
	epoch, err := strconv.ParseUint(fields[1], 10, 64)
	if err != nil {
		return Pin{}, fmt.Errorf("%w: epoch: %w", ErrCorrupt, err)
	}
	nonce, err := strconv.ParseUint(fields[2], 16, 64)
	if err != nil {
		return Pin{}, fmt.Errorf("%w: nonce: %w", ErrCorrupt, err)
	}
	p := Pin{
		Fence:   Fence{Epoch: epoch, Nonce: nonce},
		Node:    ring.NodeID(fields[3]),
		Boot:    BootID(fields[4]),
		Control: fields[5],
	}
	if err := p.Validate(); err != nil {
		return Pin{}, err
	}
	// A pin has one text only, because stores compare pins as texts.
	if p.Encode() != text {
		return Pin{}, fmt.Errorf("%w: %q is not in canonical form", ErrCorrupt, text)
	}
	return p, nil
}

// Validate returns an error that wraps ErrCorrupt if the pin cannot be stored.
func (p Pin) Validate() error {
	if p.Fence.Epoch == 0 {
		return fmt.Errorf("%w: epoch is 0", ErrCorrupt)
	}
	if p.Fence.Epoch > maxEpoch {
		return fmt.Errorf("%w: epoch %d is above %d", ErrCorrupt, p.Fence.Epoch, uint64(maxEpoch))
	}
	for _, f := range []struct{ name, value string }{
		{"node", string(p.Node)}, {"boot", string(p.Boot)}, {"control address", p.Control},
	} {
		if f.value == "" || len(f.value) > maxFieldBytes {
			return fmt.Errorf("%w: %s has %d bytes, want 1 to %d", ErrCorrupt, f.name, len(f.value), maxFieldBytes)
		}
		for i := range len(f.value) {
			if c := f.value[i]; c <= ' ' || c > '~' || c == '|' {
				return fmt.Errorf("%w: %s %q has a character that is not printable ASCII", ErrCorrupt, f.name, f.value)
			}
		}
	}
	return nil
}

// NewNonce returns the nonce for a pin that replaces a known one.
func NewNonce() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return binary.BigEndian.Uint64(b[:]) &^ freshBit
}

// NewFreshNonce returns the nonce for a claim on an absent key.
func NewFreshNonce() uint64 { return NewNonce() | freshBit }

const bootDigits = 13

// NewBootID returns 13 digits of Unix milliseconds, a dash and 8 random hex digits.
func NewBootID(now time.Time) BootID {
	return BootID(fmt.Sprintf("%013d-%08x", now.UnixMilli(), uint32(NewNonce())))
}

// Began returns the time in an id that NewBootID made. ok is false for other ids.
func (b BootID) Began() (began time.Time, ok bool) {
	digits, _, found := strings.Cut(string(b), "-")
	milliseconds, err := strconv.ParseInt(digits, 10, 64)
	if !found || err != nil || len(digits) != bootDigits || milliseconds < 0 {
		return time.Time{}, false
	}
	return time.UnixMilli(milliseconds), true
}

// Newer reports whether b began after c. Both must be boots of one node.
func (b BootID) Newer(c BootID) bool { return b > c }
