package devcluster

import (
	"os/exec"
	"syscall"
)

// tieToParent has the kernel kill the child with the spawner's thread. The child gets a process group of its own: Ctrl-C
// reaches the supervisor alone, which ends children in order.
func tieToParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
