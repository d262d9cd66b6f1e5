//go:build !node

package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/child"
	"github.com/holdfast-rtc/holdfast/internal/invocation"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/node"
	"github.com/holdfast-rtc/holdfast/redisstore"
	"github.com/holdfast-rtc/holdfast/signaling"
)

type devCommand struct {
	Up     devUpCommand     `cmd:"" default:"withargs" help:"Run a cluster until Ctrl-C (what dev does without a verb)."`
	Status devStatusCommand `cmd:"" help:"Show the nodes of the running cluster."`
	Start  devStartCommand  `cmd:"" help:"Start a dead node again."`
	Kill   devKillCommand   `cmd:"" help:"Send a node a signal, SIGKILL by default."`
	AddSFU devAddSFUCommand `cmd:"" name:"add-sfu" help:"Start one more media node."`
	Stop   devStopCommand   `cmd:"" help:"End the cluster."`
}

type devUpCommand struct {
	SFU        int      `name:"sfu" default:"3" help:"How many media nodes."`
	Signaling  int      `default:"2" help:"How many signaling nodes."`
	Redis      string   `placeholder:"URL" help:"A store, as --store of the nodes takes it; without one the embedded store runs as a process."`
	Sentinels  int      `hidden:"" help:"How many real Sentinels lead the nodes to the embedded store."`
	Listen     string   `placeholder:"HOST:PORT" help:"Where the page is served; 127.0.0.1:7880 when that is free, else a free port."`
	Origin     []string `placeholder:"HOST" help:"Hosts (patterns such as *.example.org:3000) whose pages may use the cluster, and names that this machine is opened by; pages of localhost may anyway."`
	MediaHost  string   `placeholder:"IP" help:"An address of this machine that media is bound to, for browsers in another network; 127.0.0.1 when empty."`
	Turn       bool     `help:"Have the signaling nodes relay media (TURN over UDP and TCP)."`
	People     int      `help:"How many drawn people wait in the room hall, 1 to 24; without it nobody, and 4 with demo."`
	RoomPeople int      `help:"How many people a room may have, as the media nodes' --room-people; without it what those take by default."`
	Standby    bool     `help:"Have media nodes go on with each other's calls, without a word to the clients, as the media nodes' --standby."`
	Verbose    bool     `help:"Show every line that a node logs."`
	State      string   `placeholder:"PATH" help:"The file that leads the other dev verbs to this cluster; chosen when empty."`
	Host       []string `hidden:"" sep:"none" placeholder:"NAME=IP@PATH" help:"The network namespace that a node runs in, and its address there."`
	NodeEnv    []string `hidden:"" sep:"none" placeholder:"NAME:KEY=VALUE" help:"An environment variable of one node's first run."`
}

func (c *devUpCommand) options() (devcluster.Options, error) {
	o := devcluster.Options{
		SFU: c.SFU, Signaling: c.Signaling, Redis: c.Redis, Sentinels: c.Sentinels, Listen: c.Listen, Origins: c.Origin, MediaHost: c.MediaHost, TURN: c.Turn, People: c.People, RoomPeople: c.RoomPeople, Standby: c.Standby, Verbose: c.Verbose, State: c.State,
		NodeEnv: map[string][]string{}, Hosts: map[string]devcluster.Host{},
	}
	var hostFaults error
	for _, given := range c.Host {
		name, host, err := devcluster.ParseHost(given)
		hostFaults = errors.Join(hostFaults, err)
		o.Hosts[name] = host
	}
	for _, given := range c.NodeEnv {
		name, pair, _ := strings.Cut(given, ":")
		o.NodeEnv[name] = append(o.NodeEnv[name], pair)
	}
	return o, node.Faults(hostFaults, signaling.CheckOrigins(c.Origin), o.Validate())
}

func (c *devUpCommand) Run(ctx context.Context, s streams) error {
	o, err := c.options()
	if err != nil {
		return err
	}
	o.Out = s.out
	if err := c.storeAnswers(ctx); err != nil {
		return err
	}
	ctx, cancel := untilHangUp(ctx)
	defer cancel()
	if child.Supervised() { // by a test: standard output is the report's
		o.Out = s.err
		child.EndWithParent(s.in, cancel)
	} else {
		devcluster.EndWithGoRun(ctx, cancel)
	}
	supervisor := devcluster.New(o)
	var people sync.WaitGroup
	defer people.Wait()
	defer cancel() // before the waiting
	supervisor.OnReady(func(page string) error {
		if o.People > 0 {
			people.Go(func() { populate(ctx, page, supervisor.Access(), o.People, s) })
		}
		if child.Supervised() {
			return child.Announce(s.out, map[string]string{child.AddressHTTP: page})
		}
		return nil
	})
	return supervisor.Run(ctx)
}

// storeAnswers looks at the store of --redis: signaling nodes would wait for it in silence.
func (c *devUpCommand) storeAnswers(ctx context.Context) error {
	if c.Redis == "" {
		return nil
	}
	store, err := redisstore.Open(c.Redis, slog.New(slog.DiscardHandler))
	if err != nil {
		return fmt.Errorf("--redis: %w", err)
	}
	defer func() { _ = store.Close() }() // it was only asked
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if err := store.Ping(ctx); err != nil {
		return fmt.Errorf("--redis: no server answers there: %w", err)
	}
	return nil
}

type devStatusCommand struct {
	devStateFlag
	JSON bool `name:"json" help:"Print the status as JSON, for programs."`
}

func (c *devStatusCommand) Run(ctx context.Context, s streams) error {
	dev, err := devcluster.Find(ctx, c.State)
	if err != nil {
		return err
	}
	status, err := dev.Status(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		return encodeJSON(s.out, status)
	}
	fmt.Fprint(s.out, status.Table())
	return nil
}

type devStartCommand struct {
	devStateFlag
	Name string   `arg:"" help:"The node, for example sfu-2."`
	Env  []string `sep:"none" placeholder:"KEY=VALUE" help:"An environment variable of this run."`
}

func (c *devStartCommand) Run(ctx context.Context, s streams) error {
	dev, err := devcluster.Find(ctx, c.State)
	if err != nil {
		return err
	}
	node, err := dev.StartNode(ctx, c.Name, c.Env...)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%s runs as pid %d\n", node.Name, node.Pid)
	return nil
}

type devKillCommand struct {
	devStateFlag
	Name   string `arg:"" help:"The node, for example sfu-2."`
	Signal int    `default:"9" help:"The signal's number: 9 kills, 15 asks to end, 19 freezes, 18 thaws (on Linux)."`
}

func (c *devKillCommand) Run(ctx context.Context, s streams) error {
	dev, err := devcluster.Find(ctx, c.State)
	if err != nil {
		return err
	}
	if err := dev.Kill(ctx, c.Name, syscall.Signal(c.Signal)); err != nil {
		return err
	}
	if c.Signal == int(syscall.SIGKILL) {
		fmt.Fprintf(s.out, "%s was killed; start it again with: %s dev start %s\n", c.Name, invocation.Name(), c.Name)
		return nil
	}
	fmt.Fprintf(s.out, "signal %d was sent to %s\n", c.Signal, c.Name)
	return nil
}

type devAddSFUCommand struct {
	devStateFlag
	Env []string `sep:"none" placeholder:"KEY=VALUE" help:"An environment variable of this run."`
}

func (c *devAddSFUCommand) Run(ctx context.Context, s streams) error {
	dev, err := devcluster.Find(ctx, c.State)
	if err != nil {
		return err
	}
	node, err := dev.AddSFU(ctx, c.Env...)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%s runs as pid %d\n", node.Name, node.Pid)
	return nil
}

type devStopCommand struct{ devStateFlag }

func (c *devStopCommand) Run(ctx context.Context) error {
	dev, err := devcluster.Find(ctx, c.State)
	if err != nil {
		return err
	}
	return dev.Stop(ctx)
}
