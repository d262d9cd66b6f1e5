//go:build long && linux

package e2e

import (
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// TestCallsByTCP has a call of two browsers whose UDP is dropped, and there is no TURN: ICE over TCP to the media node. Its media node is
// killed and then each signaling node. It prints how long joining took and the gaps. With UDP let pass the same browsers use that.
func TestCallsByTCP(t *testing.T) {
	if !runsAlone(t) {
		return
	}
	certFile, keyFile := trustedByBrowsers(t)
	c, restartEnv := clusterOfHosts(t, certFile, keyFile, "")
	pages := addressesOf(t, c, devcluster.AddressHTTP, "signaling-1", "signaling-2")
	secure := frontWithTLS(t, certFile, keyFile, pages)
	for _, o := range []office{
		{name: "no UDP", path: "(prflx|host) tcp", filter: "ip protocol udp drop"},
		{name: "UDP and TCP", path: "host udp", filter: "meta mark 1 drop"},
	} {
		t.Run(o.name, func(t *testing.T) { o.hasCalls(t, c, clients{secure, certFile, restartEnv}) })
	}
	said := ""
	for _, name := range []string{"signaling-1", "signaling-2"} {
		text, err := c.Logs(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		said += text
	}
	const line = `"client's media goes by another way"`
	if !strings.Contains(said, line) || !strings.Contains(said, `"way":"TCP","udp":"no answer","tcp":"answered"`) {
		t.Errorf("no log of a signaling node has the line %s", line)
	}
}
