package devcluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// ErrNoCluster means that this user runs no development cluster.
var ErrNoCluster = errors.New("no development cluster is running")

// ErrSeveral means that this user runs several.
var ErrSeveral = errors.New("several development clusters are running")

// stateFile leads to a supervisor. It holds the run's secrets.
type stateFile struct {
	Pid     int    `json:"pid"`
	Control string `json:"control"` // host:port
	Token   string `json:"token"`
	Access  Access `json:"access"`
}

func stateDir() (string, error) {
	base := os.Getenv("XDG_RUNTIME_DIR")
	if base == "" {
		base = os.TempDir()
	}
	dir := filepath.Join(base, "holdfast-dev-"+strconv.Itoa(os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make the state directory: %w", err)
	}
	found, err := os.Lstat(dir)
	if err != nil {
		return "", fmt.Errorf("look at the state directory: %w", err)
	}
	if !found.IsDir() || found.Mode().Perm()&0o077 != 0 || !ours(found) {
		return "", fmt.Errorf("%s is not a directory that you alone can use: remove it", dir)
	}
	return dir, nil
}

func statePath(wanted string) (string, error) {
	if wanted != "" {
		return wanted, nil
	}
	dir, err := stateDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, strconv.Itoa(os.Getpid())+".json"), nil
}

// write is atomic.
func (f stateFile) write(path string) error {
	content, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("encode the state file: %w", err)
	}
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return fmt.Errorf("write the state file: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("write the state file: %w", err)
	}
	return nil
}

func readState(path string) (stateFile, error) {
	var f stateFile
	content, err := os.ReadFile(path)
	if err != nil {
		return f, fmt.Errorf("read the state file: %w", err)
	}
	if err := json.Unmarshal(content, &f); err != nil {
		return f, fmt.Errorf("decode the state file %s: %w", path, err)
	}
	return f, nil
}
