//go:build long && linux

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/internal/child"
	"github.com/holdfast-rtc/holdfast/internal/tool"
	"github.com/holdfast-rtc/holdfast/lab/browser"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/hosts"
)

// TestCallsOverIPv6Only has calls of two browsers where no node and no cable has an IPv4 address: page, gossip, control, store and media,
// straight to the media nodes, and over TLS through the relay of the signaling nodes. As in TestCallsBehindAFirewall nodes are killed.
func TestCallsOverIPv6Only(t *testing.T) {
	if !runsAlone(t) {
		return
	}
	// The headless shell is given no camera: it hides its addresses behind mDNS names, which Chromium on Linux has by IPv4 only.
	certFile, keyFile := trustedByBrowsers(t, browser.Whole())
	c, restartEnv := clusterOfIPv6(t, certFile, keyFile)
	pages := addressesOf(t, c, child.AddressHTTP, "signaling-1", "signaling-2")
	secure := frontWithTLS(t, certFile, keyFile, pages)
	relayed := fmt.Sprintf("ip6 nexthdr udp drop; tcp dport { %s, %s } accept; tcp flags & (syn | ack) == syn drop", turnsPort, ports(t, pages))
	for _, o := range []office{
		{name: "IPv6 only", path: "host udp 6"},
		{name: "IPv6 only, TURN over TLS", path: "relay tls 6", filter: relayed},
	} {
		t.Run(o.name, func(t *testing.T) { o.hasCalls(t, c, clients{secure, certFile, restartEnv}) })
	}
}

// clusterOfIPv6 gives each host an IPv6 address in the place of its own.
func clusterOfIPv6(t *testing.T, certFile, keyFile string) (*devcluster.Cluster, map[string][]string) {
	t.Helper()
	all := makeHosts(t)
	haveIPv6(t, all, "ip -4 addr flush dev eth0")
	return clusterOn(t, all, devcluster.Options{Listen: "[::1]:0"}, func(h hosts.Host) (ip string, env []string) {
		ip = ip6Of(h)
		if strings.HasPrefix(h.Name, "signaling") {
			env = relaying(h.Name, ip, certFile, keyFile)
		}
		return ip, env
	})
}

// haveIPv6 gives each host, and this process, an IPv6 address, and runs a command in each.
func haveIPv6(t *testing.T, all []hosts.Host, more string) {
	t.Helper()
	nsenter := tool.Find(t, "nsenter")
	const on = "echo 0 >/proc/sys/net/ipv6/conf/all/disable_ipv6; ip link set lo down; ip link set lo up; ip -6 addr add %s/64 dev eth0 nodad; "
	command(t, fmt.Sprintf(on, "fd77::1")+more+"; ip -6 route add default dev eth0", "sh", "-e")
	for _, h := range all {
		command(t, fmt.Sprintf(on, ip6Of(h))+more, nsenter, "--net="+h.Space, "sh", "-e")
	}
}

func ip6Of(h hosts.Host) string { return "fd77::" + h.IP[strings.LastIndexByte(h.IP, '.')+1:] }
