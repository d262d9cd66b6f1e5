package devcluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/child"
	"github.com/holdfast-rtc/holdfast/internal/readiness"
)

const readyPoll = 50 * time.Millisecond

var errNotYet = errors.New("not ready")

func (s *Supervisor) waitReady(ctx context.Context) error {
	return poll(ctx, "the cluster", s.checkReady)
}

// waitFor ignores the cluster's other faults: a test may have made them.
func (s *Supervisor) waitFor(ctx context.Context, n Node) error {
	switch n.Role {
	case RoleSFU:
		return poll(ctx, n.Name, func(ctx context.Context, c *http.Client) error { return s.checkSeen(ctx, c, s.now(n)) })
	case RoleSignaling:
		return poll(ctx, n.Name, func(ctx context.Context, c *http.Client) error { return ask(ctx, c, s.now(n), readiness.Path) })
	case RoleFront:
		return poll(ctx, n.Name, func(ctx context.Context, c *http.Client) error { return ask(ctx, c, n, "/") })
	case RoleStore, RoleSentinel:
	}
	return nil
}

// now is the node with its present addresses.
func (s *Supervisor) now(n Node) Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m, err := s.find(n.Name); err == nil {
		return m.node()
	}
	return n
}

func poll(ctx context.Context, what string, check func(context.Context, *http.Client) error) error {
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		err := check(ctx, client)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait %s for %s: %w", readyLimit, what, err)
		}
	}
}

func (s *Supervisor) checkReady(ctx context.Context, client *http.Client) error {
	status := s.Status()
	if _, err := get(ctx, client, status.Page, ""); err != nil {
		return fmt.Errorf("the page does not answer: %w", err)
	}
	media := running(status, RoleSFU)
	for _, n := range running(status, RoleSignaling) {
		if err := ask(ctx, client, n, readiness.Path); err != nil {
			return err
		}
		if err := s.sees(ctx, client, n, media); err != nil {
			return err
		}
	}
	return nil
}

// Every signaling node that answers, and at least one, must see the node.
func (s *Supervisor) checkSeen(ctx context.Context, client *http.Client, node Node) error {
	witnesses := 0
	for _, n := range running(s.Status(), RoleSignaling) {
		err := s.sees(ctx, client, n, []Node{node})
		if errors.Is(err, errNotYet) {
			return err
		}
		if err == nil {
			witnesses++
		}
	}
	if witnesses == 0 {
		return fmt.Errorf("%w: no signaling node answers", errNotYet)
	}
	return nil
}

func running(status Status, role Role) []Node {
	return slices.DeleteFunc(slices.Clone(status.Nodes), func(n Node) bool {
		return n.Role != role || n.State != StateRunning
	})
}

func ask(ctx context.Context, client *http.Client, n Node, path string) error {
	if _, err := get(ctx, client, "http://"+n.Addresses[child.AddressHTTP]+path, ""); err != nil {
		return fmt.Errorf("%s: %w", n.Name, err)
	}
	return nil
}

func (s *Supervisor) sees(ctx context.Context, client *http.Client, n Node, media []Node) error {
	token, err := s.secrets.access.adminToken()
	if err != nil {
		return err
	}
	body, err := get(ctx, client, "http://"+n.Addresses[child.AddressHTTP]+"/api/v1/nodes", token)
	if err == nil {
		err = seesAll(body, media)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", n.Name, err)
	}
	return nil
}

// A restarted node may still be listed at its old boot's address.
func seesAll(body []byte, media []Node) error {
	var answer struct {
		Nodes []AdminNode `json:"nodes"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("decode its nodes: %w", err)
	}
	seen := map[string]string{}
	for _, n := range answer.Nodes {
		seen[n.Node] = n.Control
	}
	for _, n := range media {
		if seen[n.Name] != n.Addresses[child.AddressControl] {
			return fmt.Errorf("%w: it does not see %s", errNotYet, n.Name)
		}
	}
	return nil
}
