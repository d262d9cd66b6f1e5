package devcluster

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// AdminNode is a node as a signaling node sees it (GET /api/v1/nodes).
type AdminNode struct {
	Node    string `json:"node"`
	Boot    string `json:"boot"`
	Role    string `json:"role"`
	Control string `json:"control"`
	Stalled int    `json:"stalled"` // clients of that signaling node who receive nothing
	AdminLoad
}

// AdminLoad is what a media node sends and has reserved, and its ceilings.
type AdminLoad struct {
	EgressBitsPerSecond     uint64 `json:"egressBitsPerSecond"`
	EgressPacketsPerSecond  uint64 `json:"egressPacketsPerSecond"`
	CeilingBitsPerSecond    uint64 `json:"ceilingBitsPerSecond"`
	CeilingPacketsPerSecond uint64 `json:"ceilingPacketsPerSecond"`
}

// Admin fetches a path of the operator's API ("nodes", "rooms/NAME") through the front and decodes the answer.
func (c *Cluster) Admin(ctx context.Context, path string, into any) error {
	return c.AdminAt(ctx, c.page, path, into)
}

// AdminAt is Admin of one signaling node: base is "http://host:port/".
func (c *Client) AdminAt(ctx context.Context, base, path string, into any) error {
	token, err := c.Access().adminToken()
	if err != nil {
		return err
	}
	body, err := get(ctx, c.http, strings.TrimSuffix(base, "/")+"/api/v1/"+path, token)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("decode %s: %w", path, err)
	}
	return nil
}

// AdminNodes lists the nodes that a signaling node sees.
func (c *Cluster) AdminNodes(ctx context.Context) ([]AdminNode, error) {
	var answer struct {
		Nodes []AdminNode `json:"nodes"`
	}
	err := c.Admin(ctx, "nodes", &answer)
	return answer.Nodes, err
}
