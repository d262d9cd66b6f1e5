package devcluster

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/child"
)

const startLimit = readyLimit + 2*reportLimit

// Cluster is a test's `holdfast dev` process and its client. It ends with the test process, even a killed one.
type Cluster struct {
	*Client

	supervisor *process
	spawner    *spawner
	endSpawner context.CancelFunc
	log        *logbook
	dir        *runDir
	page       string
}

// Start builds the binary, runs `holdfast dev` and waits until it is ready. Call Close.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	if o.Binary == "" {
		binary, err := builtOnce()
		if err != nil {
			return nil, err
		}
		o.Binary = binary
	}
	if o.SFU == 0 {
		o.SFU = Defaults().SFU
	}
	if o.Signaling == 0 {
		o.Signaling = Defaults().Signaling
	}
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0" // the usual port may be taken
	}
	dir, err := makeRunDir("holdfast-run-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir, spawner: newSpawner()}
	if err := c.start(ctx, o); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, o Options) error {
	show := func([]byte) {}
	if o.Out != nil {
		show = func(line []byte) { _, _ = fmt.Fprintf(o.Out, "%s\n", line) }
	}
	log, err := openLogbook(c.dir.path, "dev", show)
	if err != nil {
		return err
	}
	c.log = log
	spawning, end := context.WithCancel(context.WithoutCancel(ctx))
	c.endSpawner = end
	go c.spawner.run(spawning)
	state := filepath.Join(c.dir.path, "state.json")
	c.supervisor, err = launch(ctx, c.spawner, command{binary: o.Binary, args: o.args(state), stderr: log}, startLimit)
	if err != nil {
		return fmt.Errorf("start the development cluster: %w\n%s", err, log.text())
	}
	c.page = "http://" + c.supervisor.report.Addresses[child.AddressHTTP] + "/"
	c.Client, err = Find(ctx, state)
	return err
}

func (o Options) args(state string) []string {
	args := []string{
		"dev", "--sfu", strconv.Itoa(o.SFU), "--signaling", strconv.Itoa(o.Signaling),
		"--listen", o.Listen, "--state", state,
	}
	if o.Redis != "" {
		args = append(args, "--redis", o.Redis)
	}
	if o.Sentinels > 0 {
		args = append(args, "--sentinels", strconv.Itoa(o.Sentinels))
	}
	for _, origin := range o.Origins {
		args = append(args, "--origin", origin)
	}
	if o.MediaHost != "" {
		args = append(args, "--media-host", o.MediaHost)
	}
	if o.TURN {
		args = append(args, "--turn")
	}
	if o.People > 0 {
		args = append(args, "--people", strconv.Itoa(o.People))
	}
	if o.RoomPeople > 0 {
		args = append(args, "--room-people", strconv.Itoa(o.RoomPeople))
	}
	if o.Standby {
		args = append(args, "--standby")
	}
	if o.Verbose {
		args = append(args, "--verbose")
	}
	args = append(args, o.hostFlags()...)
	for name, env := range o.NodeEnv {
		for _, pair := range env {
			args = append(args, "--node-env", name+":"+pair)
		}
	}
	return args
}

// Close returns when all processes are gone.
func (c *Cluster) Close() {
	if c.supervisor != nil {
		c.supervisor.end(supervisorEndLimit)
	}
	if c.endSpawner != nil {
		c.endSpawner()
		<-c.spawner.done
	}
	if c.log != nil {
		c.log.close()
	}
	c.dir.remove()
}

// The supervisor ends its children first.
const supervisorEndLimit = endLimit + 10*time.Second

// URL is the page's, through the front, with a final slash.
func (c *Cluster) URL() string { return c.page }

// SupervisorPid is the process id of `holdfast dev`.
func (c *Cluster) SupervisorPid() int { return c.supervisor.pid }

// KillSupervisor signals `holdfast dev` and waits for its end.
func (c *Cluster) KillSupervisor(sig syscall.Signal) error {
	if err := c.supervisor.signal(sig); err != nil {
		return err
	}
	<-c.supervisor.ended
	return nil
}

// Output is what `holdfast dev` has printed.
func (c *Cluster) Output() string { return c.log.text() }

// Node describes one node.
func (c *Cluster) Node(ctx context.Context, name string) (Node, error) {
	status, err := c.Status(ctx)
	if err != nil {
		return Node{}, err
	}
	for _, n := range status.Nodes {
		if n.Name == name {
			return n, nil
		}
	}
	return Node{}, fmt.Errorf("%w: %s", ErrNoSuchNode, strings.TrimSpace(name))
}

// Pid is the process id of a node's latest run.
func (c *Cluster) Pid(ctx context.Context, name string) (int, error) {
	n, err := c.Node(ctx, name)
	return n.Pid, err
}
