package node

import (
	"errors"
	"fmt"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/pin"
)

type gossipFlags struct {
	Cluster         string   `default:"holdfast" help:"The name of the cluster, the same on every node: lower-case letters, digits, - and _. Clusters that share a store have different ones."`
	ClusterKey      string   `placeholder:"TEXT" help:"The secret that all nodes of a cluster share, at least 32 characters; better given as HOLDFAST_CLUSTER_KEY, since arguments show in process lists."`
	ClusterKeyFile  string   `placeholder:"FILE" help:"A file with the cluster key, instead of --cluster-key: one key a line, two at most; the first is used, both are accepted. It is read again when it changes ('holdfast keys' changes it)."`
	GossipListen    string   `default:":7946" help:"host:port of gossip, TCP and UDP."`
	GossipAdvertise string   `placeholder:"HOST[:PORT]" help:"Where the others send gossip, if not to the listening address."`
	Join            []string `placeholder:"HOST:PORT" help:"Members to find the cluster through; one's own address may be among them. Repeat, or separate with commas."`
	Solo            bool     `help:"This node may be the first of its cluster: it does not wait for others."`
	GossipLoss      int      `hidden:"" help:"For tests: how many of a hundred gossip datagrams are thrown away when they arrive."`

	// keyText is the text that key has read.
	keyText string
}

// No error shows the key.
func (f *gossipFlags) key() (control.ClusterKey, error) {
	text, err := either("cluster-key", f.ClusterKey, f.ClusterKeyFile)
	if err != nil {
		return control.ClusterKey{}, err
	}
	f.keyText = text
	if text == "" {
		return control.ClusterKey{}, errors.New("--cluster-key: none given; set HOLDFAST_CLUSTER_KEY to the same secret on every node, at least 32 characters (openssl rand -hex 32)")
	}
	key, err := control.ParseClusterKey(text)
	if err != nil {
		return control.ClusterKey{}, fmt.Errorf("--cluster-key: %w", err)
	}
	if err := pin.ValidCluster(f.Cluster); err != nil {
		return control.ClusterKey{}, fmt.Errorf("--cluster: %w", err)
	}
	return key.In(f.Cluster)
}

func (f gossipFlags) check() error {
	var alone error
	if len(f.Join) == 0 && !f.Solo {
		alone = errors.New("--join: name at least one member of the cluster, or give --solo to the first node")
	}
	return errors.Join(CheckHostPort("gossip-listen", f.GossipListen), alone)
}

func (f gossipFlags) config(node cluster.Node, former pin.BootID, key control.ClusterKey, guard *panics.Guard) cluster.Config {
	return cluster.Config{
		Node: node, Bind: f.GossipListen, Advertise: f.GossipAdvertise, Join: f.Join, Solo: f.Solo, Name: f.Cluster, Keys: key.GossipKeys(),
		LosePercent: f.GossipLoss, Panics: guard,
		// Failover on a signaling node has evidence of its own.
		ConfirmDeaths:   node.Role == cluster.RoleSignaling,
		RefuseOlderBoot: former == "",
	}
}
