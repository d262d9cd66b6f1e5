package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

type process struct {
	Goroutines int    `json:"goroutines"`
	HeapBytes  uint64 `json:"heapBytes"`
	Sockets    int64  `json:"sockets"`
	Waiting    int    `json:"waiting"`
}

// processOf asks what a node holds when its garbage has been collected.
func processOf(t *testing.T, c *devcluster.Cluster, node string) process {
	t.Helper()
	var p process
	tick := time.NewTicker(time.Second / 4)
	defer tick.Stop()
	for {
		err := c.Admin(t.Context(), "process?collect=1&node="+node, &p)
		if err == nil {
			return p
		}
		if !strings.Contains(err.Error(), http.StatusText(http.StatusTooManyRequests)) {
			t.Fatal(err)
		}
		<-tick.C // Each process is made to collect once a second at most.
	}
}

func stormOver(t *testing.T, c *devcluster.Cluster, call *people, idle process) error {
	t.Helper()
	all, err := askHoldings(t.Context(), c)
	if err != nil {
		return err
	}
	if len(all) != 1 || len(all[call.room]) != 1 || len(all[call.room][0].Peers) != len(call.peers) {
		return fmt.Errorf("the SFU holds %d rooms, and %+v", len(all), all[call.room])
	}
	if now := processOf(t, c, "signaling-1"); now.Sockets > idle.Sockets || now.Goroutines > idle.Goroutines+5 || now.Waiting > idle.Waiting+1 {
		return fmt.Errorf("the signaling node has %+v, before it had %+v", now, idle)
	}
	return nil
}

// footprint is what one process holds at rest. Of the front only the sockets are known.
type footprint struct {
	heap       float64 // KiB that are in use
	resident   float64 // KiB, without what is mapped from files
	goroutines float64
	sockets    float64
}

// spare is the tolerated difference: a new connection between nodes, a timer, packets under way. A round has more than
// 60 sessions, so one leaked goroutine or socket for each is 60. Resident memory depends on the highest moment so far;
// it is to see what is in no heap.
func spare() footprint { return footprint{heap: 160, resident: 8 << 10, goroutines: 12, sockets: 8} }

func (f footprint) more(than footprint) error {
	var faults []error
	spare := spare()
	for _, row := range []struct {
		name            string
		now, was, spare float64
	}{
		{"KiB of heap", f.heap, than.heap, spare.heap},
		{"KiB resident", f.resident, than.resident, spare.resident},
		{"goroutines", f.goroutines, than.goroutines, spare.goroutines},
		{"sockets", f.sockets, than.sockets, spare.sockets},
	} {
		if row.now > row.was+row.spare {
			faults = append(faults, fmt.Errorf("%.0f %s, %.0f after the first round", row.now, row.name, row.was))
		}
	}
	return errors.Join(faults...)
}

// footprints measures the attacked processes several times; the least counts.
func footprints(t *testing.T, c *devcluster.Cluster) map[string]footprint {
	t.Helper()
	found := make(map[string]footprint)
	tick := time.NewTicker(time.Second / 2)
	defer tick.Stop()
	for i := range 5 {
		for _, name := range []string{"signaling-1", "sfu-1", portFront} {
			f := footprintOf(t, c, name)
			if i > 0 {
				was := found[name]
				f = footprint{
					heap: min(f.heap, was.heap), resident: min(f.resident, was.resident),
					goroutines: min(f.goroutines, was.goroutines), sockets: min(f.sockets, was.sockets),
				}
			}
			found[name] = f
		}
		<-tick.C
	}
	return found
}

func footprintOf(t *testing.T, c *devcluster.Cluster, name string) footprint {
	t.Helper()
	var f footprint
	if name != portFront {
		p := processOf(t, c, name)
		f.heap, f.goroutines = float64(p.HeapBytes)/1024, float64(p.Goroutines)
	}
	pid, err := c.Pid(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	dir := fmt.Sprintf("/proc/%d/", pid)
	if name != portFront {
		status, err := os.ReadFile(dir + "status")
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(status), "RssAnon:")
		if _, err := fmt.Sscan(rest, &f.resident); err != nil {
			t.Fatal("RssAnon: ", err)
		}
	}
	open, err := os.ReadDir(dir + "fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range open {
		if what, err := os.Readlink(dir + "fd/" + file.Name()); err == nil && strings.HasPrefix(what, "socket:") {
			f.sockets++
		}
	}
	return f
}

func logFootprints(t *testing.T, when string, found map[string]footprint) {
	t.Helper()
	for name, f := range found {
		t.Logf("%s, %s: heap %.0f KiB, resident %.0f KiB, %.0f goroutines, %.0f sockets", when, name, f.heap, f.resident, f.goroutines, f.sockets)
	}
}

func nothingLeft(t *testing.T, c *devcluster.Cluster, when string, first map[string]footprint) {
	t.Helper()
	var now map[string]footprint
	defer func() { logFootprints(t, when, now) }()
	eventually(t, time.Minute, "after "+when+" nothing is left", func() error {
		now = footprints(t, c)
		var faults []error
		for name, was := range first {
			if err := now[name].more(was); err != nil {
				faults = append(faults, fmt.Errorf("%s: %w", name, err))
			}
		}
		return errors.Join(faults...)
	})
}
