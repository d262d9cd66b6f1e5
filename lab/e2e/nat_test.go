//go:build long && linux

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/child"
	"github.com/holdfast-rtc/holdfast/internal/tool"
	"github.com/holdfast-rtc/holdfast/lab/browser"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/hosts"
)

// TestCallsToMediaNodesBehindNAT has a call whose media nodes are reached at public addresses alone, which a NAT maps one to one to their own:
// the call's first node was told its address, the others asked a STUN server. As in TestCallsBehindAFirewall nodes are killed.
func TestCallsToMediaNodesBehindNAT(t *testing.T) {
	if !runsAlone(t) {
		return
	}
	certFile, keyFile := trustedByBrowsers(t, browser.Path())
	all := makeHosts(t)
	stun := newCoturn(t, officeIP)
	stun.start(t)
	var private []string
	for _, h := range all {
		if isMedia(h) {
			private = append(private, h.IP)
			hasNAT(t, h, stun)
		}
	}
	reachPublic(t, all)
	c, env := clusterOn(t, all, devcluster.Options{}, func(h hosts.Host) (ip string, env []string) {
		switch {
		case h.Name == "sfu-1":
			env = []string{"HOLDFAST_MEDIA_ADVERTISE=" + publicOf(h)}
		case isMedia(h):
			env = []string{"HOLDFAST_MEDIA_STUN=" + stun.ip + ":" + stun.port}
		}
		return h.IP, env
	})
	for _, h := range all {
		if isMedia(h) {
			eventually(t, time.Minute, "signaling nodes reach "+h.Name, func() error {
				return logged(t, c, h.Name, "all media addresses that clients are told answer a signaling node")
			})
		}
	}
	pages := addressesOf(t, c, child.AddressHTTP, "signaling-1", "signaling-2")
	cl := clients{frontWithTLS(t, certFile, keyFile, pages), certFile, env}
	o := office{name: "public addresses alone", path: "host udp 4", filter: "ip daddr { " + strings.Join(private, ", ") + " } drop"}
	t.Run(o.name, func(t *testing.T) { o.hasCalls(t, c, cl) })
}

func isMedia(h hosts.Host) bool { return strings.HasPrefix(h.Name, "sfu") }

func publicOf(h hosts.Host) string { return "203.0.113." + h.IP[strings.LastIndexByte(h.IP, '.')+1:] }

// hasNAT puts a NAT before a media node: the STUN server sees its public address, too.
func hasNAT(t *testing.T, h hosts.Host, stun *coturn) {
	t.Helper()
	command(t, fmt.Sprintf(`table ip nat {
	chain in { type nat hook prerouting priority dstnat; ip daddr %[1]s dnat to %[2]s; }
	chain out { type nat hook postrouting priority srcnat; ip daddr %[3]s udp dport %[4]s snat to %[1]s; }
}`, publicOf(h), h.IP, stun.ip, stun.port), tool.Find(t, "nsenter"), "--net="+h.Space, "nft", "-f", "-")
}

// reachPublic leads everybody, this process too, to the public addresses of media nodes.
func reachPublic(t *testing.T, all []hosts.Host) {
	t.Helper()
	for _, to := range all {
		if !isMedia(to) {
			continue
		}
		route := []string{"ip", "route", "add", publicOf(to), "via", to.IP}
		command(t, "", route[0], route[1:]...)
		for _, from := range all {
			if from.Name != to.Name {
				command(t, "", tool.Find(t, "nsenter"), append([]string{"--net=" + from.Space}, route...)...)
			}
		}
	}
}
