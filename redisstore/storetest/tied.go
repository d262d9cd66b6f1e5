package storetest

import (
	"os/exec"
	"runtime"
)

// startTied starts a server that ends with this process, also when this process is killed. How it ended comes on
// the channel, once.
func startTied(cmd *exec.Cmd) (ended chan error, err error) {
	started, done := make(chan error, 1), make(chan error, 1)
	go func() {
		// Linux ties a child's parent-death signal to the thread that forked it, not to the process. So this goroutine
		// keeps its thread for as long as the child lives, and the thread ends with it.
		runtime.LockOSThread()
		tie(cmd)
		err := cmd.Start()
		started <- err
		if err == nil {
			done <- cmd.Wait()
		}
	}()
	return done, <-started
}
