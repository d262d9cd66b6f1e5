// Package node is what a process of the cluster is: a media node, a signaling node, or the balancer in front of them.
//
// It joins the implementations to the interfaces that the other packages declare, binds the sockets, watches files of keys and
// certificates, and ends the process in order: a media node drains its rooms, a signaling node hands its clients over.
//
// It promises that a configuration is refused with every fault at once, before anything is bound, that a constructor starts nothing, and
// that Run returns when all that it started has ended. Two lives of one node never count as one: a restarted process takes a boot id above
// all earlier ones.
//
// Each setting is stated once, as a field of SFUConfig, SignalingConfig or FrontConfig with its default and its help; the command line
// makes the flag and the environment variable of it. The package knows no command line, no terminal and no signals. Begin with SFU.Run,
// and follow wire, join and run.
package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/metrics"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/redisstore"
)

// Process is what the command line gives a node.
type Process struct {
	Log *slog.Logger
	// Terminate receives each SIGTERM: the first one hands over to other nodes, the second one hurries.
	Terminate <-chan os.Signal
	// Announce is told the addresses, host:port by kind, once the listeners are bound, and again when a second life binds others.
	Announce func(addresses map[string]string) error
	// Own says that the process has nothing to do but run the node, so that it may be executed anew.
	Own bool
}

type nameFlag struct {
	Name string `help:"The node's stable name, the same across restarts; the host's name by default."`
}

func (f nameFlag) name() (string, error) {
	if f.Name != "" {
		return f.Name, nil
	}
	host, err := os.Hostname()
	if err != nil || host == "" {
		return "", errors.New("--name: this host has no name, so give the node one")
	}
	return host, nil
}

type storeFlag struct {
	Store string `default:"redis://127.0.0.1:6379" placeholder:"URL" help:"Redis 7 or later: redis://host:port, redis+sentinel://host:port,host:port/master or redis+cluster://host:port,host:port; rediss for TLS. See docs/STORE.md."`

	EventsMax  int           `default:"${events_max}" help:"How many events the store keeps; see 'holdfast events'. All nodes should have the same."`
	EventsKeep time.Duration `default:"${events_keep}" help:"How long the store keeps them. All nodes should have the same."`
}

const mostEvents = 10_000_000

// open opens the store of a cluster, and refuses bounds with which no event would be kept.
func (f *storeFlag) open(cluster string, measured *metrics.Registry, guard *panics.Guard, log *slog.Logger) (*redisstore.Store, error) {
	switch {
	case f.EventsMax < 1 || f.EventsMax > mostEvents:
		return nil, fmt.Errorf("--events-max %d: give a number from 1 to %d", f.EventsMax, mostEvents)
	case f.EventsKeep < time.Minute:
		return nil, fmt.Errorf("--events-keep %s: give a minute or more", f.EventsKeep)
	}
	store, err := redisstore.OpenAs(f.Store, cluster, guard, log)
	if err != nil {
		return nil, fmt.Errorf("--store: %w", err)
	}
	store.KeepEvents(f.EventsMax, f.EventsKeep)
	store.Measure(measured.NewStore())
	return store, nil
}

// ended drops the error of a context that was told to end.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, net.ErrClosed)) {
		return nil
	}
	return err
}
