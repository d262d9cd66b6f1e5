package cluster

import (
	"strings"
	"testing"
)

// A node's build travels with its addresses; what is no version is left out.
func TestVersionsTravel(t *testing.T) {
	for sent, want := range map[string]string{
		"0.1.0+65fd839c-modified": "0.1.0+65fd839c-modified", "": "", "<b>": "", "1 2": "", strings.Repeat("1", maxVersionBytes+1): "",
	} {
		node := sfuNode("a", 1)
		node.Version = sent
		got, err := parseMember(memberName(node), encodeMeta(node))
		if err != nil || got.Version != want {
			t.Errorf("%q became %q, %v", sent, got.Version, err)
		}
	}
}
