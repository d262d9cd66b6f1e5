//go:build long && linux

package e2e

import (
	"strings"
	"testing"
)

// TestCallsByTCP has a call of two browsers whose UDP is dropped, and there is no TURN: ICE over TCP to the media node. Its media node is
// killed and then each signaling node. It prints how long joining took and the gaps. With UDP let pass the same browsers use that.
func TestCallsByTCP(t *testing.T) {
	if !runsAlone(t) {
		return
	}
	c, cl, _ := clusterBehindTLS(t, "")
	for _, o := range []office{
		noUDP("ip protocol udp drop"),
		{name: "UDP and TCP", path: "host udp", filter: "meta mark 1 drop"},
	} {
		t.Run(o.name, func(t *testing.T) { o.hasCalls(t, c, cl) })
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

func noUDP(filter string) office {
	return office{name: "no UDP", path: "(prflx|host) tcp", filter: filter}
}
