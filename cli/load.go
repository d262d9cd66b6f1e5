//go:build !node

package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/invocation"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/load"
	"github.com/holdfast-rtc/holdfast/lab/peer"
	"github.com/holdfast-rtc/holdfast/lab/portrait"
	"github.com/holdfast-rtc/holdfast/node"
	"github.com/holdfast-rtc/holdfast/signaling/access"
)

type loadCommand struct {
	node.KeyringConfig
	devStateFlag
	URL        string        `name:"server" aliases:"url" env:"HOLDFAST_SERVER,HOLDFAST_URL" placeholder:"URL" help:"A signaling node, for example http://127.0.0.1:7880; this user's development cluster by default."`
	Dev        bool          `help:"Start a development cluster for this run and end it afterwards."`
	Rooms      *int          `help:"How many rooms; 5 by default, and one with --room."`
	Room       string        `placeholder:"ROOM" help:"The room that they join, so that you can join it, too; rooms of their own by default."`
	Peers      int           `default:"4" help:"How many people in each room."`
	Publishers int           `default:"0" help:"How many of a room's people publish; the others only receive; 0 is everybody."`
	JoinRate   float64       `default:"20" help:"How many people join in a second."`
	JoinWithin time.Duration `placeholder:"DURATION" help:"Let everybody join within this time, whatever --join-rate says."`
	Duration   time.Duration `default:"30s" help:"How long they stay once everybody is in; 1s to 1h."`
	Video      string        `default:"light" enum:"light,sparse,portrait,simulcast,off,none" help:"What people send: light (one layer of 320x180 and 10 packets/s), sparse (4 packets/s, and a third of the packets of sound), portrait (one layer of 640x360 and 15 packets/s), simulcast (three layers up to 1280x720), off (sound alone) or none (no media, signaling only)."`
	Codec      string        `default:"vp8" enum:"vp8,vp9" help:"What their pictures are encoded with."`
	Seed       uint64        `help:"Makes a run repeatable: the rooms' names, and what is sent. Chosen and shown when 0."`
	reportFlags
}

func (c *loadCommand) Run(ctx context.Context, s streams) error {
	ctx, cancel := untilHangUp(ctx)
	defer cancel()
	if c.Dev && c.URL != "" {
		return node.Faults(errors.New("--dev starts a cluster of its own: give it or --server, not both"))
	}
	// Wrong numbers are said before a cluster is started for them.
	options := c.options(s)
	options.URL, options.Keys = "http://localhost", &access.Keyring{}
	if err := options.Validate(); err != nil {
		return node.Faults(err)
	}
	options = c.options(s)
	end, err := c.find(ctx, &options, s)
	if err != nil {
		return err
	}
	defer end()
	if err := options.Validate(); err != nil {
		return node.Faults(err)
	}
	run, err := load.New(options)
	if err != nil {
		return err
	}
	report, err := run.Run(ctx)
	if err != nil {
		return err
	}
	if err := c.print(s, report, report.WriteTable); err != nil {
		return err
	}
	if report.People.Joined == 0 && !report.Interrupted {
		return fmt.Errorf("nobody of %d could join %s", report.People.Wanted, options.URL)
	}
	return nil
}

func (c *loadCommand) options(s streams) load.Options {
	if c.JoinWithin > 0 {
		c.JoinRate = float64(c.rooms()*c.Peers) / c.JoinWithin.Seconds()
	}
	return load.Options{
		URL: c.URL, Rooms: c.rooms(), Room: c.Room, Peers: c.Peers, Publishers: c.Publishers, JoinsPerSecond: c.JoinRate,
		Duration: c.Duration, Video: peer.Video(c.Video), Codec: portrait.Codec(c.Codec), Seed: seedOr(c.Seed), Progress: s.err, Terminal: isTerminal(s.err),
	}
}

const defaultRooms = 5

func (c *loadCommand) rooms() int {
	switch {
	case c.Rooms != nil:
		return *c.Rooms
	case c.Room != "":
		return 1
	default:
		return defaultRooms
	}
}

// find leads to the cluster: of --server, started for the run, or the one that runs here.
func (c *loadCommand) find(ctx context.Context, o *load.Options, s streams) (end func(), err error) {
	end = func() {}
	switch {
	case c.URL != "":
		o.Keys, err = orDev(ctx, &c.KeyringConfig, c.State)
		if errors.Is(err, devcluster.ErrNoCluster) { // The one at --server may well run.
			err = fmt.Errorf("--api-keys: none given for %s; set HOLDFAST_API_KEYS=KEY:SECRET as its signaling nodes have it, or name its state file with --state where '%s dev' runs it", c.URL, invocation.Name())
		}
		return end, node.Faults(err)
	case c.Dev:
		cluster, err := c.start(ctx, s)
		if err != nil {
			return end, err
		}
		o.URL, o.Cluster = cluster.URL(), cluster
		o.Keys, err = keysOf(cluster.Access())
		return cluster.Close, err
	default:
		dev, err := devcluster.Find(ctx, c.State)
		if errors.Is(err, devcluster.ErrNoCluster) {
			return end, node.Faults(errors.New("--server: none given, and " + err.Error() + ", or let load start one for the run with --dev"))
		}
		if err != nil {
			return end, node.Faults(err)
		}
		status, err := dev.Status(ctx)
		if err != nil {
			return end, err
		}
		o.URL, o.Cluster = status.Page, dev
		o.Keys, err = keysOf(dev.Access())
		return end, err
	}
}

// takePeople has a cluster take so many people in a room, and so many in all from one address.
func takePeople(o *devcluster.Options, perRoom, all int) {
	usual := func(name string) int {
		n, _ := strconv.Atoi(node.Defaults()[name]) // it was written by strconv
		return n
	}
	if perRoom > usual("room_people") {
		o.RoomPeople = perRoom
	}
	// One address has a quarter of the balancer's connections.
	if needed := 4 * (all + 100); needed > usual("max_connections") {
		if o.NodeEnv == nil {
			o.NodeEnv = map[string][]string{}
		}
		o.NodeEnv["front"] = append(o.NodeEnv["front"], fmt.Sprintf("HOLDFAST_MAX_CONNECTIONS=%d", needed))
	}
}

func (c *loadCommand) start(ctx context.Context, s streams) (*devcluster.Cluster, error) {
	self, err := ownBinary()
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(s.err, "starting a development cluster for this run")
	wanted := devcluster.Defaults()
	wanted.Binary = self
	takePeople(&wanted, c.Peers, c.rooms()*c.Peers)
	return devcluster.Start(ctx, wanted)
}
