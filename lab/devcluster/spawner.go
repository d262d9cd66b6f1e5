package devcluster

import (
	"context"
	"errors"
	"os/exec"
	"runtime"
)

var errSpawnerEnded = errors.New("the supervisor is ending")

// spawner starts processes from one OS thread that lives as long as Run. Linux ties a child's parent-death signal to the
// thread that forked it: a child of a pooled thread could be killed at any time.
type spawner struct {
	requests chan spawnRequest // unbuffered: a caller waits its turn
	done     chan struct{}
}

type spawnRequest struct {
	cmd    *exec.Cmd
	space  string // the network namespace to start it in; empty = ours
	result chan error
}

func newSpawner() *spawner {
	return &spawner{requests: make(chan spawnRequest), done: make(chan struct{})}
}

// run serves until ctx ends. The thread is not unlocked, so it ends with this goroutine, and its children with it.
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

// start starts cmd, in a network namespace, so that it dies with this process.
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
