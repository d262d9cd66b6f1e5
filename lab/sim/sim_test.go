package sim

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/failover/relief"
)

var update = flag.Bool("update", false, "write the golden files anew")

func read(t *testing.T, name string) Scenario {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	s, err := Read(name, file)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func play(t *testing.T, s Scenario) Report {
	t.Helper()
	r, err := Run(t.Context(), s, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The tables of the small scenarios, and what ours promises in them. Another table means that a decision has changed: look
// at it before -update.
func TestScenarios(t *testing.T) {
	for _, name := range []string{"small", "burst", "relief", "large"} {
		t.Run(name, func(t *testing.T) {
			r := play(t, read(t, name))
			var got, picture bytes.Buffer
			if err := r.WriteText(&got, false); err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(golden, got.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(want, got.Bytes()) {
				t.Errorf("want\n%s\ngot\n%s", want, got.Bytes())
			}
			ours := r.Results[len(r.Results)-1]
			if (ours.Over > 0 && name != "relief") || ours.Refusals > 0 || ours.Waiting > 0 {
				t.Errorf("%d rooms over a ceiling, %d refused, %d wait, though there is room", ours.Over, ours.Refusals, ours.Waiting)
			}
			for _, c := range ours.Changes {
				if c.AlsoMoved > 0 {
					t.Errorf("%s moved %d rooms of living nodes", c.What, c.AlsoMoved)
				}
			}
			if err := r.WriteSVG(&picture); err != nil || strings.Count(picture.String(), `fill="none"`) != len(r.Results) {
				t.Errorf("the picture lacks a line: %v\n%s", err, picture.String())
			}
		})
	}
}

// A room that grows takes its node above its ceiling. Rooms leave it within relief's patience, and others after nodes have come; then
// no node is hot, and nothing moves any more.
func TestReliefCoolsNodes(t *testing.T) {
	r := play(t, read(t, "relief"))
	ours := r.Results[len(r.Results)-1]
	after, config := ours.Changes[0], relief.DefaultConfig()
	if ours.OverFor == 0 || ours.OverFor > int(config.HotFor/time.Second) {
		t.Errorf("a node was above its ceiling for %d s", ours.OverFor)
	}
	if after.Relieved == 0 || ours.Relieved <= after.Relieved || after.Fullest > config.Hot {
		t.Errorf("%d rooms left hot nodes, %d of them after nodes had come; the fullest node is at %.2f", ours.Relieved, after.Relieved, after.Fullest)
	}
	last := ours.Evenness[len(ours.Evenness)-60:]
	if slices.Max(last) != slices.Min(last) {
		t.Error("rooms still move in the last minute")
	}
	for _, other := range r.Results[:len(r.Results)-1] {
		if other.Relieved > 0 {
			t.Errorf("%s relieved %d rooms", other.Policy, other.Relieved)
		}
	}
}

// A room of three thousand spreads: everybody has a place though nodes die, no node gets hot, no branch comes and goes, and one node has the
// room once the crowd has left.
func TestALargeRoomSpreads(t *testing.T) {
	r := play(t, read(t, "large"))
	ours := r.Results[len(r.Results)-1].Crowd
	if ours.People != 200 || ours.Refused > 0 || ours.Nodes != 1 || ours.Most < 4 || ours.Fullest > 0.85 || ours.Flaps > 0 || ours.Appointed < ours.Most {
		t.Errorf("%+v", *ours)
	}
	for _, other := range r.Results[:len(r.Results)-1] {
		if other.Crowd.Most != 1 || other.Crowd.Fullest < 2 {
			t.Errorf("%s: %+v", other.Policy, *other.Crowd)
		}
	}
}

// Two of three nodes die: what does not fit waits, and has a place once nodes come.
func TestTooLittleRoom(t *testing.T) {
	kind := Kind{3, 400_000_000}
	s := Scenario{
		Name: "too little", Nodes: []Kind{kind}, Signaling: 2, Reports: time.Second, End: 60 * time.Second,
		Events: []Event{
			{What: "rooms", Count: 120, Within: 10 * time.Second},
			{At: 30 * time.Second, What: "die", Count: 2},
			{At: 45 * time.Second, What: "join", Kind: kind},
		},
	}
	r := play(t, s)
	ours := r.Results[len(r.Results)-1]
	if ours.Refusals == 0 {
		t.Error("one node took what fits on three")
	}
	if ours.Waiting > 0 {
		t.Errorf("%d rooms wait though nodes have come", ours.Waiting)
	}
	// Rooms of which nobody knew how large they become may still push the last node above its ceiling.
	if random := r.Results[0]; ours.Over >= random.Over {
		t.Errorf("rooms over a ceiling: %d, by random %d", ours.Over, random.Over)
	}
}

func TestMistakesInAScenario(t *testing.T) {
	for _, c := range [][2]string{
		{"", "no nodes at the start"},
		{"nodes 3", "line 1: expected `nodes N CEILING`"},
		{"nodes 3 1Gbit\nnodes 3 fast", `line 2: "fast" is no ceiling`},
		{"nodes 3 1Gbit", "it must `end`"},
		{"nodes 3 1Gbit\nend 5s\nat 9s die 1", `"1 die" comes after the end`},
		{"nodes 3 1Gbit\nend 5s\nat 2s die rack 1", "there is no rack 1"},
		{"nodes 3 1Gbit\nend 5s\nat 3s die 1\nat 2s die 1", "sort them by time"},
		{"nodes 2001 1Gbit", "no number from 0 to 2000"},
		{"at 5s rooms 10", "expected"},
		{"nodes 3 1Gbit\nend 5s\nat 1s crowd 10", "expected"},
		{"at 1s crowd 10001 within 1s", `"10001" is no number from 0 to 10000`},
		{"epsilon 2", `"2" is no number above 0`},
		{"end soon", `"soon" is no time`},
		{"reports 1500ms", "whole seconds"},
	} {
		if _, err := Read("x", strings.NewReader(c[0])); err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%q: %v, want %q", c[0], err, c[1])
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, name := range []string{"small", "burst", "relief", "large", "steady", "hundred", "thousand"} {
		text, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Read("fuzz", strings.NewReader(text))
		if err != nil {
			return
		}
		if len(s.Nodes) == 0 || s.End <= 0 || s.End > maxTime || s.Reports < tick {
			t.Errorf("taken: %+v", s)
		}
	})
}
