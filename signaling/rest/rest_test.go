package rest

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/holdfast-rtc/holdfast/internal/readiness"
)

// TestRoutesAreDocumented: docs/API.md and openapi.json have each request that a signaling node answers, and no other.
func TestRoutesAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/API.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([A-Z]+)`?(?:, `([A-Z]+))? ([^`?]+)").FindAllStringSubmatch(string(doc), -1) {
		for _, method := range m[1:3] {
			route := m[3]
			if !strings.HasPrefix(route, "/api") && route != "/healthz" && route != readiness.Path {
				route = "/api/v1" + route
			}
			if method != "" {
				documented[method+" "+route] = true
			}
		}
	}
	var described struct{ Paths map[string]map[string]any }
	if err := json.Unmarshal(OpenAPI(), &described); err != nil {
		t.Fatal(err)
	}
	inDocument := map[string]bool{}
	for route, methods := range described.Paths {
		for method := range methods {
			if method != "parameters" {
				inDocument[strings.ToUpper(method)+" "+route] = true
			}
		}
	}
	a := New(Deps{Config: Config{Dev: true}, Killer: struct{ Killer }{}})
	answered := map[string]bool{}
	err = chi.Walk(a.Handler().(chi.Routes), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		route = strings.Replace(route, "/rooms/*", "/rooms/{room}", 1) // a room's name may contain slashes
		if route != "/*" && route != "/ws" && !strings.HasPrefix(route, "/rtc") {
			answered[method+" "+route] = true
		}
		return nil
	})
	if err != nil || len(answered) < 20 {
		t.Fatalf("%d routes, %v", len(answered), err)
	}
	for route := range inDocument {
		if !answered[route] {
			t.Errorf("openapi.json has %s, which no node answers", route)
		}
	}
	for route := range answered {
		if !inDocument[route] {
			t.Errorf("openapi.json has no %s", route)
		}
		if !documented[route] {
			t.Errorf("docs/API.md has no %s", route)
		}
	}
	for route := range documented {
		if !answered[route] {
			t.Errorf("docs/API.md has %s, which no node answers", route)
		}
	}
}

// FuzzEmbeds lets the Origin header be whatever it likes: nobody is let in whose host is not
// on the list.
func FuzzEmbeds(f *testing.F) {
	for _, origin := range []string{"", "null", "https://app.example.org", "https://example.org.evil.com", "://", "https://[::1", "https://app.example.org@evil.com/"} {
		f.Add(origin)
	}
	a := New(Deps{Config: Config{Origins: []string{"*.example.org", "exact.net:8080"}}})
	f.Fuzz(func(t *testing.T, origin string) {
		if !a.embeds(origin) {
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
