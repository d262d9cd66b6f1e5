package devcluster

import (
	"crypto/rand"
	"encoding/hex"
)

// secrets are made for each run. They live in the environment of the children and in the state file, which the user
// alone can read.
type secrets struct {
	clusterKey string
	cluster    string // its name: two clusters on one store must not meet
	access     Access
	control    string // what a request to the supervisor must carry
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
	_, _ = rand.Read(b) // never fails (crypto/rand)
	return hex.EncodeToString(b)
}
