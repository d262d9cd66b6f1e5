//go:build long && linux

package e2e

import (
	"testing"

	"github.com/holdfast-rtc/holdfast/internal/child"
	"github.com/holdfast-rtc/holdfast/lab/browser"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/hosts"
)

// TestCallsOverBothFamilies has calls where media nodes have addresses of both, and one family is all that passes, or both are.
func TestCallsOverBothFamilies(t *testing.T) {
	if !runsAlone(t) {
		return
	}
	certFile, keyFile := trustedByBrowsers(t, browser.Whole()) // The headless shell hides its addresses.
	all := makeHosts(t)
	haveIPv6(t, all, ":")
	c, env := clusterOn(t, all, devcluster.Options{MediaHost: "::"}, func(h hosts.Host) (string, []string) { return h.IP, nil })
	pages := addressesOf(t, c, child.AddressHTTP, "signaling-1", "signaling-2")
	cl := clients{frontWithTLS(t, certFile, keyFile, pages), certFile, env}
	for _, o := range []office{
		{name: "both families", path: "host udp", filter: "meta mark 1 drop"},
		{name: "IPv4 of both", path: "host udp 4", filter: "ip6 version 6 drop"},
		{name: "IPv6 of both", path: "host udp 6", filter: "ip protocol udp drop"},
	} {
		t.Run(o.name, func(t *testing.T) { o.hasCalls(t, c, cl) })
	}
}
