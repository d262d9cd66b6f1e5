package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/balancer"
	"github.com/holdfast-rtc/holdfast/sfu"
	"github.com/holdfast-rtc/holdfast/signaling"
	"github.com/holdfast-rtc/holdfast/signaling/relay"
)

// exec runs a command line with nothing but the given environment of ours.
func exec(t *testing.T, env map[string]string, args ...string) (code int, out, err string) {
	t.Helper()
	for key, value := range env {
		t.Setenv(key, value)
	}
	var stdout, stderr bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // what would run must end at once
	code = run(ctx, args, streams{in: strings.NewReader(""), out: &stdout, err: &stderr})
	return code, stdout.String(), stderr.String()
}

var (
	goodKey  = strings.Repeat("k", 32)
	goodKeys = "app:" + strings.Repeat("s", 32)
)

// TestAConfigurationIsRefusedWithEveryFault: one run tells all there is to mend.
func TestAConfigurationIsRefusedWithEveryFault(t *testing.T) {
	tests := []struct {
		name string
		env  map[string]string
		args string
		want []string // each must be in the answer
	}{
		{"sfu without anything", nil, "sfu", []string{"HOLDFAST_CLUSTER_KEY", "--join", "--solo"}},
		{
			"sfu with bad addresses",
			map[string]string{"HOLDFAST_CLUSTER_KEY": "zyxw"},
			"sfu --control-listen nowhere --media-listen nowhere --gossip-listen nowhere --egress-bits 0 --media-advertise example --media-stun somewhere",
			[]string{"--media-stun \"somewhere\"", "--media-stun: give either", "--cluster-key", "--join", "--control-listen", "--media-listen", "--gossip-listen", "bits per second is 0", `"example" is not an IP`},
		},
		{"signaling without anything", nil, "signaling", []string{"HOLDFAST_CLUSTER_KEY", "HOLDFAST_API_KEYS", "--join"}},
		{
			"signaling with a short secret",
			map[string]string{"HOLDFAST_CLUSTER_KEY": goodKey, "HOLDFAST_API_KEYS": "app:zyxw"},
			"signaling --join x:1 --expected-size=-1",
			[]string{"--api-keys", "at least 32", "expected size is -1"},
		},
		{
			"signaling with limits that are none",
			map[string]string{"HOLDFAST_CLUSTER_KEY": goodKey, "HOLDFAST_API_KEYS": goodKeys},
			"signaling --solo --limit-identity joins=many --limit-address tea=1:1 --trusted-proxies balancer --max-sockets 0 --shed=-1",
			[]string{"--limit-identity", `"joins=many"`, "--limit-address", `"tea=1:1"`, `--trusted-proxies "balancer"`, "limit of sockets is 0", "shed is -1"},
		},
		{
			"signaling that relays in no way",
			map[string]string{"HOLDFAST_CLUSTER_KEY": goodKey, "HOLDFAST_API_KEYS": goodKeys, "HOLDFAST_ICE_SECRET": "wxyzwxyz", "HOLDFAST_ICE_PASSWORD": "vwvwvwvw"},
			"signaling --solo --tls-cert x --hsts=-1s --redirect-listen there --turn-listen here --turn-tls-listen 127.0.0.1:0 --turn-tls-cert z --turn-allocations 0 --ice-server example.org",
			[]string{"--tls-key", "--redirect-listen", "HSTS is -1s", "--turn-listen", "--turn-tls-cert", "--turn-allocations", `--ice-server "example.org"`, "--ice-secret", "--ice-username"},
		},
		{
			"signaling with origins that are no hosts",
			map[string]string{"HOLDFAST_CLUSTER_KEY": goodKey, "HOLDFAST_API_KEYS": goodKeys},
			"signaling --solo --origin https://a.example.org,b.example.org/x,[c.example.org,*.d.example.org:8443",
			[]string{`"https://a.example.org" is not a host`, `"b.example.org/x" is not`, `"[c.example.org" is not`},
		},
		{"dev with an origin that is no host", nil, "dev --origin http://a.example.org", []string{`"http://a.example.org" is not a host`}},
		{
			"signaling with servers that no browser takes",
			map[string]string{"HOLDFAST_CLUSTER_KEY": goodKey, "HOLDFAST_API_KEYS": goodKeys},
			"signaling --solo --ice-server turn://a.example.org,stun:b.example.org:99999,stun:c.example.org:0,stun:d.example.org?transport=udp,turn:e.example.org?transport=sctp,stun:f.example.org/x,http:g.example.org",
			[]string{
				`"turn://a.example.org": give a URL such as`, `"stun:b.example.org:99999": give a port of 1 to 65535`, `"stun:c.example.org:0": give a port`,
				`"stun:d.example.org?transport=udp": leave`, `"turn:e.example.org?transport=sctp": leave`, `"stun:f.example.org/x": give a URL`, `"http:g.example.org": give a URL`,
			},
		},
		{
			"signaling with a TURN server that nobody may use",
			map[string]string{"HOLDFAST_CLUSTER_KEY": goodKey, "HOLDFAST_API_KEYS": goodKeys},
			"signaling --solo --ice-server stun:a.example.org,turn:b.example.org:3478",
			[]string{`"turn:b.example.org:3478": give --ice-secret`},
		},
		{
			"signaling that relays over TLS without a certificate",
			map[string]string{"HOLDFAST_CLUSTER_KEY": goodKey, "HOLDFAST_API_KEYS": goodKeys},
			"signaling --solo --turn-tls-listen 127.0.0.1:0",
			[]string{"--turn-tls-cert", "--acme-host"},
		},
		{
			"signaling with names that nobody certifies",
			map[string]string{"HOLDFAST_CLUSTER_KEY": goodKey, "HOLDFAST_API_KEYS": goodKeys},
			"signaling --solo --tls-cert x --tls-key y --acme-host *.example.org,192.0.2.1,localhost,a.example.org:443 --acme-directory http://x --turn-tls-listen 127.0.0.1:0 --turn-public b.example.org",
			[]string{"--acme-host: give either", "wildcard", `"192.0.2.1"`, `"localhost"`, `"a.example.org:443"`, "--acme-cache", "--acme-directory", "--acme-accept-terms", `--turn-public "b.example.org"`},
		},
		{"front without anything", nil, "front --max-connections 0 --listen here", []string{"no backends", "limit of connections", "--listen"}},
		{"dev with impossible numbers", nil, "dev --sfu 0 --signaling 99 --listen here --redis there", []string{"--sfu 0", "--signaling 99", "--listen", "--redis"}},
		{"store at no address", nil, "store --listen here", []string{"--listen"}},
		{"token that never lasts", map[string]string{"HOLDFAST_API_KEYS": goodKeys}, "token --identity ada --ttl=-1s", []string{"--ttl"}},
		{
			"load of absurd numbers", nil, "load --rooms 0 --peers 9999 --publishers 10000 --join-rate 0 --duration 1000h",
			[]string{"--rooms 0", "--peers 9999", "--publishers 10000", "--join-rate 0", "--duration 1000h"},
		},
		{"demo of a crowd", nil, "demo --people 99", []string{"--people 99: give 1 to 24"}},
		{"load of a country", nil, "load --rooms 1000 --peers 300 --dev", []string{"300000 people", "at most 2000", "--join-rate 20"}},
		{"load that would take a day to begin", nil, "load --rooms 100 --peers 10 --join-rate 0.1 --dev", []string{"2h46m40s to join"}},
		{"load of two clusters", nil, "load --url http://127.0.0.1:1 --dev", []string{"--dev", "--server"}},
		{"load of no URL", map[string]string{"HOLDFAST_API_KEYS": goodKeys}, "load --url here", []string{`--server "here"`}},
		{"store URL that is none", map[string]string{"HOLDFAST_CLUSTER_KEY": goodKey, "HOLDFAST_STORE": "mysql://secret@here"}, "sfu --solo --control-listen 127.0.0.1:0 --media-listen 127.0.0.1:0", []string{"--store"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			code, _, said := exec(t, test.env, strings.Fields(test.args)...)
			if code != exitUsage {
				t.Errorf("exit code %d, want %d", code, exitUsage)
			}
			for _, want := range test.want {
				if !strings.Contains(said, want) {
					t.Errorf("the answer does not mention %q:\n%s", want, said)
				}
			}
			for _, secret := range test.env {
				if strings.Contains(said, secret) {
					t.Errorf("the answer shows a secret:\n%s", said)
				}
			}
		})
	}
}

// TestAFlagAndItsVariableAreOne: what the environment says is heard, and a flag
// overrides it.
func TestAFlagAndItsVariableAreOne(t *testing.T) {
	_, _, said := exec(t, map[string]string{"HOLDFAST_LISTEN": "from-env"}, "store")
	if !strings.Contains(said, "from-env") {
		t.Errorf("HOLDFAST_LISTEN was not heard: %s", said)
	}
	_, _, said = exec(t, map[string]string{"HOLDFAST_LISTEN": "from-env"}, "store", "--listen", "from-flag")
	if !strings.Contains(said, "from-flag") {
		t.Errorf("--listen did not override: %s", said)
	}
}

// TestTheDefaultsOfFlagsAreThePackages: what a flag has when nobody gives it is what the package would do by itself.
func TestTheDefaultsOfFlagsAreThePackages(t *testing.T) {
	var root commands
	parser, err := newParser(&root, streams{out: io.Discard, err: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"sfu", "signaling", "front"} {
		if _, err := parser.Parse([]string{verb}); err != nil {
			t.Fatal(err)
		}
		switch verb {
		case "sfu":
			c, want := root.SFU.SFUConfig, sfu.DefaultConfig()
			if c.MediaTCP != want.MediaTCP || c.EgressBits != want.CeilingBitsPerSecond || c.EgressPackets != want.CeilingPacketsPerSecond ||
				c.EgressBatch != want.EgressBatch || c.DrainTimeout != want.DrainTimeout {
				t.Errorf("a media node has %+v, its package %+v", c, want)
			}
		case "signaling":
			c, want := root.Signaling.SignalingConfig, signaling.DefaultConfig("")
			if c.MaxSockets != want.MaxSockets || c.ResumeGrace != want.ResumeGrace || c.TurnAllocations != relay.DefaultConfig().MaxAllocations {
				t.Errorf("a signaling node has %+v, its package %+v", c, want)
			}
		case "front":
			if got, want := root.Front.MaxConnections, balancer.DefaultConfig().MaxConnections; got != want {
				t.Errorf("a front has %d connections at most, its package %d", got, want)
			}
		}
	}
}

func TestGoodConfigurationsAreAccepted(t *testing.T) {
	t.Setenv("HOLDFAST_CLUSTER_KEY", goodKey)
	t.Setenv("HOLDFAST_API_KEYS", goodKeys)
	for _, name := range []string{"HOLDFAST_MEDIA_ADVERTISE", "HOLDFAST_TRUSTED_PROXIES"} {
		t.Setenv(name, "") // as docker-compose.yml passes it on
	}
	for _, line := range []string{
		"sfu --solo --name s --control-listen 127.0.0.1:0 --media-listen 127.0.0.1:0 --gossip-listen 127.0.0.1:0",
		"signaling --solo --name e --listen 127.0.0.1:0 --control-listen 127.0.0.1:0 --gossip-listen 127.0.0.1:0",
		"signaling --solo --name e --listen 127.0.0.1:0 --control-listen 127.0.0.1:0 --gossip-listen 127.0.0.1:0 --turn-listen 127.0.0.1:0 --ice-server turn:t.example.org --ice-secret x",
		"signaling --solo --name e --listen 127.0.0.1:0 --control-listen 127.0.0.1:0 --gossip-listen 127.0.0.1:0 --ice-server stun:t.example.org,turns:[2001:db8::1]:443?transport=tcp --ice-username x --ice-password y",
		"front --listen 127.0.0.1:0 --backend 127.0.0.1:1",
		"store --listen 127.0.0.1:0",
		"token --identity ada --room r --admin",
	} {
		if code, _, said := exec(t, nil, strings.Fields(line)...); code != exitDone {
			t.Errorf("%s: exit code %d\n%s", line, code, said)
		}
	}
}

// What docker-compose.yml tells people to set reaches a container.
func TestComposePassesOnWhatItNames(t *testing.T) {
	text, err := os.ReadFile("../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile(`HOLDFAST_[A-Z_]+`).FindAllString(string(text), -1) {
		if !strings.Contains(string(text), "${"+name) && !strings.Contains(string(text), "  "+name+": ") {
			t.Errorf("%s is named, and no service has it", name)
		}
	}
}

// TestUnknownWordsAreUsage and nothing else.
func TestUnknownWordsAreUsage(t *testing.T) {
	for _, args := range [][]string{{"nonsense"}, {"sfu", "--nonsense"}, {"sfu", "--egress-bits", "many"}} {
		if code, _, said := exec(t, nil, args...); code != exitUsage || said == "" {
			t.Errorf("%v: exit code %d, said %q", args, code, said)
		}
	}
}
