package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
)

// errForeign is wrapped by errors about foreign bytes, which are dropped.
var errForeign = errors.New("not understood")

const metaVersion = 1

// At most 512 bytes: hence the short keys.
type meta struct {
	Version  int    `json:"v"`
	Control  string `json:"c,omitempty"`
	Media    string `json:"m,omitempty"`
	HTTP     string `json:"h,omitempty"`
	Draining bool   `json:"d,omitempty"`
}

func encodeMeta(node Node) []byte {
	text, err := json.Marshal(meta{
		Version: metaVersion, Control: node.Control, Media: node.Media, HTTP: node.HTTP, Draining: node.Draining,
	})
	if err != nil {
		return nil // cannot happen
	}
	return text
}

// parseMember ignores unknown keys and refuses unknown versions. Errors wrap errForeign.
func parseMember(name string, text []byte) (Node, error) {
	node, err := parseMemberName(name)
	if err != nil {
		return Node{}, err
	}
	var m meta
	if err := json.Unmarshal(text, &m); err != nil {
		return Node{}, fmt.Errorf("%w: metadata of %s: %w", errForeign, name, err)
	}
	if m.Version != metaVersion {
		return Node{}, fmt.Errorf("%w: metadata of %s has version %d, want %d", errForeign, name, m.Version, metaVersion)
	}
	if node.Role == RoleSFU && (m.Control == "" || m.Media == "") {
		return Node{}, fmt.Errorf("%w: metadata of %s lacks an address", errForeign, name)
	}
	if err := errors.Join(validAddress(m.Control), validAddress(m.Media), validAddress(m.HTTP)); err != nil {
		return Node{}, fmt.Errorf("%w: metadata of %s: %w", errForeign, name, err)
	}
	node.Control, node.Media, node.HTTP, node.Draining = m.Control, m.Media, m.HTTP, m.Draining
	return node, nil
}
