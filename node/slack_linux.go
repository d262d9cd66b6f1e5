package node

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// setTimerSlack has the kernel wake this process's threads up to so much late. New threads inherit the slack, and the Go runtime has
// made some before main, so the program is executed again, in the same process. It returns when nothing is to do, or with an error.
// A tied process dies with its parent, also when stopped: that belongs to the executing thread too (prctl(2), PR_SET_PDEATHSIG).
func setTimerSlack(slack time.Duration, tied bool) error {
	// The slack belongs to the thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	has := func() (bool, error) {
		present, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
		return time.Duration(present) == slack, err
	}
	if done, err := has(); done || err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack), 0, 0, 0); err != nil {
		return err
	}
	if done, err := has(); !done || err != nil {
		// Without an error, the slack could not be set: real-time threads have none.
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	if tied {
		if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
			return err
		}
	}
	if err := syscall.Exec(program, os.Args, os.Environ()); err != nil {
		return fmt.Errorf("run %s anew: %w", program, err)
	}
	return nil
}
