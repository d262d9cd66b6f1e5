package control

import (
	"slices"
	"testing"
)

func TestADigestIsOfThePeopleAndNotOfTheirOrder(t *testing.T) {
	roster := []*Peer{{Id: "a", Name: "Ada"}, {Id: "b", Name: "Bob", VideoMuted: true}, {Id: "c"}}
	before := RosterDigest(roster)
	slices.Reverse(roster)
	if got := RosterDigest(roster); got != before {
		t.Errorf("another order has another digest: %x, not %x", got, before)
	}
	for what, changed := range map[string][]*Peer{
		"nobody": nil, "fewer": roster[:2], "one twice": append(slices.Clone(roster), roster[0]),
		"an unmuted one": {roster[0], {Id: "b", Name: "Bob"}, roster[2]},
	} {
		if got := RosterDigest(changed); got == before || got == 0 {
			t.Errorf("%s: the digest is %x, that of all is %x", what, got, before)
		}
	}
}
