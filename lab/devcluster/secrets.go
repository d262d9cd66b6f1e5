package devcluster

import (
	"crypto/rand"
	"encoding/hex"
)

// secrets are in the children's environment and in the state file, which only the user can read.
type secrets struct {
	clusterKey string
	cluster    string // two clusters on one store must not meet
	access     Access
	control    string // of requests to the supervisor
}

func newSecrets() secrets {
	return secrets{
		clusterKey: randomHex(32),
		cluster:    "dev-" + randomHex(4),
		access:     Access{Key: "dev" + randomHex(4), Secret: randomHex(32)},
		control:    randomHex(16),
	}
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}
