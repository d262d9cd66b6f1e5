package devcluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/readiness"
)

const readyPoll = 50 * time.Millisecond

var errNotYet = errors.New("not ready")

// waitReady returns when the page answers, and every running signaling node is ready and sees every running media node.
func (s *Supervisor) waitReady(ctx context.Context) error {
	return poll(ctx, "the cluster", s.checkReady)
}

// waitFor returns when a started node is ready, or, a media node, is seen. Other faults of the cluster do not matter: a
// test may have made them.
func (s *Supervisor) waitFor(ctx context.Context, n Node) error {
	switch n.Role {
	case RoleSFU:
		return poll(ctx, n.Name, func(ctx context.Context, c *http.Client) error { return s.checkSeen(ctx, c, n) })
	case RoleSignaling:
		return poll(ctx, n.Name, func(ctx context.Context, c *http.Client) error { return ask(ctx, c, n, readiness.Path) })
	case RoleFront:
		return poll(ctx, n.Name, func(ctx context.Context, c *http.Client) error { return ask(ctx, c, n, "/") })
	case RoleStore:
	}
	return nil
}

// poll retries the check until it succeeds or readyLimit has passed.
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

// checkSeen wants every signaling node that answers, and at least one, to see the node.
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
	if _, err := get(ctx, client, "http://"+n.Addresses[AddressHTTP]+path, ""); err != nil {
		return fmt.Errorf("%s: %w", n.Name, err)
	}
	return nil
}

// sees wants a signaling node to see the media nodes.
func (s *Supervisor) sees(ctx context.Context, client *http.Client, n Node, media []Node) error {
	token, err := s.secrets.access.adminToken()
	if err != nil {
		return err
	}
	body, err := get(ctx, client, "http://"+n.Addresses[AddressHTTP]+"/api/v1/nodes", token)
	if err == nil {
		err = seesAll(body, media)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", n.Name, err)
	}
	return nil
}

// seesAll wants every media node at its present address: a restarted one may still be listed as its old boot.
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
		if seen[n.Name] != n.Addresses[AddressControl] {
			return fmt.Errorf("%w: it does not see %s", errNotYet, n.Name)
		}
	}
	return nil
}
