package attack

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// TestWhatASocketCosts holds many quiet people in rooms of five at one signaling node, and asks how much memory its process
// has got for each.
func TestWhatASocketCosts(t *testing.T) {
	people := 1000
	if n, err := strconv.Atoi(os.Getenv("HOLDFAST_SOCKETS")); err == nil {
		people = n
	}
	s := newStage(t)
	// Everything that is made once is made before.
	s.hold(100, "early")
	before := s.memory("signaling-1")
	began := time.Now()
	s.hold(people, "late")
	took := time.Since(began)
	after := s.memory("signaling-1")
	each := (after - before) / people
	t.Logf("%d people came in %v: %d KiB of memory for each (%d MiB before, %d MiB after)", people, took, each>>10, before>>20, after>>20)
	if each > 60<<10 {
		t.Errorf("a socket costs %d KiB, want 60 at most", each>>10)
	}
	s.unharmed()
}

// hold lets people join rooms of five and stay until the test ends.
func (s *stage) hold(people int, name string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 5*patience)
	s.t.Cleanup(cancel)
	work := make(chan int)
	var joining, reading sync.WaitGroup
	s.t.Cleanup(reading.Wait)
	for range 8 {
		joining.Go(func() {
			for i := range work {
				conn, answer, err := s.join(ctx, s.token(fmt.Sprint(name, i/5), fmt.Sprint(name, i)), "")
				if err != nil {
					s.t.Errorf("person %d: %v", i, err)
					continue
				}
				if _, ok := answer.(*wire.Joined); !ok {
					s.t.Errorf("person %d is told %+v", i, answer)
				}
				reading.Go(func() { drain(ctx, conn) })
				s.t.Cleanup(func() { _ = conn.CloseNow() })
			}
		})
	}
	for i := range people {
		work <- i
	}
	close(work)
	joining.Wait()
}

// drain reads until the connection ends, so that pings are answered.
func drain(ctx context.Context, conn *websocket.Conn) {
	for {
		if _, _, err := conn.Read(ctx); err != nil {
			return
		}
	}
}

// process is what a node's process tells of itself.
type process struct {
	Heap       uint64 `json:"heapBytes"`
	Goroutines int    `json:"goroutines"`
}

// process has the garbage of a node collected and asks for it.
func (s *stage) process(node string) (p process) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(time.Second / 4)
	defer tick.Stop()
	for {
		err := s.cluster.Admin(ctx, "process?collect&node="+node, &p)
		if err == nil {
			return p
		}
		if !strings.Contains(err.Error(), http.StatusText(http.StatusTooManyRequests)) {
			s.t.Fatal(err)
		}
		<-tick.C // Each process is made to collect once a second at most.
	}
}

// memory is what a node's process has of the machine's memory, in bytes, after it has collected its garbage.
func (s *stage) memory(node string) int {
	s.t.Helper()
	process := s.process(node)
	pid, err := s.cluster.Pid(s.t.Context(), node)
	if err != nil {
		s.t.Fatal(err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		s.t.Skipf("this test needs /proc: %v", err)
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.Atoi(strings.Fields(value)[0])
			if err != nil {
				s.t.Fatal(err)
			}
			s.t.Logf("%d KiB of memory, %d KiB of them live heap, %d goroutines", kib, process.Heap>>10, process.Goroutines)
			return kib << 10
		}
	}
	s.t.Fatal("/proc has no VmRSS")
	return 0
}
