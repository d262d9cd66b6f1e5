package chaos

import "testing"

const fromWorlds = "TestEveryVerdictCanFail: a build broken for it needs a run of most of a minute, which TestOutages has behind the tag long"

// elsewhere are the verdicts that no broken build needs to show failing, and why.
func elsewhere() map[string]string {
	return map[string]string{
		"people can join":              fromWorlds,
		"a cap lets in up to the cap":  fromWorlds,
		"nobody is online who is gone": fromWorlds,
		"nothing moved":                "a false death moves rooms, which \"no false death\" sees; TestCalmVerdictsCanFail has the rest",
		"one place a person":           fromWorlds,
		"others stay":                  fromWorlds,
		"rosters equal":                fromWorlds,
		"layers cross once":            fromWorlds,
		"few keyframes":                fromWorlds,
		"gossip was lossy":             "it judges the run and not the product: TestCalmVerdictsCanFail",
	}
}

// TestEveryVerdictHasABrokenBuild asks Judge which verdicts there are.
func TestEveryVerdictHasABrokenBuild(t *testing.T) {
	broken := make(map[string]bool)
	for _, b := range brokenBuilds() {
		for _, name := range b.verdicts() {
			broken[name] = true
		}
	}
	verdicts := make(map[string]bool)
	for _, expect := range []Expect{{Moves: true, Returns: true}, {Store: true}, {Stays: true}, {Stays: true, Calm: true}, {Joins: true, Ghosts: true}} {
		for _, v := range Judge(&World{Expect: expect, Spread: &Spread{}}) {
			verdicts[v.Name] = true
		}
	}
	for name := range verdicts {
		if _, excused := elsewhere()[name]; !broken[name] && !excused {
			t.Errorf("no broken build shows %q failing", name)
		}
	}
	for name := range elsewhere() {
		if !verdicts[name] || broken[name] {
			t.Errorf("%q needs no excuse", name)
		}
	}
}
