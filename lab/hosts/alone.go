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

// Able returns why this process may not make hosts, or nil.
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

// Name writes names and addresses to file, and mounts it over /etc/hosts of this process and its children. Other names fail at once.
// The process must be alone (RunAlone).
func Name(file string, names map[string]string) error {
	if !Alone() {
		return ErrNotAlone
	}
	var text strings.Builder
	text.WriteString("127.0.0.1 localhost\n::1 localhost\n")
	for name, address := range names {
		// Chromium asks for TURN servers over UDP with the dot.
		text.WriteString(address + " " + name + " " + name + ".\n")
	}
	return errors.Join(
		cover("/etc/hosts", file, text.String()),
		cover("/etc/resolv.conf", file+".resolv", "nameserver 127.0.0.1\n"), // nothing listens there
	)
}

func cover(path, file, text string) error {
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil { //nolint:gosec // as the file that it stands for
		return err
	}
	if err := syscall.Mount(file, path, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("%w (names: cover %s: %w)", ErrUnable, path, err)
	}
	return nil
}

// Alone reports whether RunAlone started this process.
func Alone() bool { return os.Getenv(aloneEnv) != "" }

// RunAlone runs a program in a new network namespace with private mounts and our standard streams. It is interrupted when ctx
// ends, and killed when this process ends. An exit code other than 0 is an EndedError.
func RunAlone(ctx context.Context, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), aloneEnv+"=1")
	// Ctrl-C comes once, from us.
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL, Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = endLimit
	err := onOwnThread(cmd.Run) // the program ends with the thread
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return &EndedError{Code: exit.ExitCode()}
	}
	return err
}
