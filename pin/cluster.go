package pin

import (
	"fmt"
	"strings"
)

// DefaultCluster is the name of a cluster that was given none.
const DefaultCluster = "holdfast"

const maxClusterName = 32

func foreign(c rune) bool {
	return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_'
}

// ValidCluster returns an error unless the name can be part of keys, gossip messages and certificates.
func ValidCluster(name string) error {
	if name == "" || len(name) > maxClusterName || strings.ContainsFunc(name, foreign) {
		return fmt.Errorf("cluster name %q: give 1 to %d lower-case letters, digits, - and _", name, maxClusterName)
	}
	return nil
}
