package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// TestVictimsLeaveARoomToBeSpared, and hurt some room.
func TestVictimsLeaveARoomToBeSpared(t *testing.T) {
	for _, rooms := range [][]string{{"a", "b"}, {"a", "a", "b"}, {"b", "c"}, {"a", "b", "c"}, {"a", "a", "b", "b", "c"}} {
		for seed := range uint64(20) {
			c := &Chaos{random: rand.New(rand.NewPCG(seed, 1)), crowd: &crowd{}}
			c.crowd.chaos = c
			w := &World{Before: Look{Live: map[pin.BootID]ring.NodeID{"1": "a", "2": "b", "3": "c"}}}
			for i, node := range rooms {
				w.Before.Held = append(w.Before.Held, Held{Room: fmt.Sprintf("room-%d", i), Node: node})
			}
			for n := 1; n <= 2; n++ {
				victims := c.victims(w, n)
				hurt := 0
				for _, node := range rooms {
					if slices.Contains(victims, node) {
						hurt++
					}
				}
				if len(victims) != n || hurt == 0 || hurt == len(rooms) || n == 2 && victims[0] == victims[1] {
					t.Errorf("rooms on %v, seed %d: the victims are %v", rooms, seed, victims)
				}
			}
		}
	}
}

// TestContainersAreHurtAsAnEngineCan: nothing is drawn that only processes or hosts can suffer.
func TestContainersAreHurtAsAnEngineCan(t *testing.T) {
	processes := Options{Cluster: &devcluster.Client{}}
	containers := Options{Cluster: devcluster.ClientOf(noNodes{}, devcluster.Access{}), Network: &cables{}}
	for name, want := range map[Name]string{
		Kill: "both", Freeze: "both", Drain: "both", Rolling: "none", DoubleFault: "processes", DrainCrash: "processes", Partition: "containers", Loss: "none",
	} {
		got := "none"
		switch inProcesses, inContainers := slices.Contains(processes.soakFaults(), name), slices.Contains(containers.soakFaults(), name); {
		case inProcesses && inContainers:
			got = "both"
		case inProcesses:
			got = "processes"
		case inContainers:
			got = "containers"
		}
		if got != want {
			t.Errorf("%s is for %s, want %s", name, got, want)
		}
	}
}

type noNodes struct{ devcluster.Nodes }
