//go:build !node

package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/holdfast-rtc/holdfast/lab/chaos"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/hosts"
	"github.com/holdfast-rtc/holdfast/node"
)

// wantsHosts is true for scenarios that hurt cables, and for a soak of our own cluster where possible.
func (c *chaosCommand) wantsHosts(s streams) (bool, error) {
	name := chaos.Name(c.Scenario)
	if hosts.Alone() {
		return true, nil
	}
	if c.Compose != "" || !chaos.NeedsHosts(name) && (name != chaos.Soak || c.running() || c.Redis != "") {
		return false, nil
	}
	if c.Redis != "" {
		return false, node.Faults(fmt.Errorf("%s hurts the network of a cluster with a store of its own: leave --redis away", name))
	}
	if c.running() {
		return false, node.Faults(fmt.Errorf("%s hurts the network of a cluster that it starts itself: leave --running, --state and --server away", name))
	}
	err := hosts.Able()
	if err != nil && name == chaos.Soak {
		fmt.Fprintf(s.err, "a soak without partition, loss and delay: %v\n", err)
		return false, nil
	}
	if err != nil {
		return false, node.Faults(fmt.Errorf("%s: %w", name, err))
	}
	return true, nil
}

// running reports whether the cluster is somebody's.
func (c *chaosCommand) running() bool {
	return c.Running || c.State != "" || c.URL != "" || c.Compose != ""
}

// runAlone runs this command line again in a network of its own.
func runAlone(ctx context.Context) error {
	self, err := ownBinary()
	if err != nil {
		return err
	}
	return hosts.RunAlone(ctx, self, os.Args[1:]...)
}

// startHosts starts a development cluster with a host for each node but the balancer, which is here with the people.
func (c *chaosCommand) startHosts(ctx context.Context, o *chaos.Options, s streams) (end func(), err error) {
	self, err := ownBinary()
	if err != nil {
		return nil, err
	}
	wanted := devcluster.Defaults()
	wanted.Binary, wanted.Hosts, wanted.NodeEnv = self, make(map[string]devcluster.Host), chaos.NodeEnv(o.Scenario)
	wanted.Standby = o.Standby
	takePeople(&wanted, max(o.Peers, o.Large), o.Rooms*o.Peers+o.Large)
	if wanted.Sentinels, err = c.sentinels(s); err != nil {
		return nil, err
	}
	names := []string{"store"}
	for i := range wanted.Sentinels {
		names = append(names, fmt.Sprintf("sentinel-%d", i+1))
	}
	for i := range wanted.SFU {
		names = append(names, fmt.Sprintf("sfu-%d", i+1))
	}
	for i := range wanted.Signaling {
		names = append(names, fmt.Sprintf("signaling-%d", i+1))
	}
	fmt.Fprintf(s.err, "starting a development cluster of %d hosts for this run\n", len(names))
	network, err := hosts.Make(names)
	if err != nil {
		return nil, err
	}
	closeNetwork := func() {
		if err := network.Close(); err != nil {
			fmt.Fprintf(s.err, "end the network: %v\n", err) // it ends with this process all the same
		}
	}
	for _, name := range names {
		h, err := network.Host(name)
		if err != nil {
			closeNetwork()
			return nil, err
		}
		wanted.Hosts[name] = devcluster.Host{IP: h.IP, Space: h.Space}
	}
	cluster, err := devcluster.Start(ctx, wanted)
	if err != nil {
		closeNetwork()
		return nil, err
	}
	o.Cluster, o.Network = cluster.Client, network
	return func() { cluster.Close(); closeNetwork() }, nil
}
