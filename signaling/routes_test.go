package signaling

import (
	"net/url"
	"path"
	"strings"
	"testing"
)

// FuzzEmbeds lets the Origin header be whatever it likes: nobody is let in whose host is not
// on the list.
func FuzzEmbeds(f *testing.F) {
	for _, origin := range []string{"", "null", "https://app.example.org", "https://example.org.evil.com", "://", "https://[::1", "https://app.example.org@evil.com/"} {
		f.Add(origin)
	}
	s := &Server{config: Config{Origins: []string{"*.example.org", "exact.net:8080"}}}
	f.Fuzz(func(t *testing.T, origin string) {
		if !s.embeds(origin) {
			return
		}
		u, err := url.Parse(origin)
		if err != nil {
			t.Fatalf("%q is let in and is no URL", origin)
		}
		host := strings.ToLower(u.Host)
		if ok, _ := path.Match("*.example.org", host); !ok && host != "exact.net:8080" {
			t.Fatalf("%q is let in: its host is %q", origin, host)
		}
	})
}
