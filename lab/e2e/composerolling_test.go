//go:build long && linux

package e2e

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// TestComposeRollingRestart replaces every container of docker-compose.yml, one after the other, under a call of two people in
// Chromium, and prints how long pictures and sound were not there. HOLDFAST_ROUNDS says how often each is replaced.
func TestComposeRollingRestart(t *testing.T) { //nolint:paralleltest // as TestComposeFile
	needChromium(t, 4)
	c := startComposed(t)
	people := []*participant{c.joins("board", "Ada"), c.joins("board", "Bob")}
	for _, p := range people {
		p.knowsItself(t)
	}
	allDecodeAll(t, time.Minute, people)
	c.healthy()
	for _, p := range people {
		p.mark(t)
		p.mustEval(t, "(() => {"+continuityScript+"; return continuity.pictures; })()", nil)
	}
	peers := []string{people[0].id, people[1].id}
	seen, all := map[string][]continuity{}, []continuity{}
	rest := func(what string) { // as long as a replacement takes, roughly: to compare with
		people[0].mustEval(t, "new Promise((resolve) => setTimeout(() => resolve(0), 5000))", nil)
		for _, p := range people {
			seen[what] = append(seen[what], p.continuity(t))
		}
	}
	rest("nothing")
	for range rounds(t) {
		for _, service := range []string{"sfu-1", "sfu-2", "sfu-3", "signaling-1", "signaling-2", "front", "redis"} {
			before, was := c.containers(service), people[0].mustStats(t)
			began := time.Now()
			c.asInReadme("up", "-d", "--force-recreate", "--no-deps", service)
			c.healthy()
			if after := c.containers(service); after == before {
				t.Errorf("%s is still container %s", service, after)
			}
			allDecodeAll(t, time.Minute, people)
			for i, p := range people {
				gaps := p.continuity(t)
				seen[service], all = append(seen[service], gaps), append(all, gaps)
				// Two cores with two browsers and seven containers: what stands still for good is found, not what is late.
				if len(gaps.Tiles) > 0 || max(gaps.ShownMs, gaps.DecodedMs) > 15000 || gaps.BurstMs > 3000 {
					t.Errorf("%s, while %s was replaced: %+v", p.name, service, gaps)
				}
				p.sameElements(t)
				if p.knowsItself(t); p.id != peers[i] {
					t.Errorf("%s, after %s was replaced, is peer %s, before %s", p.name, service, p.id, peers[i])
				}
			}
			t.Logf("%s replaced in %v, the room was on %s and is on %s; %s", service, time.Since(began).Round(time.Millisecond),
				was.Node, people[0].mustStats(t).Node, distribution(all[len(all)-len(people):]))
		}
	}
	rest("nothing")
	for _, p := range people {
		for _, m := range p.mustStats(t).Migrations {
			t.Logf("%s: moved by %s, told of %.0f ms", p.name, m.How, m.GapMs)
			if m.How != "live" {
				t.Errorf("%s: moved by %+v, want live moves only", p.name, m)
			}
		}
	}
	for _, what := range slices.Sorted(maps.Keys(seen)) {
		t.Logf("%s replaced: %s", what, distribution(seen[what]))
	}
	t.Logf("all: %s", distribution(all))
}

// containers are the ids of a service's.
func (c *composed) containers(service string) string {
	c.t.Helper()
	return c.compose("ps", "-q", service)
}

func rounds(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("HOLDFAST_ROUNDS"))
	if err != nil {
		n = 1
	}
	return n
}
