package sfu

import (
	"maps"
	"net"
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/control"
)

func TestCandidatesInTheAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*Config)
		want []string // the addresses of all candidates of each protocol; nil for at least one
	}{
		"bound to one address": {func(*Config) {}, []string{"127.0.0.1"}},
		"bound to all":         {func(c *Config) { c.MediaAddress = ":0" }, nil},
		"behind a NAT":         {func(c *Config) { c.AdvertiseIPs = []string{"203.0.113.7"} }, []string{"203.0.113.7"}},
		"without TCP":          {func(c *Config) { c.MediaTCP = MediaTCPOff }, []string{"127.0.0.1"}},
		"bound to all, behind a NAT": {
			func(c *Config) { c.MediaAddress, c.AdvertiseIPs = "0.0.0.0:0", []string{"203.0.113.7"} }, []string{"203.0.113.7"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, "one", c.edit)
			e, _ := s.attach("room", "alice", 1)
			offer := newMediaClient(t, 'a', true, 1).offerMessage(nil)
			e.send(&control.PeerMessage{Message: &control.PeerMessage_Offer{Offer: offer}})
			answer := e.awaitAnswer(offer.GetId())
			_, port, err := net.SplitHostPort(s.node.MediaAddress().String())
			if err != nil {
				t.Fatal(err)
			}
			found, byTCP := map[string]bool{}, map[string]bool{}
			for l := range strings.SplitSeq(answer, "\r\n") {
				words := strings.Fields(l)
				if !strings.HasPrefix(l, "a=candidate:") || len(words) < 8 || words[1] != "1" {
					continue
				}
				switch {
				case words[7] != "host" || words[5] != port:
					t.Errorf("unexpected candidate %s", l)
				case words[2] == "udp":
					found[words[4]] = true
				case strings.HasSuffix(l, " tcptype passive"):
					byTCP[words[4]] = true
				}
			}
			t.Log(found)
			if len(found) == 0 || c.want != nil && len(found) != len(c.want) {
				t.Fatalf("candidates %v, want %v", found, c.want)
			}
			wantTCP := found
			if name == "without TCP" {
				wantTCP = nil
			}
			if !maps.Equal(byTCP, wantTCP) {
				t.Errorf("candidates for TCP %v, want %v", byTCP, wantTCP)
			}
			for _, want := range c.want {
				if !found[want] {
					t.Errorf("candidates %v, want %v", found, want)
				}
			}
		})
	}
}

func TestANodeThatNobodyCanReachSaysSo(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Node, cfg.Boot, cfg.Loopback = "one", "1769000000000-one", false
	node, err := New(cfg, &ownerStub{}, testLog(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "no address") {
		t.Errorf("Run = %v", err)
	}
}
