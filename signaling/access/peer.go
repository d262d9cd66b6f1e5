package access

import (
	"crypto/rand"
	"encoding/hex"
)

// NewPeerID names a session. Nobody can guess it.
func NewPeerID() string {
	var b [8]byte
	_, _ = rand.Read(b[:])
	return "p-" + hex.EncodeToString(b[:])
}
