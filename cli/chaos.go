//go:build !node

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/child"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/lab/browser"
	"github.com/holdfast-rtc/holdfast/lab/chaos"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/docker"
	"github.com/holdfast-rtc/holdfast/lab/hosts"
	"github.com/holdfast-rtc/holdfast/node"
	"github.com/holdfast-rtc/holdfast/redisstore"
)

type chaosCommand struct {
	Scenario string        `arg:"" help:"What to do: ${scenarios}."`
	Trials   int           `default:"3" help:"How often."`
	Minutes  float64       `default:"5" help:"How long a soak goes on with random faults, and calm without any."`
	Rooms    int           `default:"6" help:"How many rooms of synthetic people."`
	Peers    int           `default:"3" help:"How many of them in each room."`
	Large    int           `help:"How many of them in one room more, whose node every other trial hurts: at most 3,000."`
	Cameras  int           `default:"-1" help:"How many of each room have a camera on; everybody sends little then, so that two cores carry hundreds. -1 is everybody."`
	Browsers int           `default:"-1" help:"How many Chromium processes in one room more; -1 is 2 where Chromium is installed, else 0."`
	Percent  int           `default:"5" help:"How many of a hundred packets the scenarios loss and link-loss lose, and of gossip in calm."`
	Delay    time.Duration `default:"200ms" help:"How late the scenario delay makes each packet, each way."`
	Cut      time.Duration `placeholder:"DURATION" help:"How long a partition lasts at least. Without it, until the rooms have moved; in a soak every other one is long."`
	Faults   []string      `placeholder:"NAME,..." help:"What a soak draws its faults from; without it from all that can be done."`
	Seed     uint64        `help:"Makes the victims and the rooms' names repeatable. Chosen and shown when 0."`
	Standby  bool          `help:"Have the media nodes of the cluster that is started for the run stand by for each other: the media nodes' --standby."`
	Without  bool          `name:"no-standby" help:"With --standby: do the same in another cluster without it first, and print its gaps beside."`
	Running  bool          `help:"Hurt this user's running development cluster; without it one is started for the run."`
	State    string        `placeholder:"PATH" help:"Hurt the running cluster with this state file."`
	URL      string        `name:"server" aliases:"url" env:"HOLDFAST_SERVER,HOLDFAST_URL" placeholder:"URL" help:"Hurt the running development cluster whose page this is; it must be this user's."`
	Compose  string        `placeholder:"PROJECT" help:"Hurt the containers of this Compose project, which runs docker-compose.yml. No browsers."`
	Redis    string        `placeholder:"URL" help:"The store of the cluster that is started for the run, which others may use too; without it an embedded one."`
	Store    string        `placeholder:"URL" help:"Where a running cluster's pins are, when it was started with --redis."`
	reportFlags
	Logs string `placeholder:"DIR" help:"Keep the logs of the nodes in this directory. Without it those of a cluster that was started for the run are kept in a new one when a promise was broken."`
}

// errNotKept is the end of a run that broke a promise; the report says which.
var errNotKept = errors.New("not every invariant was kept, or not every one could be checked")

func (c *chaosCommand) Run(ctx context.Context, s streams) error {
	ctx, cancel := untilHangUp(ctx)
	defer cancel()
	o := c.options(s)
	if err := o.Validate(); err != nil {
		return node.Faults(err)
	}
	if o.Browsers > 0 && browser.Path() == "" {
		return node.Faults(fmt.Errorf("--browsers %d: %w", o.Browsers, browser.ErrNoChromium))
	}
	if c.Redis != "" && c.running() {
		return node.Faults(errors.New("--redis is for a cluster that is started for the run: give --store for one that runs"))
	}
	if c.Standby && c.running() {
		return node.Faults(errors.New("--standby is for a cluster that is started for the run: give it to dev for one that runs"))
	}
	if c.Without && !c.Standby {
		return node.Faults(errors.New("--no-standby compares a run with --standby: give both, or neither"))
	}
	if c.Compose != "" && (c.Running || c.State != "" || c.URL != "" || o.Browsers > 0) {
		return node.Faults(errors.New("--compose goes with neither --running, --state, --server nor --browsers: the page of docker-compose.yml wants a click"))
	}
	inHosts, err := c.wantsHosts(s)
	switch {
	case err != nil:
		return err
	case inHosts && !hosts.Alone():
		return runAlone(ctx)
	}
	show := func(r *chaos.Report) error { return c.print(s, r, r.WriteTable) }
	if !c.Without {
		_, err := c.once(ctx, o, s, c.Logs, show)
		return err
	}
	o.Standby = false
	logs := c.Logs
	if logs != "" {
		logs = filepath.Join(logs, "without")
	}
	without, broken := c.once(ctx, o, s, logs, func(r *chaos.Report) error { return r.WriteTable(s.err) })
	if without == nil || ctx.Err() != nil {
		return broken
	}
	o.Standby = true
	_, err = c.once(ctx, o, s, c.Logs, func(r *chaos.Report) error {
		r.Without = without
		return show(r)
	})
	return cmp.Or(err, broken)
}

// once does the run in one cluster, and prints its report, which may be nil with an error. errNotKept has a report.
func (c *chaosCommand) once(ctx context.Context, o chaos.Options, s streams, logs string, show func(*chaos.Report) error) (*chaos.Report, error) {
	end, err := c.find(ctx, &o, s)
	if err != nil {
		return nil, err
	}
	defer end()
	store, closeStore, err := c.store(ctx, o.Cluster)
	if err != nil {
		return nil, err
	}
	defer closeStore()
	if store != nil {
		o.Pins = store
	}
	run, err := chaos.New(o)
	if err != nil {
		return nil, err
	}
	report, err := run.Run(ctx)
	if report == nil {
		return nil, err
	}
	if err := errors.Join(err, show(report), c.keepLogs(ctx, o.Cluster, logs, report, s)); err != nil {
		return nil, err
	}
	if !report.Kept {
		return report, errNotKept
	}
	return report, nil
}

func (c *chaosCommand) options(s streams) chaos.Options {
	browsers := c.Browsers
	if browsers == -1 {
		browsers = 0
		if browser.Path() != "" && c.Compose == "" {
			browsers = 2
		}
	}
	var only []chaos.Name
	for _, name := range c.Faults {
		only = append(only, chaos.Name(name))
	}
	return chaos.Options{
		Faults:   only,
		Scenario: chaos.Name(c.Scenario), Trials: c.Trials, Rooms: c.Rooms, Peers: c.Peers, Browsers: browsers,
		Soak: time.Duration(c.Minutes * float64(time.Minute)), Seed: seedOr(c.Seed), Progress: s.err,
		Large: c.Large, Cameras: c.Cameras, Percent: c.Percent, Delay: c.Delay, Cut: c.Cut, Standby: c.Standby,
	}
}

// find returns what ends the clusters that were started.
func (c *chaosCommand) find(ctx context.Context, o *chaos.Options, s streams) (end func(), err error) {
	if hosts.Alone() {
		return c.startHosts(ctx, o, s)
	}
	if c.Compose != "" {
		containers, err := docker.Find(ctx, c.Compose)
		if err != nil {
			return nil, node.Faults(err)
		}
		o.Cluster, o.Network = containers.Client(), docker.Network{Cluster: containers}
		return containers.Close, nil
	}
	if !c.running() {
		self, err := ownBinary()
		if err != nil {
			return nil, err
		}
		sentinels, err := c.sentinels(s)
		if err != nil {
			return nil, err
		}
		fmt.Fprintln(s.err, "starting a development cluster for this run")
		wanted := devcluster.Options{Binary: self, NodeEnv: nodeEnv(*o), Redis: c.Redis, Sentinels: sentinels, Standby: o.Standby}
		takePeople(&wanted, max(o.Peers, o.Large), o.Rooms*o.Peers+o.Large)
		cluster, err := devcluster.Start(ctx, wanted)
		if err != nil {
			return nil, err
		}
		o.Cluster = cluster.Client
		return cluster.Close, nil
	}
	dev, err := devcluster.Find(ctx, c.State)
	if err != nil {
		return nil, node.Faults(err)
	}
	status, err := dev.Status(ctx)
	if err != nil {
		return nil, err
	}
	if c.URL != "" && strings.TrimSuffix(c.URL, "/") != strings.TrimSuffix(status.Page, "/") {
		return nil, node.Faults(fmt.Errorf("--server %s: the development cluster that runs here is %s; choose another with --state", c.URL, status.Page))
	}
	o.Cluster = dev
	return func() {}, nil
}

// sentinels is how many real ones lead to the store of a cluster that is started for the run.
func (c *chaosCommand) sentinels(s streams) (int, error) {
	name := chaos.Name(c.Scenario)
	if !chaos.NeedsSentinels(name) && (name != chaos.Soak || c.Redis != "") {
		return 0, nil
	}
	if c.Redis != "" {
		return 0, node.Faults(fmt.Errorf("%s freezes a Sentinel of the run's own: leave --redis away", name))
	}
	err := devcluster.SentinelsAble()
	switch {
	case err == nil:
		return 3, nil
	case name == chaos.Soak:
		fmt.Fprintf(s.err, "a soak without a frozen Sentinel: %v\n", err)
		return 0, nil
	default:
		return 0, node.Faults(fmt.Errorf("%s: %w", name, err))
	}
}

func nodeEnv(o chaos.Options) map[string][]string {
	if o.Scenario != chaos.Calm {
		return chaos.NodeEnv(o.Scenario)
	}
	env := make(map[string][]string)
	wanted := devcluster.Defaults()
	for i := range wanted.SFU {
		env[fmt.Sprintf("sfu-%d", i+1)] = chaos.CalmEnv(o)
	}
	for i := range wanted.Signaling {
		env[fmt.Sprintf("signaling-%d", i+1)] = chaos.CalmEnv(o)
	}
	return env
}

// store returns nil when nobody knows the store of the pins.
func (c *chaosCommand) store(ctx context.Context, cluster *devcluster.Client) (*redisstore.Store, func(), error) {
	where := cmp.Or(c.Store, c.Redis)
	status, err := cluster.Status(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, n := range status.Nodes {
		if n.Role == devcluster.RoleStore && where == "" {
			where = "redis://" + n.Addresses[child.AddressStore]
		}
	}
	if where == "" {
		return nil, func() {}, nil
	}
	store, err := redisstore.OpenAs(where, status.Name, panics.New(), slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, nil, err
	}
	return store, func() { _ = store.Close() }, nil // it was only read from
}
