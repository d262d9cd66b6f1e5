package devcluster

import (
	"os/exec"
	"syscall"
)

// tieToParent has the kernel kill the child when the spawner's thread ends, also
// a stopped child, and puts it into a process group of its own, so that Ctrl-C
// reaches the supervisor alone and the children end in order.
func tieToParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
