package devcluster

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/internal/child"
	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/internal/tty"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	followEvery = 300 * time.Millisecond
	followLimit = 2 * time.Second
	// The cluster tells of a process's end so long after the supervisor at most.
	knownFor = 15 * time.Second
)

// follower tells on the terminal what happens in the cluster. It asks any signaling node for the events that the store keeps, so it is silent
// while there is no store or no signaling node. What the supervisor saw by itself, it says by itself.
type follower struct {
	supervisor *Supervisor
	client     *http.Client
	paint      func(style tty.Style, text string) string
	// after is the last event that was read. The loop of run has it to itself.
	after string

	mu     sync.Mutex // guards the fields below
	merger events.Merger
	ended  map[ring.NodeID]time.Time // the latest end of each process
}

func newFollower(s *Supervisor, paint func(style tty.Style, text string) string) *follower {
	return &follower{
		supervisor: s, paint: paint, ended: map[ring.NodeID]time.Time{},
		client: &http.Client{Timeout: followLimit, Transport: &http.Transport{DisableKeepAlives: true}},
	}
}

// run begins with what happens from now on.
func (f *follower) run(ctx context.Context) {
	f.after = events.Before(time.Now())
	for backoff.Sleep(ctx, followEvery) {
		f.tell(f.ask(ctx), time.Now())
	}
}

// ask returns nothing if nobody answers.
func (f *follower) ask(ctx context.Context) []events.Event {
	token, err := f.supervisor.secrets.access.adminToken()
	if err != nil {
		return nil
	}
	for _, n := range running(f.supervisor.Status(), RoleSignaling) {
		query := url.Values{"after": {f.after}}
		body, err := get(ctx, f.client, "http://"+n.Addresses[child.AddressHTTP]+"/api/v1/events?"+query.Encode(), token)
		var page struct {
			Events []events.Event `json:"events"`
			Next   string         `json:"next"`
		}
		if err == nil && json.Unmarshal(body, &page) == nil {
			f.after = cmp.Or(page.Next, f.after)
			return page.Events
		}
	}
	return nil
}

// processEnded notes the end of a node's process, so that the cluster's word for it is left out.
func (f *follower) processEnded(node string, p *process, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended[ring.NodeID(node)] = now
	if p.killed() {
		f.merger.Add(events.Event{Kind: events.NodeKilled, Node: ring.NodeID(node), At: now}, now)
	}
}

func (f *follower) tell(found []events.Event, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var lines []events.Line
	for _, e := range found {
		if f.known(e) {
			continue
		}
		e.Version = "" // all nodes run this binary
		lines = append(lines, f.merger.Add(e, now)...)
	}
	lines = append(lines, f.merger.Due(now)...)
	slices.SortStableFunc(lines, func(a, b events.Line) int { return a.At.Compare(b.At) })
	for _, line := range lines {
		f.supervisor.out.printf("%s  %s\n", f.paint(tty.Dim, clock(line.At)), line.Show(f.paint))
	}
}

// known reports whether the supervisor has told of the event already: it sees the end of a process before the cluster does.
func (f *follower) known(e events.Event) bool {
	if e.Kind != events.NodeDown && e.Kind != events.NodeLeft && e.Kind != events.NodeKilled {
		return false
	}
	ended, ok := f.ended[e.Node]
	return ok && e.At.Sub(ended).Abs() < knownFor
}

// clock is a time of day on this machine.
func clock(at time.Time) string { return at.Local().Format("15:04:05") }
