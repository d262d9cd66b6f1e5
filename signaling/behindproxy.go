package signaling

import (
	"fmt"
	"net/http"
	"net/netip"
	"path"
	"slices"
	"strings"

	"github.com/holdfast-rtc/holdfast/internal/connlimit"
)

// maxHostBytes is more than a host name and a port have.
const maxHostBytes = 300

// behindProxy undoes what proxies do to requests. It takes Config.PathPrefix off their paths, so that the node's own routes serve both a proxy
// that passes the path on and whoever asks the node directly. It also puts the host that the browser asked for back into the request.
func (s *Server) behindProxy(next http.Handler) http.Handler {
	prefix := s.config.PathPrefix
	stripped := http.StripPrefix(prefix, next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if host := forwardedHost(r, s.config.TrustedProxies); host != "" {
			r.Host = host
		}
		switch {
		case prefix != "" && r.URL.Path == prefix:
			// The page's files are named relative to its directory, which needs the slash.
			to := *r.URL
			to.Path, to.RawPath = prefix+"/", ""
			http.Redirect(w, r, to.RequestURI(), http.StatusMovedPermanently)
		case prefix != "" && strings.HasPrefix(r.URL.Path, prefix+"/"):
			stripped.ServeHTTP(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// forwardedHost returns the first host in the X-Forwarded-Host of a trusted proxy, which is the one that the browser asked for; empty if there
// is none. A browser lets no page set this header, so a page cannot pretend that it is of this node.
func forwardedHost(r *http.Request, proxies []netip.Prefix) string {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !connlimit.Within(proxies, peer.Addr()) {
		return ""
	}
	first, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Host"), ",")
	if first = strings.TrimSpace(first); len(first) > maxHostBytes {
		return ""
	}
	return first
}

// ownPaths are asked for without the prefix, by other nodes, balancers and operators.
func ownPaths() []string { return []string{"api", "ws", "healthz", "readyz"} }

// checkPathPrefix accepts the empty prefix, and clean paths that hide no path of the node.
func checkPathPrefix(prefix string) error {
	if prefix == "" {
		return nil
	}
	odd := strings.ContainsFunc(prefix, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("/-_.~", c)
	})
	if odd || prefix[0] != '/' || prefix == "/" || path.Clean(prefix) != prefix {
		return fmt.Errorf("path prefix is %q, want one such as /call: letters, digits and -_.~, with a slash before each part and none at the end", prefix)
	}
	first, _, _ := strings.Cut(prefix[1:], "/")
	if slices.Contains(ownPaths(), first) {
		return fmt.Errorf("path prefix is %q, but /%s is a path of the node itself: choose another, or have the proxy take it off", prefix, first)
	}
	return nil
}

// warnOfOrigin tells the operator why a page is not let in. Often the page is the node's own, behind a proxy that changes Host.
func (s *Server) warnOfOrigin(r *http.Request) {
	if unlogged, ok := s.originLogs.Next(); ok {
		s.log.Warn("a page may not connect, because its host is not the one that was asked for: let the proxy pass Host on, or send X-Forwarded-Host and name the proxy "+
			"in --trusted-proxies; a page of another host needs --origin", "origin", fmt.Sprintf("%.200s", r.Header.Get("Origin")),
			"host", fmt.Sprintf("%.200s", r.Host), "remote", r.RemoteAddr, "unlogged", unlogged)
	}
}
