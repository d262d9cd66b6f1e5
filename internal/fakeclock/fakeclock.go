// Package fakeclock sets the wall clock of a foreign program, as of a host that boots with a wrong clock: a library that is
// preloaded into the program adds to the time. It works for programs that ask the C library for the time, as redis-server
// does, and not for Go programs, which ask the kernel. The monotonic clock stays as it is.
package fakeclock

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

//go:embed shim.c.txt
var shim []byte

// Clock is a wall clock that several programs share.
type Clock struct{ library, ahead string }

// Build makes a clock in the directory dir with the C compiler cc. The clock is right until it is set.
func Build(dir, cc string) (*Clock, error) {
	c := &Clock{library: filepath.Join(dir, "fakeclock.so"), ahead: filepath.Join(dir, "fakeclock.ahead")}
	source := filepath.Join(dir, "fakeclock.c")
	if err := os.WriteFile(source, shim, 0o600); err != nil {
		return nil, fmt.Errorf("build a clock: %w", err)
	}
	if out, err := exec.Command(cc, "-shared", "-fPIC", "-O1", "-o", c.library, source).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build a clock: %w\n%s", err, out)
	}
	return c, c.Set(0)
}

// Env returns the environment in which a program runs by this clock.
func (c *Clock) Env() []string {
	return []string{"LD_PRELOAD=" + c.library, "HOLDFAST_CLOCK_AHEAD=" + c.ahead}
}

// Set puts the clock ahead of the machine's, or behind it if ahead is negative. The programs see that at once.
func (c *Clock) Set(ahead time.Duration) error {
	// The file is not truncated, because the programs have it mapped.
	file, err := os.OpenFile(c.ahead, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("set a clock: %w", err)
	}
	_, err = file.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(ahead)), 0) //nolint:gosec // its bits, of a signed number
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("set a clock: %w", err)
	}
	return nil
}
