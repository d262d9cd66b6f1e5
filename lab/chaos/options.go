package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/pin"
)

// Pins reads the pins of a store.
type Pins interface {
	AllPins(ctx context.Context, each func(pin.Holding) error) error
}

// Options configure a run.
type Options struct {
	Scenario Name
	Trials   int
	Rooms    int           // of synthetic people
	Peers    int           // in each room
	Large    int           // people in one more room, whose node every other trial hurts; 0 = no such room
	Cameras  int           // the first ones of each room with a camera on; all send little; -1 = everybody
	Browsers int           // in one more room
	Soak     time.Duration // length of the random faults
	Percent  int           // of packets lost
	Delay    time.Duration // of each packet, each way
	Cut      time.Duration // least length of a cut; 0 = until its rooms have moved
	Faults   []Name        // what a soak draws; empty: all that it can
	Seed     uint64        // of the victims and the rooms' names
	Standby  bool          // media nodes stand by for each other: a trial begins when one does for everybody

	Cluster  *devcluster.Client
	Pins     Pins      // nil: verdicts that need the store are unchecked
	Network  Network   // of a cluster whose nodes are hosts; nil: processes only
	Progress io.Writer // gets a line now and then; may be nil

	patience  patience
	sentinels int // of the cluster
}

// One machine carries the cluster and the people.
const (
	maxTrials   = 1000
	maxRooms    = 200
	maxPeers    = 3000 // a media node takes --room-people
	maxCameras  = 12   // shown at once
	maxPeople   = 3200
	maxBrowsers = 8
	maxSoak     = 4 * time.Hour
	maxPercent  = 50
	maxDelay    = 2 * time.Second
	maxCut      = 5 * time.Minute
	minSFU      = 3 // one to hurt, one to move to, one that notices nothing
)

func (o Options) cameras(people int) int {
	if o.Cameras == -1 {
		return people
	}
	return min(o.Cameras, people)
}

// Validate returns every fault at once. It does not look at Cluster.
func (o Options) Validate() error {
	var faults []error
	fault := func(wrong bool, format string, values ...any) {
		if wrong {
			faults = append(faults, fmt.Errorf(format, values...))
		}
	}
	_, known := find(o.Scenario)
	fault(!known, "scenario %q: give one of %s", o.Scenario, strings.Join(Names(), ", "))
	fault(o.Trials < 1 || o.Trials > maxTrials, "--trials %d: give 1 to %d", o.Trials, maxTrials)
	fault(o.Rooms < minSFU || o.Rooms > maxRooms, "--rooms %d: give %d (so that each node has one) to %d", o.Rooms, minSFU, maxRooms)
	fault(o.Peers < 2 || o.Peers > maxPeers, "--peers %d: give 2 to %d in each room", o.Peers, maxPeers)
	fault(o.Rooms*o.Peers+o.Large > maxPeople, "--rooms %d of --peers %d and --large %d are more than %d people", o.Rooms, o.Peers, o.Large, maxPeople)
	fault(o.Large != 0 && (o.Large <= o.Peers || o.Large > maxPeers), "--large %d: give 0, or more than --peers %d and at most %d", o.Large, o.Peers, maxPeers)
	fault(o.Large != 0 && o.Scenario == Crowd, "--large %d: a crowd has rooms of one size", o.Large)
	fault(o.spreads() && o.Large < leastSpread, "--large %d: %s spreads a room of %d or more", o.Large, o.Scenario, leastSpread)
	fault(o.Large != 0 && o.Browsers > 0, "--large %d: give --browsers 0 with it", o.Large)
	fault(o.Cameras < -1 || o.Cameras > maxCameras, "--cameras %d: give 0 to %d, or -1 for everybody", o.Cameras, maxCameras)
	all := o.Peers // have cameras
	if !o.spreads() {
		all = max(o.Peers, o.Large)
	}
	fault(o.Cameras == -1 && all > maxCameras+1, "rooms of %d need --cameras 0 to %d", all, maxCameras)
	fault(o.Browsers == 1 || o.Browsers < 0 || o.Browsers > maxBrowsers, "--browsers %d: give 0, or 2 to %d", o.Browsers, maxBrowsers)
	fault(o.Scenario == Soak && (o.Soak < time.Minute || o.Soak > maxSoak), "--minutes %g: give 1 to %g", o.Soak.Minutes(), maxSoak.Minutes())
	for _, name := range o.Faults {
		s, _ := find(name)
		fault(!s.soak || o.Scenario != Soak, "--faults %s: give, with soak, some of %s", name, join(those(func(s scenario) bool { return s.soak })))
	}
	fault(o.Scenario == Calm && (o.Soak < time.Second || o.Soak > maxSoak), "--minutes %g: give %.2f to %g", o.Soak.Minutes(), time.Second.Minutes(), maxSoak.Minutes())
	fault(o.Scenario == Calm && (o.Percent < 0 || o.Percent > maxPercent), "--percent %d: give 0 to %d", o.Percent, maxPercent)
	fault((o.Scenario == Loss || o.Scenario == LinkLoss) && (o.Percent < 1 || o.Percent > maxPercent), "--percent %d: give 1 to %d", o.Percent, maxPercent)
	fault(o.Scenario == Delay && (o.Delay < time.Millisecond || o.Delay > maxDelay), "--delay %s: give 1ms to %s", o.Delay, maxDelay)
	fault(o.Cut < 0 || o.Cut > maxCut, "--cut %s: give 0 to %s", o.Cut, maxCut)
	return errors.Join(faults...)
}

// spreads reports whether the large room is to be on several nodes.
func (o Options) spreads() bool {
	s, _ := find(o.Scenario)
	return s.spreads
}

func join(names []Name) string {
	var all []string
	for _, name := range names {
		all = append(all, string(name))
	}
	return strings.Join(all, ", ")
}

func (o *Options) countSentinels(status devcluster.Status) {
	for _, n := range status.Nodes {
		if n.Role == devcluster.RoleSentinel {
			o.sentinels++
		}
	}
}

func (o Options) suits(status devcluster.Status) error {
	sfu, signaling, stores := 0, 0, 0
	for _, n := range status.Nodes {
		if n.State != devcluster.StateRunning {
			return fmt.Errorf("%s is %s: start it again, or end that cluster", n.Name, n.State)
		}
		switch n.Role {
		case devcluster.RoleSFU:
			sfu++
		case devcluster.RoleSignaling:
			signaling++
		case devcluster.RoleStore:
			stores++
		case devcluster.RoleFront, devcluster.RoleSentinel:
		}
	}
	s, _ := find(o.Scenario)
	switch missing := slices.DeleteFunc(slices.Clone(o.Faults), func(name Name) bool { return slices.Contains(o.soakFaults(), name) }); {
	case len(missing) > 0:
		return fmt.Errorf("--faults %s: this cluster cannot be hurt so: the network needs root, and %s needs redis-server and a cluster that the run starts", join(missing), SentinelFreeze)
	case NeedsSentinels(o.Scenario) && o.sentinels == 0:
		return fmt.Errorf("%s needs a cluster with Sentinels, which a run starts for itself", o.Scenario)
	case !o.Cluster.Supervised() && !o.can(s):
		return fmt.Errorf("%s needs a cluster of processes, which a run starts for itself: leave --compose away", o.Scenario)
	case NeedsHosts(o.Scenario) && o.Network == nil:
		return fmt.Errorf("%s needs a cluster whose nodes are hosts, which a run starts for itself", o.Scenario)
	case sfu < minSFU || signaling < 2:
		return fmt.Errorf("the cluster has %d media and %d signaling nodes; chaos needs %d and 2", sfu, signaling, minSFU)
	case stores == 0 && slices.Contains([]Name{StoreKill, StorePause, HostLoss, ClockAhead, ClockJump, Soak}, o.Scenario):
		return errors.New("the cluster's store is not its own process: there is nothing to hurt")
	}
	return nil
}

func (o Options) parameters() Parameters {
	p := Parameters{Trials: o.Trials, Rooms: o.Rooms, Peers: o.Peers, Large: o.Large, Cameras: o.Cameras, Browsers: o.Browsers, Seed: o.Seed, Standby: o.Standby, CutSeconds: o.Cut.Seconds()}
	if o.Scenario == Soak || o.Scenario == Calm {
		p.Trials, p.SoakMinutes = 0, o.Soak.Minutes()
	}
	return p
}
