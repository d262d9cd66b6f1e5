package cluster

import (
	"bytes"
	"errors"
	"math"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

func validConfig() Config {
	return Config{
		Node: sfuNode("sfu-1", 1), Bind: "127.0.0.1:0", Keys: [][]byte{bytes.Repeat([]byte{7}, keyBytes)}, Solo: true,
	}
}

func TestMetaRoundTripsAtItsLongest(t *testing.T) {
	c := validConfig()
	c.Node.ID = ring.NodeID(strings.Repeat("n", maxIDBytes))
	c.Node.Control = strings.Repeat("c", maxAddressBytes-6) + ":65535"
	c.Node.Media = strings.Repeat("m", maxAddressBytes-6) + ":65535"
	c.Node.Draining, c.Node.Overdue, c.Node.Protocol, c.Node.Capabilities = true, true, 1, "live-move"
	if err := c.Validate(); err != nil {
		t.Fatalf("two addresses of %d bytes: %v", maxAddressBytes, err)
	}
	text := encodeMeta(c.Node)
	if len(text) > memberlist.MetaMaxSize {
		t.Fatalf("metadata has %d bytes", len(text))
	}
	if back, err := parseMember(memberName(c.Node), text); err != nil || back != c.Node {
		t.Fatalf("parsed %+v, %v, want %+v", back, err, c.Node)
	}
	c.Node.HTTP = strings.Repeat("h", maxAddressBytes-6) + ":65535"
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "use shorter host names") {
		t.Fatalf("three addresses of %d bytes: %v, want a refusal", maxAddressBytes, err)
	}
}

func TestValidateListsEveryFault(t *testing.T) {
	c := Config{
		Node: Node{ID: "a@b", Role: "observer", Control: "nowhere"}, Bind: "localhost:7000",
		Advertise: "host:port", Join: []string{"seed"}, Keys: [][]byte{[]byte("short")},
	}
	err := c.Validate()
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		`node name "a@b"`, "boot id", `role "observer"`, `control address "nowhere"`, "must be an IP address",
		"advertise address", `join address "seed"`, "5 bytes, want 32",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("fault %q is not named in:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "short") {
		t.Error("the key is in the error")
	}
	if err := (Config{Node: sfuNode("a", 1), Bind: "[::]:7000", Keys: [][]byte{make([]byte, keyBytes)}}).Validate(); err == nil ||
		!strings.Contains(err.Error(), "name the address to advertise") || !strings.Contains(err.Error(), "no members to join") {
		t.Errorf("unspecified IPv6 without an address to advertise, nobody to join: %v", err)
	}
	if text := validConfig().LogValue().String(); strings.Contains(text, "\a") || !strings.Contains(text, "sfu-1") {
		t.Errorf("logged as %q", text)
	}
}

func TestMemberlistLinesKeepTheirLevel(t *testing.T) {
	for line, want := range map[string][2]string{
		"[WARN] memberlist: Refuting a suspect message (from: x)\n": {"WARN", "Refuting a suspect message (from: x)"},
		"[ERR] Failed to shutdown transport":                        {"ERR", "Failed to shutdown transport"},
		"plain":                                                     {"INFO", "plain"},
		"[odd":                                                      {"INFO", "[odd"},
	} {
		if severity, text := parseMemberlistLine(line); severity != want[0] || text != want[1] {
			t.Errorf("%q is %q, %q, want %q", line, severity, text, want)
		}
	}
}

// An upgraded neighbour stays in sight with what this version can read of it.
func TestMemberOfALaterVersionStaysVisible(t *testing.T) {
	const name = "sfu/sfu-1@0000000000001-00000000"
	want := Node{Role: RoleSFU, ID: "sfu-1", Boot: "0000000000001-00000000", Control: "a:1", Media: "a:2", Later: true}
	for text, draining := range map[string]bool{
		`{"v":2,"c":"a:1","m":"a:2","d":true,"new":{"a":[1]}}`:             true,
		`{"v":2,"c":"a:1","m":"a:2","d":{"since":5},"h":["a:1","b:1"]}`:    false,
		`{"v":300,"c":"a:1","m":"a:2","h":"unix:/run/x","x":"a b","p":-1}`: false,
	} {
		want.Draining = draining
		if got, err := parseMember(name, []byte(text)); err != nil || got != want {
			t.Errorf("%s is read as %+v, %v, want %+v", text, got, err, want)
		}
	}
	if got, err := parseMember("signaling/signaling-1@1", []byte(`{"v":2,"c":7,"h":7}`)); err != nil || !got.Later {
		t.Errorf("a signaling node is read as %+v, %v", got, err)
	}
	for _, text := range []string{`{"v":2,"c":"a:1","m":7}`, `{"c":"a:1","m":"a:2"}`, `{"v":1,"c":"a:1","m":"a:2","d":7}`, `{"v":"2"}`, `[]`} {
		if got, err := parseMember(name, []byte(text)); !errors.Is(err, errForeign) {
			t.Errorf("%s is read as %+v, %v", text, got, err)
		}
	}
}

func FuzzParseMember(f *testing.F) {
	f.Add("sfu/sfu-1@0000000000001-00000000", encodeMeta(sfuNode("sfu-1", 1)))
	f.Add("sfu/a@b@c", []byte(`{"v":2}`))
	f.Add("sfu/sfu-1@1", []byte(`{"v":2,"c":"a:1","m":"a:2","d":7,"h":[]}`))
	f.Add("signaling/signaling-1@1", []byte(`{"v":1,"h":"[::1]:80","x":1}`))
	f.Fuzz(func(t *testing.T, name string, text []byte) {
		node, err := parseMember(name, text)
		if err != nil {
			if !errors.Is(err, errForeign) {
				t.Fatalf("%v does not wrap errForeign", err)
			}
			return
		}
		if memberName(node) != name {
			t.Fatalf("%q parsed as %q", name, memberName(node))
		}
		node.Later = false // we write our own version
		if back, err := parseMember(name, encodeMeta(node)); err != nil || back != node {
			t.Fatalf("%+v re-encodes as %+v, %v", node, back, err)
		}
		for _, address := range []string{node.Control, node.Media, node.HTTP} {
			if _, _, err := net.SplitHostPort(address); address != "" && err != nil {
				t.Fatalf("address %q accepted", address)
			}
		}
	})
}

func FuzzParseMessage(f *testing.F) {
	from := Node{Role: RoleSFU, ID: "sfu-1", Boot: pin.BootID("0000000000001-00000000")}
	f.Add(message{kind: kindLoad, from: from, load: Load{Seq: 1, CeilingBitsPerSecond: maxLoadBitsPerSecond, Rooms: math.MaxUint32, Watchers: 3, Synced: pin.IncarnationsOf([]pin.Incarnation{1, math.MaxUint64})}}.encode())
	f.Add(message{kind: kindLoad, from: from, load: Load{Seq: math.MaxUint64, EgressBitsPerSecond: math.MaxUint64}}.encode())
	f.Add(message{kind: kindLeave, from: from}.encode())
	f.Add(message{kind: kindDead, from: from, age: time.Minute}.encode())
	f.Add(message{kind: kindHello, from: from}.encode())
	f.Add([]byte{1, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1})
	f.Fuzz(func(t *testing.T, in []byte) {
		m, err := parseMessage(in)
		if err != nil {
			if !errors.Is(err, errForeign) {
				t.Fatalf("%v does not wrap errForeign", err)
			}
			return
		}
		if back, err := parseMessage(m.encode()); err != nil || back != m {
			t.Fatalf("%+v re-encodes as %+v, %v", m, back, err)
		}
	})
}

func FuzzParseState(f *testing.F) {
	from := Node{Role: RoleSFU, ID: "sfu-1", Boot: pin.BootID("0000000000001-00000000")}
	f.Add(encodeState([]message{{kind: kindHello, from: from}, {kind: kindLoad, from: from, load: Load{Seq: 9}}, {kind: kindLeave, from: from}}))
	f.Add([]byte{0, 0, 0})
	f.Fuzz(func(t *testing.T, in []byte) {
		messages, passed, err := parseState(in)
		if passed != nil && !errors.Is(passed, errForeign) {
			t.Fatalf("%v does not wrap errForeign", passed)
		}
		if err != nil {
			if !errors.Is(err, errForeign) {
				t.Fatalf("%v does not wrap errForeign", err)
			}
			return
		}
		if back, _, err := parseState(encodeState(messages)); err != nil || !slices.Equal(back, messages) {
			t.Fatalf("%+v re-encodes as %+v, %v", messages, back, err)
		}
	})
}
