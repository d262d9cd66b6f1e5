package rest

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/pin"
)

const (
	// departedFor is how long a node that is gone stays in the list of nodes.
	departedFor = time.Hour
	// departedLimit bounds the wait for the store. What was not read by then is read for the next request.
	departedLimit = 500 * time.Millisecond
	// departedRetry is how long a store that did not answer is not asked again.
	departedRetry = 2 * time.Second
)

// departure is the last that is known of a node's boot which is gone.
type departure struct {
	name    cluster.Name
	boot    pin.BootID
	how     cluster.Departure
	at      time.Time
	why     string
	version string
}

// departed remembers the nodes that died or left within an hour. It reads the cluster's events, which outlive this process, from where it
// stopped the last time, and adds what gossip has told this process and no event tells yet. It is safe for concurrent use.
type departed struct {
	store Events

	mu sync.Mutex
	// after is the event that was read last, by its ID.
	after string // guarded by mu
	// retryAt is when the store may be asked again; zero while it answers.
	retryAt time.Time                     // guarded by mu
	gone    map[cluster.Name]departure    // guarded by mu
	up      map[cluster.Name]events.Event // guarded by mu; the newest node_up of each name
}

func newDeparted(store Events) *departed {
	return &departed{store: store, gone: map[cluster.Name]departure{}, up: map[cluster.Name]events.Event{}}
}

// all returns one departure for each node that is not live in the view, by its name. Without the store it returns what this process knows.
func (d *departed) all(ctx context.Context, view *cluster.View, now time.Time) map[cluster.Name]departure {
	d.mu.Lock()
	defer d.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, departedLimit)
	defer cancel()
	d.follow(ctx, now)
	d.forget(now.Add(-departedFor))
	found := maps.Clone(d.gone)
	for _, told := range view.GoneNodes() {
		name := told.Node.Name()
		if known, ok := found[name]; now.Sub(told.At) < departedFor && (!ok || told.Node.Boot.Newer(known.boot)) && !d.replaced(name, told.Node.Boot) {
			found[name] = departure{name: name, boot: told.Node.Boot, how: told.How, at: told.At.UTC(), why: told.Why, version: told.Node.Version}
		}
	}
	maps.DeleteFunc(found, func(name cluster.Name, _ departure) bool {
		live := view.Nodes
		if name.Role == cluster.RoleSignaling {
			live = view.Signaling
		}
		_, up := live[name.ID]
		return up
	})
	return found
}

// follow reads the events that came since it read the last time. The caller holds mu.
func (d *departed) follow(ctx context.Context, now time.Time) {
	if d.store == nil || now.Before(d.retryAt) {
		return
	}
	if start := events.Before(now.Add(-departedFor)); d.after == "" {
		d.after = start
	}
	for {
		found, last, err := d.store.Events(ctx, d.after, eventsAtOnce)
		if err != nil {
			d.retryAt = now.Add(departedRetry)
			return
		}
		for _, e := range found {
			d.take(e)
		}
		if last == d.after {
			return
		}
		d.after = last
	}
}

// take reads one event. An event of a boot that is older than another boot which is up tells nothing new. The caller holds mu.
func (d *departed) take(e events.Event) {
	name := cluster.Name{Role: cluster.Role(e.Role), ID: e.Node}
	boot := pin.BootID(e.About)
	how, ends := map[events.Kind]cluster.Departure{events.NodeDown: cluster.DepartureDead, events.NodeLeft: cluster.DepartureLeft}[e.Kind]
	switch known := d.gone[name]; {
	case e.Kind == events.NodeUp, e.Kind == events.NodeBack:
		d.up[name] = e
		if !known.boot.Newer(boot) {
			delete(d.gone, name)
		}
	// A goodbye is certain, and a death that others conclude from the same silence is not.
	case !ends || d.replaced(name, boot) || known.boot.Newer(boot), known.boot == boot && known.how == cluster.DepartureLeft:
	default:
		d.gone[name] = departure{name: name, boot: boot, how: how, at: e.At, why: e.Cause, version: e.Version}
	}
}

// replaced reports whether a newer boot of the name came up. The caller holds mu.
func (d *departed) replaced(name cluster.Name, boot pin.BootID) bool {
	return pin.BootID(d.up[name].About).Newer(boot)
}

// forget drops what is older than that. The caller holds mu.
func (d *departed) forget(oldest time.Time) {
	maps.DeleteFunc(d.gone, func(_ cluster.Name, gone departure) bool { return gone.at.Before(oldest) })
	maps.DeleteFunc(d.up, func(_ cluster.Name, up events.Event) bool { return up.At.Before(oldest) })
}
