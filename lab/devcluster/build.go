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

// Binary builds the binary once a process, for tests, and returns its path.
func Binary() (string, error) { return builtOnce() }

// Later builds remove older binaries.
const oldBinary = 24 * time.Hour

var builtOnce = sync.OnceValues(build) //nolint:gochecknoglobals // once per process is the point: linking takes seconds.

// The binary is named by its content, so that no build replaces a running one.
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
	// No VCS stamp: the content must not change with each commit. No debug information: linking is faster.
	cmd := exec.CommandContext(context.Background(), "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", fresh, mainPackage)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
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
