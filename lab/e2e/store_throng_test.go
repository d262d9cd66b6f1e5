package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// throng is `holdfast load` in a process without the race detector, which two cores would not carry for a hundred
// people.
type throng struct {
	people  int
	streams int // that they should get of each other

	mu    sync.Mutex // guards lines
	lines []throngLine
}

type throngLine struct {
	At             time.Time
	Joined         int
	Streams        int
	LongestPauseMs float64
	Restarts       int
	Refusals       int
	SocketsLost    int
}

func (l throngLine) pause() time.Duration {
	return time.Duration(l.LongestPauseMs * float64(time.Millisecond))
}

// startThrong lets people into rooms of two, thirty a second.
func startThrong(t *testing.T, c *devcluster.Cluster, rooms int) *throng {
	t.Helper()
	binary, err := devcluster.Binary()
	if err != nil {
		t.Fatal(err)
	}
	g := &throng{people: 2 * rooms, streams: 2 * 2 * rooms}
	cmd := exec.CommandContext(t.Context(), binary, "load", "--url", c.URL(), "--rooms", strconv.Itoa(rooms), "--peers", "2", //nolint:gosec // our own binary
		"--join-rate", "30", "--duration", "10m", "--lines", "-")
	access := c.Access()
	cmd.Env = append(os.Environ(), "HOLDFAST_API_KEYS="+access.Key+":"+access.Secret)
	said := &strings.Builder{}
	cmd.Stderr = said
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Tied(cmd); err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var line throngLine
			if json.Unmarshal(lines.Bytes(), &line) == nil {
				g.mu.Lock()
				g.lines = append(g.lines, line)
				g.mu.Unlock()
			}
		}
	})
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		reading.Wait()
		if err := cmd.Wait(); t.Failed() {
			t.Logf("the crowd ended: %v\n%s", err, said)
		}
	})
	return g
}

func (g *throng) between(from, to time.Time) []throngLine {
	g.mu.Lock()
	defer g.mu.Unlock()
	var some []throngLine
	for _, line := range g.lines {
		if line.At.After(from) && line.At.Before(to) {
			some = append(some, line)
		}
	}
	return some
}

// A crowd is calm when no stream paused for longer than calmPause in calmFor. Joins and browsers keep a small machine
// busy for some seconds. A crowd that is not calm after calmLimit is taken as it is.
const (
	calmPause = 400 * time.Millisecond
	calmFor   = 2 * time.Second
	calmLimit = 20 * time.Second
)

// settles waits until everybody is in, receives everybody, and is calm.
func (g *throng) settles(t *testing.T) {
	t.Helper()
	began := time.Now()
	eventually(t, time.Minute, "the crowd settles", func() error {
		now := time.Now()
		lines := g.between(now.Add(-calmFor), now)
		if len(lines) == 0 {
			return errors.New("it says nothing")
		}
		for _, line := range lines {
			if err := g.whole(line); err != nil {
				return err
			}
			if line.pause() > calmPause && now.Sub(began) < calmLimit {
				return fmt.Errorf("a stream paused for %v", line.pause())
			}
		}
		return nil
	})
}

func (g *throng) whole(line throngLine) error {
	if line.Joined != g.people || line.Streams != g.streams {
		return fmt.Errorf("%d of %d are in and receive %d of %d streams", line.Joined, g.people, line.Streams, g.streams)
	}
	return nil
}

// until waits until the crowd has reported a later moment.
func (g *throng) until(t *testing.T, at time.Time) {
	t.Helper()
	eventually(t, time.Minute+time.Until(at), "the crowd has lived on", func() error {
		if len(g.between(at, time.Now())) == 0 {
			return fmt.Errorf("no word since %v", at)
		}
		return nil
	})
}

// longestPause fails unless every stream flowed all the time.
func (g *throng) longestPause(t *testing.T, from, to time.Time) time.Duration {
	t.Helper()
	longest := time.Duration(0)
	for _, line := range g.between(from, to) {
		if err := g.whole(line); err != nil {
			t.Errorf("at %v: %v", line.At.Sub(from), err)
		}
		longest = max(longest, line.pause())
	}
	return longest
}

func (g *throng) undisturbed(t *testing.T, since time.Time) {
	t.Helper()
	lines := g.between(since, time.Now())
	first, last := lines[0], lines[len(lines)-1]
	if last.Restarts != first.Restarts || last.Refusals != first.Refusals || last.SocketsLost != first.SocketsLost {
		t.Errorf("of the crowd %d were told to restart, %d refused, %d lost the socket",
			last.Restarts-first.Restarts, last.Refusals-first.Refusals, last.SocketsLost-first.SocketsLost)
	}
}
