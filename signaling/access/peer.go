package access

import (
	"crypto/rand"
	"encoding/hex"
)

// NewPeerID returns the id of a new session. Nobody can guess it.
func NewPeerID() string {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return "p-" + hex.EncodeToString(b[:])
}
