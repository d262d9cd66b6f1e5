package storetest

import (
	"os/exec"
	"runtime"
)

// startTied starts a server that ends with this process, also by SIGKILL. How it ended comes on the channel.
func startTied(cmd *exec.Cmd) (ended chan error, err error) {
	started, done := make(chan error, 1), make(chan error, 1)
	go func() {
		// Linux ties the parent-death signal to the thread that forked, so this goroutine keeps its thread until the
		// child ends.
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
