package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Replace recreates a service's container as docs/OPERATIONS.md says, and returns when it is healthy. Compose needs the variables
// of the file in this process's environment.
func (c *Cluster) Replace(ctx context.Context, service string) error {
	one, err := c.find(ctx, service)
	if err != nil {
		return err
	}
	compose, err := composeCommand()
	if err != nil {
		return err
	}
	following := c.logs.follow(ctx, one) // they go with the container
	args := append(compose, "-p", c.project, "--project-directory", one.Labels[labelDir])
	args = append(append(args, composeFiles(one.Labels)...), "up", "-d", "--force-recreate", "--no-deps", service)
	said, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput() //nolint:gosec // what Compose itself noted
	following()
	if err != nil {
		return fmt.Errorf("recreate %s: %w\n%.2000s", service, err, said)
	}
	return c.healthy(ctx, service)
}

func composeCommand() ([]string, error) {
	if path, err := exec.LookPath("docker-compose"); err == nil {
		return []string{path}, nil
	}
	if exec.Command("docker", "compose", "version").Run() == nil { //nolint:noctx // it answers at once
		return []string{"docker", "compose"}, nil
	}
	return nil, errors.New("there is no docker-compose: install it to recreate containers")
}

// logs are copies of what containers wrote, a file for each service over all its containers.
type logs struct {
	dir   string
	until map[string]time.Time // what was copied of each container
}

func newLogs() (logs, error) {
	dir, err := os.MkdirTemp("", "holdfast-containers-")
	if err != nil {
		return logs{}, fmt.Errorf("make a directory for logs: %w", err)
	}
	return logs{dir: dir, until: map[string]time.Time{}}, nil
}

// LogDir copies what was written since the last time.
func (c *Cluster) LogDir(ctx context.Context) (string, error) {
	list, err := c.engine.containers(ctx, c.project)
	for _, one := range list {
		err = errors.Join(err, c.logs.copy(ctx, one))
	}
	return c.logs.dir, err
}

func (l *logs) copy(ctx context.Context, one container, more ...string) error {
	file, err := os.OpenFile(filepath.Join(l.dir, one.service()+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("keep the log of %s: %w", one.service(), err)
	}
	defer file.Close()
	args := append([]string{"logs", "--since", l.until[one.ID].Format(time.RFC3339Nano)}, more...)
	l.until[one.ID] = time.Now()
	reading := exec.CommandContext(ctx, "docker", append(args, one.ID)...) //nolint:gosec // an id of the engine
	reading.Stdout, reading.Stderr = file, file
	if err := reading.Run(); err != nil {
		return fmt.Errorf("read the log of %s: %w", one.service(), err)
	}
	return nil
}

// follow copies until the container has ended; then wait returns.
func (l *logs) follow(ctx context.Context, one container) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = l.copy(ctx, one, "--follow") // a verdict that needs what is missing says so
	}()
	return func() { <-done }
}
