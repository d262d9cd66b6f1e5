package devcluster

import (
	"fmt"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// The kernel kills the child with the spawner's thread. Ctrl-C reaches only the supervisor: the child has its own process group.
func tieToParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// become is Exec. The signal of tieToParent belongs to a thread and is kept by the one that executes, so that one asks for it.
func become(program string, args, env []string) error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("end with the parent: %w", err)
	}
	return syscall.Exec(program, args, env) //nolint:gosec // the program that the user installed
}
