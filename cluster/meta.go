package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/memberlist"
)

var errForeign = errors.New("not understood")

// metaVersion is raised only when a key changes its meaning.
const metaVersion = 1

// meta is a member's metadata, which memberlist bounds at 512 bytes.
type meta struct {
	Version  int    `json:"v"`
	Control  string `json:"c,omitempty"`
	Media    string `json:"m,omitempty"`
	HTTP     string `json:"h,omitempty"`
	Draining bool   `json:"d,omitempty"`
	Overdue  bool   `json:"u,omitempty"`
	Protocol uint32 `json:"p,omitempty"`
	Can      string `json:"x,omitempty"`
	MediaIPs string `json:"a,omitempty"`
	Build    string `json:"b,omitempty"`
}

// maxMediaIPsBytes is enough for four addresses.
const maxMediaIPsBytes = 160

// maxVersionBytes is enough for "0.1.0+65fd839c-modified".
const maxVersionBytes = 40

func encodeMeta(node Node) []byte {
	m := meta{
		Version: metaVersion, Control: node.Control, Media: node.Media, HTTP: node.HTTP, Draining: node.Draining, Overdue: node.Overdue, Protocol: node.Protocol, Can: node.Capabilities,
		MediaIPs: node.MediaIPs, Build: node.Version,
	}
	text, err := json.Marshal(m)
	if len(text) > memberlist.MetaMaxSize {
		m.Build = ""
		text, err = json.Marshal(m)
	}
	// Without them only relayed clients miss the node.
	if len(text) > memberlist.MetaMaxSize {
		m.MediaIPs = ""
		text, err = json.Marshal(m)
	}
	if err != nil {
		// Encoding these types cannot fail.
		return nil
	}
	return text
}

// parseMember reads what it understands of a later version's metadata. Its errors wrap errForeign.
func parseMember(name string, text []byte) (Node, error) {
	node, err := parseMemberName(name)
	if err != nil {
		return Node{}, err
	}
	m, err := readMeta(text)
	if err != nil {
		return Node{}, fmt.Errorf("%w: metadata of %s: %w", errForeign, name, err)
	}
	if node.Role == RoleSFU && (m.Control == "" || m.Media == "") {
		return Node{}, fmt.Errorf("%w: metadata of %s lacks an address", errForeign, name)
	}
	if err := errors.Join(validAddress(m.Control), validAddress(m.Media), validAddress(m.HTTP)); err != nil {
		return Node{}, fmt.Errorf("%w: metadata of %s: %w", errForeign, name, err)
	}
	node.Control, node.Media, node.HTTP, node.Protocol = m.Control, m.Media, m.HTTP, m.Protocol
	if validID(strings.ReplaceAll(m.Can, ",", "-")) == nil {
		node.Capabilities = m.Can
	}
	if len(m.MediaIPs) <= maxMediaIPsBytes {
		node.MediaIPs = m.MediaIPs
	}
	if len(m.Build) <= maxVersionBytes && !strings.ContainsFunc(m.Build, notOfAVersion) {
		node.Version = m.Build
	}
	node.Draining, node.Overdue, node.Later = m.Draining, m.Draining && m.Overdue, m.Version > metaVersion
	return node, nil
}

func notOfAVersion(r rune) bool {
	return !strings.ContainsRune("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.+-_", r)
}

// readMeta leaves out the keys whose types or addresses a later version has changed.
func readMeta(text []byte) (m meta, err error) {
	var version struct {
		V int `json:"v"`
	}
	if err := json.Unmarshal(text, &version); err != nil {
		return meta{}, err
	}
	if version.V < metaVersion {
		return meta{}, fmt.Errorf("its version is %d, want %d or later", version.V, metaVersion)
	}
	err = json.Unmarshal(text, &m)
	// A key of another type does not keep the others from being read.
	var wrongType *json.UnmarshalTypeError
	if version.V == metaVersion || err != nil && !errors.As(err, &wrongType) {
		return m, err
	}
	for _, address := range []*string{&m.Control, &m.Media, &m.HTTP} {
		if validAddress(*address) != nil {
			*address = ""
		}
	}
	return m, nil
}
