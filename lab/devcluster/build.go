package devcluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

const mainPackage = "github.com/holdfast-rtc/holdfast"

// Binary builds the binary, once for each process, and returns its path. It is for tests.
func Binary() (string, error) { return builtOnce() }

// oldBinary is the age at which a test's binary is removed by a later build.
const oldBinary = 24 * time.Hour

var builtOnce = sync.OnceValues(build) //nolint:gochecknoglobals // once per process is the point: linking takes seconds.

// build names the binary by its content: test processes that build side by side never replace one that runs.
func build() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	dir := filepath.Join(cache, "holdfast-test")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the directory of test binaries: %w", err)
	}
	fresh := filepath.Join(dir, fmt.Sprintf("new-%d", os.Getpid()))
	// -buildvcs off: the content must not change with every commit. Without debug information the linker is done sooner.
	cmd := exec.CommandContext(context.Background(), "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", fresh, mainPackage)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is released
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", mainPackage, err, out)
	}
	content, err := os.ReadFile(fresh)
	if err != nil {
		return "", fmt.Errorf("read the test binary: %w", err)
	}
	sum := sha256.Sum256(content)
	final := filepath.Join(dir, "holdfast-"+hex.EncodeToString(sum[:6]))
	if err := os.Rename(fresh, final); err != nil {
		return "", fmt.Errorf("name the test binary: %w", err)
	}
	removeOld(dir)
	return final, nil
}

func removeOld(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if stat, err := e.Info(); err == nil && time.Since(stat.ModTime()) > oldBinary {
			os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}
