package devcluster

import (
	"context"
	"errors"
	"os/exec"
	"runtime"
)

var errSpawnerEnded = errors.New("the supervisor is ending")

// spawner forks from one OS thread. Linux sends a parent-death signal when the forking thread ends, as a pooled one may.
type spawner struct {
	requests chan spawnRequest
	done     chan struct{}
}

type spawnRequest struct {
	cmd    *exec.Cmd
	space  string // the network namespace; empty = ours
	result chan error
}

func newSpawner() *spawner {
	return &spawner{requests: make(chan spawnRequest), done: make(chan struct{})}
}

// The locked thread, and so its children, end with this goroutine.
func (s *spawner) run(ctx context.Context) {
	runtime.LockOSThread()
	defer close(s.done)
	for {
		select {
		case <-ctx.Done():
			return
		case r := <-s.requests:
			r.result <- r.start()
		}
	}
}

func (r spawnRequest) start() error {
	if r.space == "" {
		return r.cmd.Start()
	}
	return inSpace(r.space, r.cmd.Start)
}

func (s *spawner) start(cmd *exec.Cmd, space string) error {
	tieToParent(cmd)
	r := spawnRequest{cmd: cmd, space: space, result: make(chan error, 1)}
	select {
	case s.requests <- r:
		return <-r.result
	case <-s.done:
		return errSpawnerEnded
	}
}
