package node

import (
	"errors"
	"fmt"

	"github.com/holdfast-rtc/holdfast/signaling/access"
)

// KeyringConfig says where a process takes the API keys from.
type KeyringConfig struct {
	APIKeys     string `name:"api-keys" placeholder:"KEY:SECRET,..." help:"API keys and their secrets of at least 32 characters; better given as HOLDFAST_API_KEYS, since arguments show in process lists."`
	APIKeysFile string `name:"api-keys-file" placeholder:"FILE" help:"A file with them, instead of --api-keys: one a line. A signaling node reads it again when it changes ('holdfast keys' changes it)."`

	// keyText is the text that Keyring has read.
	keyText string
}

// Keyring reads the keys. No error shows a secret.
func (f *KeyringConfig) Keyring() (*access.Keyring, error) {
	text, err := either("api-keys", f.APIKeys, f.APIKeysFile)
	if err != nil {
		return nil, err
	}
	f.keyText = text
	if text == "" {
		return nil, errors.New("--api-keys: none given; set HOLDFAST_API_KEYS=KEY:SECRET, the secret with at least 32 characters (openssl rand -hex 32)")
	}
	ring, err := access.ParseKeyring(text)
	if err != nil {
		return nil, fmt.Errorf("--api-keys: %w", err)
	}
	return ring, nil
}

func either(flag, text, path string) (string, error) {
	if path == "" {
		return text, nil
	}
	fromFile, err := ReadKeyFile(path)
	if err != nil {
		return "", fmt.Errorf("--%s-file: %w", flag, err)
	}
	return fromFile, nil
}
