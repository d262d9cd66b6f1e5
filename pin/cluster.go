package pin

import (
	"fmt"
	"strings"
)

// DefaultCluster is the name of a cluster that nobody named.
const DefaultCluster = "holdfast"

// maxClusterName keeps keys, labels and log lines short.
const maxClusterName = 32

// foreign says of a character that it does not belong in the name of a cluster.
func foreign(c rune) bool {
	return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_'
}

// ValidCluster accepts the name of a cluster: one short word, which stands in every key, in gossip and in the control port's certificates. So that
// it is no pattern and no hash tag, it holds lower-case letters, digits, "-" and "_" only.
func ValidCluster(name string) error {
	if name == "" || len(name) > maxClusterName || strings.ContainsFunc(name, foreign) {
		return fmt.Errorf("cluster name %q: give 1 to %d lower-case letters, digits, - and _", name, maxClusterName)
	}
	return nil
}
