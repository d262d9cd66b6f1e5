package chaos

import "testing"

// elsewhere are the verdicts that no broken build needs to show failing, and why.
func elsewhere() map[string]string {
	return map[string]string{
		"nothing moved":    "a false death moves rooms, which \"no false death\" sees; TestCalmVerdictsCanFail has the rest",
		"gossip was lossy": "it judges the run and not the product: TestCalmVerdictsCanFail",
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
	for _, expect := range []Expect{{Moves: true, Returns: true}, {Store: true}, {Stays: true}, {Stays: true, Calm: true}} {
		for _, v := range Judge(&World{Expect: expect}) {
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
