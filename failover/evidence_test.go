package failover

import (
	"testing"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
)

// Every combination of the three observations: only the rows named here may give
// anything but suspicion.
func TestVerdictOfAllEvidence(t *testing.T) {
	dead := map[Evidence]bool{
		{StreamBroken, ControlRefused, MediaRefused}:   true,
		{StreamBroken, ControlOtherNode, MediaRefused}: true,
		{StreamBroken, ControlNewer, MediaRefused}:     true,
		{StreamBroken, ControlNewer, MediaSilent}:      true,
		{StreamNever, ControlNewer, MediaRefused}:      true,
		{StreamNever, ControlNewer, MediaSilent}:       true,
	}
	controls := []Control{ControlRefused, ControlSilent, ControlSame, ControlNewer, ControlOlder, ControlOtherNode, "", "nonsense"}
	rows := 0
	for _, stream := range []Stream{StreamNever, StreamBroken, ""} {
		for _, answer := range controls {
			for _, media := range []Media{MediaRefused, MediaSilent, ""} {
				e := Evidence{stream, answer, media}
				want := VerdictSuspect
				switch {
				case answer == ControlSame:
					want = VerdictAlive
				case dead[e], answer == ControlNewer:
					want = VerdictDead
				}
				if got := e.Verdict(); got != want {
					t.Errorf("%v: %s, want %s", e, got, want)
				}
				rows++
			}
		}
	}
	if rows != 3*8*3 {
		t.Fatalf("%d rows judged", rows)
	}
}

func TestControlAnswersAreTakenForWhatTheyAre(t *testing.T) {
	node := cluster.Node{ID: "sfu-1", Boot: "1769000000005-00000000"}
	for _, c := range []struct {
		hello control.Hello
		want  Control
	}{
		{control.Hello{Node: "sfu-1", Boot: "1769000000005-00000000"}, ControlSame},
		{control.Hello{Node: "sfu-1", Boot: "1769000000006-00000000"}, ControlNewer},
		{control.Hello{Node: "sfu-1", Boot: "1769000000004-00000000"}, ControlOlder},
		{control.Hello{Node: "sfu-2", Boot: "1769000000006-00000000"}, ControlOtherNode},
		{control.Hello{Node: "sfu-2", Boot: "1769000000005-00000000"}, ControlOtherNode},
	} {
		if got := controlOf(node, c.hello); got != c.want {
			t.Errorf("%+v answers: %s, want %s", c.hello, got, c.want)
		}
	}
}
