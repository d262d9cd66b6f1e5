//go:build long && linux

package e2e

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/child"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/internal/tool"
	"github.com/holdfast-rtc/holdfast/lab/browser"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/hosts"
)

const (
	joinBound = 15 * time.Second // a busy machine; what it took is printed
	officeIP  = "10.77.0.1"      // package hosts gives it to this process
	behindNAT = "192.168.5.1"
	turnPort  = "3478"
	turnsPort = "443"

	relayDomain = ".example.test" // after the name of the signaling node
)

func hostNames() []string {
	return []string{"store", "sfu-1", "sfu-2", "sfu-3", "signaling-1", "signaling-2"}
}

// office is a firewall at the browsers' own cable. What it drops goes nowhere, silently.
type office struct {
	name, filter, more string
	path               string // of media; a regular expression
}

// clients are how browsers reach the page, and the environment of nodes that are started again.
type clients struct {
	base, certFile string
	env            map[string][]string
}

// TestCallsBehindAFirewall has calls of a Chromium and a Firefox behind three firewalls. In each, the room's media node is killed and then each
// signaling node. It prints how long joining took and the gaps.
func TestCallsBehindAFirewall(t *testing.T) {
	if !runsAlone(t) {
		return
	}
	c, cl, pages := clusterBehindTLS(t, turnPort)
	relayed := turnAlone(t, c)
	relayed.path = "relay (udp|tcp)" // Firefox keeps the first that has answered.
	for _, o := range []office{
		relayed,
		turnOverTLS(t, pages),
		{name: "NAT", path: "prflx udp", filter: "meta mark 1 drop", more: `table inet nat {
	chain unnatted { type filter hook output priority 0; oifname "eth0" ip saddr ` + officeIP + ` ip protocol udp meta mark set 1; }
	chain out { type nat hook postrouting priority srcnat; oifname "eth0" ip saddr ` + behindNAT + ` masquerade random; }
}`},
	} {
		t.Run(o.name, func(t *testing.T) { o.hasCalls(t, c, cl) })
	}
}

// clusterBehindTLS is a cluster of hosts (clusterOfHosts), how browsers reach it, and the addresses of its pages.
func clusterBehindTLS(t *testing.T, turnPort string) (c *devcluster.Cluster, cl clients, pages []string) {
	t.Helper()
	certFile, keyFile := trustedByBrowsers(t, browser.Path())
	c, env := clusterOfHosts(t, certFile, keyFile, turnPort)
	pages = addressesOf(t, c, child.AddressHTTP, "signaling-1", "signaling-2")
	return c, clients{frontWithTLS(t, certFile, keyFile, pages), certFile, env}, pages
}

// turnAlone passes nothing to media nodes, and TURN over UDP.
func turnAlone(t *testing.T, c *devcluster.Cluster) office {
	t.Helper()
	media := hostsOf(t, addressesOf(t, c, child.AddressMedia, "sfu-1", "sfu-2", "sfu-3"))
	return office{
		name: "TURN alone", path: "relay udp",
		filter: "udp dport " + turnPort + " accept; ip protocol udp drop; ip daddr { " + media + " } drop",
	}
}

func turnOverTLS(t *testing.T, pages []string) office {
	t.Helper()
	return office{
		name: "TCP to the page and TURN over TLS", path: "relay tls",
		filter: fmt.Sprintf("tcp dport { %s, %s } accept; ip protocol udp drop; tcp flags & (syn | ack) == syn drop", turnsPort, ports(t, pages)),
	}
}

// addressesOf are those of one kind that nodes have told.
func addressesOf(t *testing.T, c *devcluster.Cluster, kind string, names ...string) []string {
	t.Helper()
	var all []string
	for _, name := range names {
		node, err := c.Node(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, node.Addresses[kind])
	}
	return all
}

// runsAlone has a process of its own run the test, in an empty network, and is true in that.
func runsAlone(t *testing.T) bool {
	t.Helper()
	if hosts.Alone() {
		return true
	}
	needFirefox(t, 4)
	for _, command := range []string{"nft", "certutil"} {
		tool.Find(t, command)
	}
	if err := hosts.Able(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("NOT tested: firewalls. %v; run the tests as root", err)
	}
	if err := hosts.RunAlone(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v=true", "-test.timeout=9m"); err != nil {
		t.Fatal(err)
	}
	return false
}

// hasCalls is what a Chromium and a Firefox, which comes second, do behind the firewall.
func (o office) hasCalls(t *testing.T, c *devcluster.Cluster, cl clients) {
	o.build(t)
	room := o.room(t)
	clara := join(t, cl.base, room, "Clara", nil)
	clara.knowsItself(t)
	felix := &participant{page: openFirefox(t, "Felix", callAddress(cl.base, room, "Felix", nil), cl.certFile)}
	felix.knowsItself(t)
	people := []*participant{clara, felix}
	allDecodeAll(t, time.Minute, people)
	var opened, joined float64 // ms ago; to join, a page asks for a token first
	felix.mustEval(t, "performance.now()", &opened)
	felix.mustEval(t, "performance.now() - performance.getEntriesByType('resource').find(({ name }) => name.includes('/dev/token')).startTime", &joined)
	t.Logf("both decode each other %.0f ms after the second joined, %.0f ms after its page was opened", joined, opened)
	if took := time.Duration(opened * float64(time.Millisecond)); took > joinBound {
		t.Errorf("that is more than %v", joinBound)
	}
	for _, p := range people {
		p.goes(t, o.path)
		p.mark(t)
		p.watchFrames(t)
		p.mustEval(t, "(globalThis.__held = 0, call.addEventListener('slot', ({ detail }) => { globalThis.__held += detail.paused; }))", nil)
	}
	gaps := func(dead string) {
		t.Helper()
		allDecodeAll(t, time.Minute, people)
		for _, p := range people {
			p.goes(t, o.path)
			t.Logf("%s: %v without a new frame while %s died", p.name, p.longestFrameGap(t).Round(time.Millisecond), dead)
			p.mustEval(t, "(() => { globalThis.__gap = 0; })()", nil)
		}
	}
	before := map[*participant]callStats{clara: clara.mustStats(t), felix: felix.mustStats(t)}
	kill(t, c, "sfu-1")
	clara.awaitsMove(t, before[clara], "restart")
	felix.awaitsMove(t, before[felix], "new-connection")
	gaps("sfu-1")
	clara.unchanged(t)
	felix.sameElements(t)
	felix.mark(t)
	restart(t, c, "sfu-1", cl.env["sfu-1"]...)
	for _, name := range []string{"signaling-1", "signaling-2"} {
		kill(t, c, name)
		eventually(t, time.Minute, "all are attached again after the kill of "+name, func() error {
			held, err := askHoldings(t.Context(), c)
			if err != nil {
				return err
			}
			return allAttached(held[room], len(people))
		})
		gaps(name)
		for _, p := range people {
			p.unchanged(t)
			var held int
			if p.mustEval(t, "globalThis.__held", &held); held > 0 {
				t.Errorf("%s: a picture was held back %d times, as on a narrow path", p.name, held)
			}
		}
		restart(t, c, name, cl.env[name]...)
	}
}

// room is one on sfu-1, in which nobody of another office is.
func (o office) room(t *testing.T) string {
	t.Helper()
	return roomOn(t, "sfu-1", strings.ToLower(strings.ReplaceAll(o.name, " ", "-")))
}

// goes waits until media goes by a candidate of this type, to the relay or the node by this protocol.
func (p *participant) goes(t *testing.T, path string) {
	t.Helper()
	eventually(t, time.Minute, p.name+"'s media goes by "+path, func() error {
		var now string
		err := p.eval(`(async () => {
		  const stats = await __connections.findLast((pc) => pc.connectionState !== 'closed').getStats();
		  const transport = [...stats.values()].find(({ type }) => type === 'transport');
		  const local = stats.get(stats.get(transport?.selectedCandidatePairId)?.localCandidateId);
		  return `+"`${local?.candidateType} ${local?.relayProtocol ?? local?.protocol} ${String(local?.address).includes(':') ? 6 : 4}`"+`;
		})()`, &now)
		if err == nil && !regexp.MustCompile("^(?:"+path+")").MatchString(now) {
			err = fmt.Errorf("it goes by %s", now)
		}
		return err
	})
}

// build makes the firewall, and the network behind a NAT if there is one; the end of the test takes both away.
func (o office) build(t *testing.T) {
	t.Helper()
	script := "table netdev office {\n\tchain out { type filter hook egress device eth0 priority 0; " + o.filter + "; }\n}\n" + o.more
	command(t, script, "nft", "-f", "-")
	t.Cleanup(func() { command(t, "", "nft", "flush", "ruleset") })
	if o.more == "" {
		return
	}
	command(t, "", "ip", "link", "add", "inside", "type", "bridge")
	command(t, "", "ip", "addr", "add", behindNAT+"/24", "dev", "inside")
	command(t, "", "ip", "link", "set", "inside", "up")
	for _, network := range []string{"default", "10.77.0.0/24"} {
		command(t, "", "ip", "route", "replace", network, "dev", "eth0", "src", behindNAT)
	}
}

func command(t *testing.T, input, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Stdin = strings.NewReader(input)
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s %v: %v: %s\n%s", name, args, err, said, input)
	}
}

// clusterOfHosts has signaling nodes that relay, unless the port of that is "", and gives the environment of nodes.
func clusterOfHosts(t *testing.T, certFile, keyFile, turnPort string) (*devcluster.Cluster, map[string][]string) {
	t.Helper()
	return clusterOn(t, makeHosts(t), devcluster.Options{}, func(h hosts.Host) (ip string, env []string) {
		if turnPort != "" && strings.HasPrefix(h.Name, "signaling") {
			env = relaying(h.Name, h.IP, certFile, keyFile)
		}
		return h.IP, env
	})
}

func makeHosts(t *testing.T) (all []hosts.Host) {
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
	for _, name := range hostNames() {
		h, err := network.Host(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, h)
	}
	return all
}

// clusterOn has a node on each host, with the address and the environment that place gives, and a name for relays.
func clusterOn(t *testing.T, all []hosts.Host, options devcluster.Options, place func(hosts.Host) (ip string, env []string)) (*devcluster.Cluster, map[string][]string) {
	t.Helper()
	options.Hosts, options.NodeEnv = make(map[string]devcluster.Host), make(map[string][]string)
	names := make(map[string]string)
	for _, h := range all {
		ip, env := place(h)
		options.Hosts[h.Name], options.NodeEnv[h.Name] = devcluster.Host{IP: ip, Space: h.Space}, env
		names[h.Name+relayDomain] = ip
	}
	if err := hosts.Name(filepath.Join(t.TempDir(), "hosts"), names); err != nil {
		t.Fatal(err)
	}
	return startCluster(t, options), options.NodeEnv
}

// relaying is the environment of a signaling node that relays on a host. Firefox takes no relay over TLS but by a name.
func relaying(name, ip, certFile, keyFile string) []string {
	return []string{
		"HOLDFAST_TURN_LISTEN=" + net.JoinHostPort(ip, turnPort), "HOLDFAST_TURN_TLS_LISTEN=" + net.JoinHostPort(ip, turnsPort),
		"HOLDFAST_TURN_TLS_CERT=" + certFile, "HOLDFAST_TURN_TLS_KEY=" + keyFile, "HOLDFAST_TURN_PUBLIC=" + name + relayDomain,
	}
}

// frontWithTLS returns where the page is over https.
func frontWithTLS(t *testing.T, certFile, keyFile string, backends []string) string {
	t.Helper()
	binary, err := devcluster.Binary()
	if err != nil {
		t.Fatal(err)
	}
	loopback := "127.0.0.1:0"
	if strings.HasPrefix(backends[0], "[") {
		loopback = "[::1]:0"
	}
	free, err := net.Listen("tcp", loopback)
	if err != nil {
		t.Fatal(err)
	}
	at := free.Addr().String()
	_ = free.Close() // nobody else is in this network
	var said bytes.Buffer
	front := exec.Command(binary, "front", "--listen", at, "--backend", strings.Join(backends, ","), "--tls-cert", certFile, "--tls-key", keyFile)
	front.Stderr = &said
	if err := front.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = front.Process.Kill()
		_ = front.Wait()
		if t.Failed() {
			t.Logf("log of the front:\n%s", tail(said.String(), 40))
		}
	})
	eventually(t, time.Minute, "the front listens", func() error {
		conn, err := net.Dial("tcp", at)
		if err == nil {
			_ = conn.Close()
		}
		return err
	})
	return "https://" + at
}

// trustedByBrowsers writes a certificate that every browser of this process accepts, for pages and for TURN.
// Chromium's TURN client heeds the switch that names their keys. chromium is the one that pages are opened in.
func trustedByBrowsers(t *testing.T, chromium string) (certFile, keyFile string) {
	t.Helper()
	certFile, keyFile = testkit.Certificate(t, "127.0.0.1", "::1", "signaling-1"+relayDomain, "signaling-2"+relayDomain)
	text, err := os.ReadFile(certFile)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	script := fmt.Sprintf("#!/bin/sh\nexec %s --ignore-certificate-errors-spki-list=%s \"$@\"\n", chromium, base64.StdEncoding.EncodeToString(hash[:]))
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "chromium-headless-shell"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return certFile, keyFile
}

func ports(t *testing.T, addresses []string) string {
	t.Helper()
	return parts(t, addresses, func(_, port string) string { return port })
}

func hostsOf(t *testing.T, addresses []string) string {
	t.Helper()
	return parts(t, addresses, func(host, _ string) string { return host })
}

func parts(t *testing.T, addresses []string, part func(host, port string) string) string {
	t.Helper()
	var all []string
	for _, address := range addresses {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, part(host, port))
	}
	return strings.Join(all, ", ")
}
