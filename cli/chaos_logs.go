//go:build !node

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/holdfast-rtc/holdfast/lab/chaos"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// keepLogs copies the nodes' logs and everybody's media state to a directory, or, without one and when a promise was broken, to a new
// directory.
func (c *chaosCommand) keepLogs(ctx context.Context, cluster *devcluster.Client, dir string, r *chaos.Report, s streams) error {
	if dir == "" && (r.Kept || c.running()) {
		return nil
	}
	from, err := cluster.LogDir(context.WithoutCancel(ctx)) // also of a run that was interrupted
	if err != nil {
		return fmt.Errorf("ask where the logs are: %w", err)
	}
	if dir == "" {
		if dir, err = os.MkdirTemp("", "holdfast-chaos-logs-"); err != nil {
			return fmt.Errorf("keep the logs: %w", err)
		}
	}
	if err := copyLogs(dir, from); err != nil {
		return err
	}
	for i, e := range r.Evidence {
		if err := writeJSONFile(filepath.Join(dir, e.Name(i)), e); err != nil {
			return err
		}
	}
	fmt.Fprintf(s.err, "the logs of the nodes are in %s\n", dir)
	return nil
}

func copyLogs(to, from string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return fmt.Errorf("keep the logs: %w", err)
	}
	logs, err := filepath.Glob(filepath.Join(from, "*.log"))
	if err == nil && len(logs) == 0 {
		err = fmt.Errorf("%s has no logs", from)
	}
	for _, log := range logs {
		err = errors.Join(err, copyFile(filepath.Join(to, filepath.Base(log)), log))
	}
	if err != nil {
		return fmt.Errorf("keep the logs: %w", err)
	}
	return nil
}

func copyFile(to, from string) error {
	in, err := os.Open(from) //nolint:gosec // a log of the cluster that this run started
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()                                      // it was only read
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600) //nolint:gosec // where the user wants it
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
