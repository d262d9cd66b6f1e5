package devcluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// readyPoll is how often a condition is looked at again.
const readyPoll = 50 * time.Millisecond

// readyBodyBytes bounds what is read of an answer.
const readyBodyBytes = 1 << 20

// errNotYet wraps what the cluster is still waiting for.
var errNotYet = errors.New("not ready")

// waitReady returns when the page answers, every running signaling node says it
// is ready, and each of them sees every running media node.
func (s *Supervisor) waitReady(ctx context.Context) error {
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		err := s.checkReady(ctx, client)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait %s for the cluster: %w", readyLimit, err)
		}
	}
}

func (s *Supervisor) checkReady(ctx context.Context, client *http.Client) error {
	status := s.Status()
	if _, err := get(ctx, client, status.Page, ""); err != nil {
		return fmt.Errorf("the page does not answer: %w", err)
	}
	token, err := s.secrets.access.adminToken()
	if err != nil {
		return err
	}
	var media []Node
	for _, n := range status.Nodes {
		if n.Role == RoleSFU && n.State == StateRunning {
			media = append(media, n)
		}
	}
	for _, n := range status.Nodes {
		if n.Role != RoleSignaling || n.State != StateRunning {
			continue
		}
		base := "http://" + n.Addresses[AddressHTTP]
		if _, err := get(ctx, client, base+"/readyz", ""); err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
		body, err := get(ctx, client, base+"/api/v1/nodes", token)
		if err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
		if err := seesAll(body, media); err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
	}
	return nil
}

// seesAll checks that the answer of a signaling node lists every media node at
// the address it has now: a node that has just restarted may still be listed as
// its old boot.
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

// get fetches an address; anything but 200 is an error that shows the answer.
func get(ctx context.Context, client *http.Client, url, token string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", url, err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, readyBodyBytes))
	if err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered %s: %.200s", url, response.Status, body)
	}
	return body, nil
}
