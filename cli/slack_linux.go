package cli

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// setTimerSlack has the kernel wake the threads of this process up to so much late. A thread hands its slack down to those that it makes,
// and the Go runtime has made some before main: so the program is begun anew, as the same process. It returns when there is nothing to
// do, or with an error. A tied process dies with its parent, also when it is stopped: that is the thread's too, and the thread
// that begins the program anew becomes its first one (prctl(2), PR_SET_PDEATHSIG).
func setTimerSlack(slack time.Duration, tied bool) error {
	runtime.LockOSThread() // The slack is the thread's.
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
		return err // Threads that run in real time have none.
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
