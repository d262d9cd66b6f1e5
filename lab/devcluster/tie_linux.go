package devcluster

import (
	"os/exec"
	"syscall"
)

// The kernel kills the child with the spawner's thread. Ctrl-C reaches only the supervisor: the child has its own process group.
func tieToParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
