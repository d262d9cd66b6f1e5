package devcluster

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/child"
)

// Starting usually takes a fraction of a second.
const reportLimit = 30 * time.Second

const endLimit = 3 * time.Second

var errEndedEarly = errors.New("it ended before it was up")

type process struct {
	pid    int
	report child.Report
	cmd    *exec.Cmd
	pipe   io.Closer     // closing it ends the child
	ended  chan struct{} // closed when the process is gone
	how    string        // set before ended is closed
}

type command struct {
	binary string
	space  string // the network namespace; empty = ours
	args   []string
	env    []string
	stderr io.Writer          // must not block for long
	later  func(child.Report) // for every report after the first; may be nil
}

// launch waits for the report. After an error the returned process, if any, has ended.
func launch(ctx context.Context, sp *spawner, c command, limit time.Duration) (*process, error) {
	cmd := exec.Command(c.binary, c.args...)
	cmd.Env = append(append(foreignEnviron(), child.SupervisedEnv+"=1"), c.env...)
	cmd.Stderr = c.stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("make the lifetime pipe: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("make the report pipe: %w", err)
	}
	// A grandchild may still hold the log pipe.
	cmd.WaitDelay = time.Second
	if err := sp.start(cmd, c.space); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.binary, err)
	}
	p := &process{pid: cmd.Process.Pid, cmd: cmd, pipe: stdin, ended: make(chan struct{})}
	reports := make(chan child.Report, 1)
	go p.wait(stdout, reports, c.later)
	return p, p.awaitReport(ctx, reports, limit)
}

// A user's own variables must not leak into the cluster.
func foreignEnviron() []string {
	return slices.DeleteFunc(os.Environ(), func(pair string) bool { return strings.HasPrefix(pair, "HOLDFAST_") })
}

// wait reads reports until the process ends. A node that begins anew within its process, with a higher boot id, reports once more,
// because it listens at other ports.
func (p *process) wait(stdout io.Reader, reports chan<- child.Report, later func(child.Report)) {
	defer close(p.ended)
	first := true
	for lines := bufio.NewReader(stdout); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var r child.Report
		switch {
		case json.Unmarshal(line, &r) != nil:
		case first:
			first = false
			reports <- r
		case later != nil:
			later(r)
		}
	}
	err := p.cmd.Wait()
	p.how = p.cmd.ProcessState.String()
	if err != nil && p.how == "" {
		p.how = err.Error()
	}
	p.pipe.Close()
}

func (p *process) awaitReport(ctx context.Context, reports <-chan child.Report, limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	var err error
	select {
	case p.report = <-reports:
		return nil
	case <-p.ended:
		select { // it may have reported first
		case p.report = <-reports:
			return nil
		default:
			return fmt.Errorf("%w (%s)", errEndedEarly, p.how)
		}
	case <-timer.C:
		err = fmt.Errorf("it did not report its addresses within %s", limit)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	_ = p.signal(syscall.SIGKILL)
	<-p.ended
	return err
}

func (p *process) alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// killed reports whether SIGKILL ended the process, which has ended.
func (p *process) killed() bool {
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// signal does nothing once the process was waited for: its pid could be another's.
func (p *process) signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal pid %d: %w", p.pid, err)
	}
	return nil
}

// SIGTERM would hand the node's rooms over first.
func (p *process) end(limit time.Duration) {
	if p.signal(syscall.SIGINT) != nil { // not every system has it
		_ = p.signal(syscall.SIGKILL)
	}
	wake(p)
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
		_ = p.signal(syscall.SIGKILL)
		<-p.ended
	}
}
