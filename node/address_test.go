package node

import (
	"net"
	"testing"
)

func TestAnnouncedAddresses(t *testing.T) {
	everywhere, here := &net.TCPAddr{IP: net.IPv6zero, Port: 7}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7}
	host := func() (string, error) { return "box", nil }
	for _, test := range []struct {
		wanted string
		bound  net.Addr
		want   string
	}{
		{"", here, "127.0.0.1:7"},
		{"", everywhere, "box:7"},
		{"sfu-1", everywhere, "sfu-1:7"},
		{"sfu-1:99", here, "sfu-1:99"},
		{"[fe80::1]", everywhere, "[fe80::1]:7"},
	} {
		if got, err := reachable(test.wanted, test.bound, host); err != nil || got != test.want {
			t.Errorf("reachable(%q, %s) = %q, %v; want %q", test.wanted, test.bound, got, err, test.want)
		}
	}
	if got, err := beside("sfu-1:7981", &net.UDPAddr{IP: net.IPv6zero, Port: 9}); err != nil || got != "sfu-1:9" {
		t.Errorf("media of a node that listens everywhere is told as %q, %v", got, err)
	}
}
