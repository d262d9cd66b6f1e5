//go:build linux

package hosts

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// space is a network namespace. It lives as long as this process or one in it.
type space struct{ file *os.File }

// IPv6's own packets would count as frames.
func newSpace() (*space, error) {
	var s *space
	err := onOwnThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make a network namespace: %w", err)
		}
		file, err := os.Open("/proc/thread-self/ns/net")
		if err != nil {
			return fmt.Errorf("open the network namespace: %w", err)
		}
		s = &space{file: file}
		return prepare()
	})
	if err != nil && s != nil {
		return nil, errors.Join(err, s.file.Close())
	}
	return s, err
}

func prepare() error {
	for _, which := range []string{"all", "default"} {
		err := os.WriteFile("/proc/sys/net/ipv6/conf/"+which+"/disable_ipv6", []byte("1"), 0)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("switch IPv6 off: %w", err)
		}
	}
	return ip("link set lo up")
}

func (s *space) path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), s.file.Fd()) }

func (s *space) do(f func() error) error {
	return onOwnThread(func() error {
		if err := unix.Setns(int(s.file.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter a network namespace: %w", err)
		}
		return f()
	})
}

// The thread ends with f, so that no other goroutine gets into its namespace.
func onOwnThread(f func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		result <- f()
	}()
	return <-result
}

func ip(lines ...string) error { return run("ip", []string{"-batch", "-"}, strings.Join(lines, "\n")) }

func nft(script string) error { return run("nft", []string{"-f", "-"}, script) }

func run(tool string, args []string, input string) error {
	cmd := exec.Command(tool, args...)
	cmd.Stdin = strings.NewReader(input + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s\n%s", tool, err, strings.TrimSpace(string(out)), input)
	}
	return nil
}
