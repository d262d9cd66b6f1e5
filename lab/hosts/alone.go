//go:build linux

package hosts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const endLimit = 30 * time.Second

// Able returns why this process may not make hosts, nil if it may.
func Able() error {
	for _, tool := range []string{"ip", "nft"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%w (%s is not installed)", ErrUnable, tool)
		}
	}
	s, err := newSpace()
	if err != nil {
		return fmt.Errorf("%w (%w)", ErrUnable, err)
	}
	err = s.do(func() error {
		if err := ip("link add probe type veth peer name eborp", "link add switch type bridge"); err != nil {
			return err
		}
		return nft(`table netdev probe {
	chain out { type filter hook ingress device probe priority 0; numgen random mod 100 < 5 drop; }
	chain in { type filter hook egress device probe priority 0; numgen random mod 100 < 5 drop; }
}`)
	})
	if err != nil {
		err = fmt.Errorf("%w (%w)", ErrUnable, err)
	}
	return errors.Join(err, s.file.Close())
}

// Name writes a file of names and their addresses, which this process and those that it starts then use in place of /etc/hosts. Other names
// are unknown to them at once, instead of after the silence of a server out of reach. This process must be alone (RunAlone).
func Name(file string, names map[string]string) error {
	if !Alone() {
		return ErrNotAlone
	}
	var text strings.Builder
	text.WriteString("127.0.0.1 localhost\n::1 localhost\n")
	for name, address := range names {
		// Chromium asks for TURN servers over UDP with the dot, and resolvers look such a name up as it is.
		text.WriteString(address + " " + name + " " + name + ".\n")
	}
	return errors.Join(
		cover("/etc/hosts", file, text.String()),
		cover("/etc/resolv.conf", file+".resolv", "nameserver 127.0.0.1\n"), // Nothing listens there.
	)
}

// cover puts a file in the place of one of the machine's.
func cover(path, file, text string) error {
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil { //nolint:gosec // as the file that it stands for
		return err
	}
	if err := syscall.Mount(file, path, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("%w (names: cover %s: %w)", ErrUnable, path, err)
	}
	return nil
}

// Alone reports whether this process was started by RunAlone.
func Alone() bool { return os.Getenv(aloneEnv) != "" }

// RunAlone runs a program in a new, empty network namespace, with our standard streams, until it ends. What it mounts nobody else
// sees, so that it may give hosts names (Name). It is interrupted
// when ctx ends, and killed when this process ends. An exit code other than 0 is an EndedError.
func RunAlone(ctx context.Context, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), aloneEnv+"=1")
	// A group of its own: we pass a Ctrl-C on, once.
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL, Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = endLimit
	err := onOwnThread(cmd.Run) // the kernel ties the program's life to the thread's
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return &EndedError{Code: exit.ExitCode()}
	}
	return err
}
