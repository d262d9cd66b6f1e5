package signaling

import (
	"net/http"
	"net/netip"
	"testing"
)

var testProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:1::/64")}

func TestWhoARequestCountsFor(t *testing.T) {
	for _, tc := range []struct {
		remote  string
		headers []string
		want    string // empty for nobody
	}{
		{"198.51.100.1:1", nil, "198.51.100.1/32"},
		{"198.51.100.1:1", []string{"203.0.113.1"}, "198.51.100.1/32"}, // said by a stranger
		{"[2001:db8:2::1]:1", nil, "2001:db8:2::/64"},
		{"10.0.0.1:1", []string{"203.0.113.1"}, "203.0.113.1/32"},
		{"[::ffff:10.0.0.1]:1", []string{"203.0.113.1:99"}, "203.0.113.1/32"},
		{"10.0.0.1:1", []string{"198.51.100.66, 203.0.113.1, 10.2.3.4"}, "203.0.113.1/32"},
		{"10.0.0.1:1", []string{"198.51.100.66", "[2001:db8:2::1], 2001:db8:1::5"}, "2001:db8:2::/64"},
		{"10.0.0.1:1", nil, ""},
		{"10.0.0.1:1", []string{"203.0.113.1, nonsense"}, ""},
		{"10.0.0.1:1", []string{"10.0.0.2,10.0.0.3"}, ""},
		{"127.0.0.1:1", nil, ""},
		{"10.0.0.1:1", []string{"::1"}, ""},
		{"pipe", nil, ""},
	} {
		got := addressOf(&http.Request{RemoteAddr: tc.remote, Header: http.Header{"X-Forwarded-For": tc.headers}}, testProxies)
		if got.IsValid() != (tc.want != "") || got.IsValid() && got.String() != tc.want {
			t.Errorf("%s with %q counts for %v, want %q", tc.remote, tc.headers, got, tc.want)
		}
	}
}

func FuzzForwardedFor(f *testing.F) {
	for _, header := range []string{"", "203.0.113.1, 10.0.0.1", "[::1]:80,", ",,,", "fe80::1%eth0"} {
		f.Add(header)
	}
	f.Fuzz(func(t *testing.T, header string) {
		// Whatever a client writes before what the proxy adds, it counts for the address that the proxy saw.
		if got := forwardedFor(header+", 203.0.113.1", testProxies); got != netip.MustParseAddr("203.0.113.1") {
			t.Fatalf("%q makes %v", header, got)
		}
		if got := forwardedFor(header, testProxies); got.IsValid() && (got.Is4() && got.As4()[0] == 10) {
			t.Fatalf("%q makes %v, a proxy", header, got)
		}
	})
}
