//go:build linux

package attack

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// process is what a node's process tells of itself.
type process struct {
	Heap       int `json:"heapBytes"`
	Goroutines int `json:"goroutines"`
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
		if !strings.Contains(err.Error(), string(wire.CodeTooManyMessages)) {
			s.t.Fatal(err)
		}
		<-tick.C // Each process is made to collect once a second at most.
	}
}

// proc is a node's directory in /proc.
func (s *stage) proc(node string) string {
	s.t.Helper()
	pid, err := s.cluster.Pid(s.t.Context(), node)
	if err != nil {
		s.t.Fatal(err)
	}
	return fmt.Sprintf("/proc/%d/", pid)
}

// kib is a line of a process's status.
func (s *stage) kib(node, line string) (n int) {
	s.t.Helper()
	status, err := os.ReadFile(s.proc(node) + "status")
	if err != nil {
		s.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), line+":")
	if _, err := fmt.Sscan(rest, &n); err != nil {
		s.t.Fatalf("%s: %v", line, err)
	}
	return n
}

// memory is what a node's process has of the machine's memory, in bytes, after it has collected its garbage.
func (s *stage) memory(node string) int {
	s.t.Helper()
	process := s.process(node)
	kib := s.kib(node, "VmRSS")
	s.t.Logf("%d KiB of memory, %d KiB of them live heap, %d goroutines", kib, process.Heap>>10, process.Goroutines)
	return kib << 10
}

// footprint is what the processes hold at rest, by "process: what": the least of some looks.
func (s *stage) footprint() map[string]int {
	s.t.Helper()
	least := map[string]int{}
	for range 4 {
		for _, node := range []string{"signaling-1", "sfu-1", "front"} {
			look := map[string]int{"sockets": s.sockets(node)}
			if node != "front" { // It tells nothing of itself.
				p := s.process(node)
				look["KiB of heap"], look["goroutines"], look["KiB resident"] = p.Heap>>10, p.Goroutines, s.kib(node, "RssAnon")
			}
			for what, n := range look {
				key := node + ": " + what
				if was, known := least[key]; !known || n < was {
					least[key] = n
				}
			}
		}
	}
	return least
}

func (s *stage) sockets(node string) (n int) {
	s.t.Helper()
	dir := s.proc(node) + "fd"
	open, err := os.ReadDir(dir)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, file := range open {
		if what, err := os.Readlink(dir + "/" + file.Name()); err == nil && strings.HasPrefix(what, "socket:") {
			n++
		}
	}
	return n
}
