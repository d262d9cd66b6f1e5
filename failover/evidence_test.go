package failover

import (
	"testing"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
)

// Every combination of the three observations: only the rows named here may give
// anything but suspicion.
func TestVerdictOfAllEvidence(t *testing.T) {
	dead := map[evidence]bool{
		{streamBroken, controlRefused, mediaRefused}:   true,
		{streamBroken, controlOtherNode, mediaRefused}: true,
		{streamBroken, controlNewer, mediaRefused}:     true,
		{streamBroken, controlNewer, mediaSilent}:      true,
		{streamNever, controlNewer, mediaRefused}:      true,
		{streamNever, controlNewer, mediaSilent}:       true,
	}
	controls := []controlAnswer{controlRefused, controlSilent, controlSame, controlNewer, controlOlder, controlOtherNode, "", "nonsense"}
	rows := 0
	for _, stream := range []streamState{streamNever, streamBroken, ""} {
		for _, answer := range controls {
			for _, media := range []mediaAnswer{mediaRefused, mediaSilent, ""} {
				e := evidence{stream, answer, media}
				want := verdictSuspect
				switch {
				case answer == controlSame:
					want = verdictAlive
				case dead[e], answer == controlNewer:
					want = verdictDead
				}
				if got := e.verdict(); got != want {
					t.Errorf("%v: %s, want %s", e, got, want)
				}
				rows++
			}
		}
	}
	if rows != 3*8*3 {
		t.Fatalf("%d rows checked", rows)
	}
}

func TestControlAnswersAreTakenForWhatTheyAre(t *testing.T) {
	node := cluster.Node{ID: "sfu-1", Boot: "1769000000005-00000000"}
	for _, c := range []struct {
		hello control.Hello
		want  controlAnswer
	}{
		{control.Hello{Node: "sfu-1", Boot: "1769000000005-00000000"}, controlSame},
		{control.Hello{Node: "sfu-1", Boot: "1769000000006-00000000"}, controlNewer},
		{control.Hello{Node: "sfu-1", Boot: "1769000000004-00000000"}, controlOlder},
		{control.Hello{Node: "sfu-2", Boot: "1769000000006-00000000"}, controlOtherNode},
		{control.Hello{Node: "sfu-2", Boot: "1769000000005-00000000"}, controlOtherNode},
	} {
		if got := controlOf(node, c.hello); got != c.want {
			t.Errorf("%+v answers: %s, want %s", c.hello, got, c.want)
		}
	}
}
