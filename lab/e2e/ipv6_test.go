//go:build long && linux

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/internal/tool"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/hosts"
)

// TestCallsOverIPv6Only has calls of two browsers where no node and no cable has an IPv4 address: page, gossip, control, store and media,
// straight to the media nodes, and over TLS through the relay of the signaling nodes. As in TestCallsBehindAFirewall nodes are killed.
func TestCallsOverIPv6Only(t *testing.T) {
	if !runsAlone(t) {
		return
	}
	certFile, keyFile := trustedByBrowsers(t)
	c, restartEnv := clusterOfIPv6(t, certFile, keyFile)
	var pages []string
	for _, name := range []string{"signaling-1", "signaling-2"} {
		node, err := c.Node(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, node.Addresses[devcluster.AddressHTTP])
	}
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
	network, err := hosts.Make(hostNames())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := network.Close(); err != nil {
			t.Error(err)
		}
	})
	nsenter := tool.Find(t, "nsenter")
	const on = "echo 0 >/proc/sys/net/ipv6/conf/all/disable_ipv6; ip link set lo down; ip link set lo up; ip -6 addr add %s/64 dev eth0 nodad; ip -4 addr flush dev eth0; "
	command(t, fmt.Sprintf(on, "fd77::1")+"ip -6 route add default dev eth0", "sh", "-e")
	options := devcluster.Options{Listen: "[::1]:0", Hosts: make(map[string]devcluster.Host), NodeEnv: make(map[string][]string)}
	names := make(map[string]string)
	for _, name := range hostNames() {
		h, err := network.Host(name)
		if err != nil {
			t.Fatal(err)
		}
		ip6 := "fd77::" + h.IP[strings.LastIndexByte(h.IP, '.')+1:]
		command(t, fmt.Sprintf(on, ip6), nsenter, "--net="+h.Space, "sh", "-e")
		options.Hosts[name] = devcluster.Host{IP: ip6, Space: h.Space}
		if strings.HasPrefix(name, "signaling") {
			options.NodeEnv[name] = relaying(name, ip6, certFile, keyFile)
			names[name+relayDomain] = ip6
		}
	}
	hostsHaveNames(t, names)
	return startCluster(t, options), options.NodeEnv
}
