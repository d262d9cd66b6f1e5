package relay

import (
	"bufio"
	"bytes"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

func TestServers(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	own := &Issuer{URLs: []string{"turn:a"}, Secrets: secrets, Life: time.Hour}
	servers, life := Servers{Static: []wire.ICEServer{{URLs: []string{"stun:b"}}}, Issuers: []*Issuer{own}}.For("p-ada", time.Time{}, now)
	if len(servers) != 2 || life != time.Hour || !strings.HasPrefix(servers[1].Username, "1700003600:") {
		t.Fatalf("%+v for %v", servers, life)
	}
	// As coturn computes it: base64 of HMAC-SHA1 of the user name.
	if got := password([]byte("north"), "1433895918:ada"); got != "KJ5PTMBeGkZIwdEVUss3BPdY8wE=" {
		t.Errorf("password %s", got)
	}
	ends := now.Add(3 * time.Minute)
	servers, life = Servers{Issuers: []*Issuer{own}}.For("p-ada", ends, now)
	u, ok := parseUsername(servers[0].Username)
	if life != 3*time.Minute || !ok || !u.ends || !u.expires.Equal(ends) || u.session != "p-ada" {
		t.Errorf("of a session that ends: %+v for %v", servers, life)
	}
	if servers, life := (Servers{Issuers: []*Issuer{own}}).For("p-ada", now.Add(2*time.Hour), now); life != time.Hour || !strings.HasPrefix(servers[0].Username, "1700003600:") {
		t.Errorf("of a session that ends later: %+v for %v", servers, life)
	}
	if servers, life := (Servers{}).For("p-ada", time.Time{}, now); len(servers) != 0 || life != 0 {
		t.Errorf("%+v for %v", servers, life)
	}
}

func TestMediaSocketsAreThoseThatClientsAreTold(t *testing.T) {
	g := NewGossiped(views{&cluster.View{Nodes: map[ring.NodeID]cluster.Node{
		"sfu-1": {Control: "10.0.0.1:7983", Media: "10.0.0.1:7982", MediaIPs: "192.0.2.1,2001:db8::1"},
		"sfu-2": {Control: "10.0.0.2:7983", Media: "10.0.0.2:7982"},
		"sfu-3": {Control: "sfu-3:7983", Media: "sfu-3:7982", MediaIPs: "nonsense"},
	}, Signaling: map[ring.NodeID]cluster.Node{"signaling-1": {HTTP: "10.0.0.9:7880"}}}})
	for at, want := range map[string]bool{
		"192.0.2.1:7982": true, "[2001:db8::1]:7982": true, "10.0.0.2:7982": true,
		"10.0.0.1:7982": false, "192.0.2.1:7983": false, "10.0.0.2:7983": false, "10.0.0.9:7880": false, "127.0.0.1:7982": false,
	} {
		if got := g.HasSocket(netip.MustParseAddrPort(at)); got != want {
			t.Errorf("%s is a media socket: %v", at, got)
		}
	}
	if g.HasAddress(netip.MustParseAddr("10.0.0.9")) || !g.HasAddress(netip.MustParseAddr("192.0.2.1")) {
		t.Error("addresses do not follow the sockets")
	}
	if NewGossiped(views{}).HasAddress(netip.MustParseAddr("127.0.0.1")) {
		t.Error("there is a media node before the first view")
	}
}

func FuzzUsername(f *testing.F) {
	f.Add((&Issuer{Secrets: secrets, Life: time.Hour}).Server("p-ada", time.Time{}, time.Unix(1_700_000_000, 0)).Username)
	f.Add((&Issuer{Secrets: secrets, Life: time.Hour}).Server("p-ada", time.Unix(1_700_000_060, 0), time.Unix(1_700_000_000, 0)).Username)
	for _, text := range []string{"1:a.!ends", "", ":", "1:", "1:.", "1:a.b", "-1:a.b", "+1:a.b", "01:a.b", "99999999999999999999:a.b", "1:a.b:c", "1:a.b\x00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, ok := parseUsername(text)
		if !ok {
			return
		}
		if u.session == "" || strings.ContainsAny(u.session, ": \n\x00") || u.expires.Unix() < 0 || len(text) > maxUsernameBytes {
			t.Fatalf("%q was read as %+v", text, u)
		}
		expiry, _, _ := strings.Cut(text, ":")
		if again := expiry + ":" + u.mark + "." + u.session + map[bool]string{true: endsSuffix}[u.ends]; again != text {
			t.Fatalf("%q was read as %q", text, again)
		}
	})
}

// FuzzFrames: every frame is whole, fits, and Pion's 16-bit sum of its length does not overflow.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("\x00\x01\x00\x00\x21\x12\xa4\x42123456789012"))
	f.Add([]byte("\x40\x00\x00\x05hello\x00\x00\x00"))
	f.Add([]byte("\x40\x00\xff\xfc"))
	f.Add([]byte("\x00\x01\xff\xec"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		from := bufio.NewReaderSize(bytes.NewReader(stream), inboundBytes)
		buffer := make([]byte, inboundBytes)
		for read := 0; ; {
			n, err := readFrame(from, buffer)
			if err != nil {
				return
			}
			if n < 4 || n > maxFrameBytes || n%4 != 0 || !bytes.Equal(buffer[:n], stream[read:read+n]) {
				t.Fatalf("read %d bytes: %x", n, buffer[:n])
			}
			read += n
		}
	})
}
